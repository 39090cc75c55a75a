"""What the API itself is."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Request

from tidegate.api.access import Role, needs

router = APIRouter(tags=["about"])


@router.get("/openapi.json")
@needs(Role.READ)
def get_openapi(request: Request) -> dict[str, Any]:
    """This API's OpenAPI 3.1 document."""
    document: dict[str, Any] = request.app.openapi()
    return document
