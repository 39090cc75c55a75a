"""The OpenAPI 3.1 document: roles, the token, problem documents and examples on every operation."""

from __future__ import annotations

import functools
from typing import Any, Final

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from fastapi.routing import APIRoute

from tidegate.api.access import Role, role_of
from tidegate.api.models.base import Problem
from tidegate.api.problems import PROBLEM

_SCHEME: Final = "token"
_PROBLEMS: Final = {
    "400": "The body is not JSON.",
    "401": "No token, or one that nobody has.",
    "403": "The token's role is too weak, or the request comes from another site or names another"
    " host.",
    "404": "No such pipeline, table, letter or run.",
    "409": "Something holds this back, or the Idempotency-Key was used for other work.",
    "413": "The body is larger than a million bytes.",
    "422": "The request or a configuration file is wrong.",
    "429": "Too many runs are at work or wait: try again after `Retry-After` seconds.",
    "503": "A passing condition: try again after `Retry-After` seconds.",
}


def install(app: FastAPI) -> None:
    """Replace FastAPI's document with ours."""
    app.openapi = functools.cache(lambda: document(app))  # type: ignore[method-assign]


def document(app: FastAPI) -> dict[str, Any]:
    """The whole document."""
    found = get_openapi(
        title=app.title, version=app.version, description=app.description, routes=app.routes
    )
    components = found.setdefault("components", {})
    schemas = components.setdefault("schemas", {})
    for name in ("HTTPValidationError", "ValidationError"):
        schemas.pop(name, None)
    schemas["Problem"] = Problem.model_json_schema(ref_template="#/components/schemas/{model}")
    components["securitySchemes"] = {_SCHEME: {"type": "http", "scheme": "bearer"}}
    for route in app.routes:
        if isinstance(route, APIRoute) and route.include_in_schema:
            for method in route.methods:
                _complete(found["paths"][route.path_format][method.lower()], route)
    return found


def _complete(operation: dict[str, Any], route: APIRoute) -> None:
    role = role_of(route)
    operation["operationId"] = route.name
    operation["x-tidegate-role"] = str(role)
    responses = operation["responses"]
    if role is not Role.PUBLIC:
        operation["security"] = [{_SCHEME: []}]
        responses |= {status: _problem(text) for status, text in _PROBLEMS.items()}
    else:
        responses.pop("422", None)
    if "GET" in route.methods:
        responses["304"] = {"description": "Unchanged since the `If-None-Match` that was sent."}


def _problem(description: str) -> dict[str, Any]:
    schema = {"$ref": "#/components/schemas/Problem"}
    return {"description": description, "content": {PROBLEM: {"schema": schema}}}
