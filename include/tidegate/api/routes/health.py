"""``/healthz``: the process lives. ``/readyz``: it can do its work."""

from __future__ import annotations

from fastapi import APIRouter, Request, Response
from pydantic import Field

import tidegate
from tidegate.api.access import Role, needs
from tidegate.api.models.base import View
from tidegate.control.health import FAILED
from tidegate.control.readiness import Kept

router = APIRouter(tags=["health"])


class Alive(View):
    status: str = Field(examples=["ok"])
    version: str


class Ready(View):
    """Components by name: `ok`, `degraded` or `failed`. No names of yours, no addresses."""

    status: str = Field(examples=["ok", "not ready"])
    components: dict[str, str] = Field(examples=[{"catalog": "ok"}])


@router.get("/healthz")
@needs(Role.PUBLIC)
def healthz() -> Alive:
    """Always 200 while the process lives."""
    return Alive(status="ok", version=tidegate.__version__)


@router.get("/readyz", responses={503: {"model": Ready}})
@needs(Role.PUBLIC)
def readyz(request: Request, response: Response) -> Ready:
    """200 if the catalog answers, the warehouse can be written and every pipeline that is deployed
    and not stopped is well; 503 otherwise. What is wrong in detail: `tidegate health`, or
    `…/connectors/{name}/health`."""
    readiness: Kept[dict[str, str]] = request.app.state.readiness
    components = readiness.get()
    ready = components is not None and FAILED not in components.values()
    response.status_code = 200 if ready else 503
    return Ready(status="ok" if ready else "not ready", components=components or {})
