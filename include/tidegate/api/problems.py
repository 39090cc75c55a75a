"""Errors as ``application/problem+json`` (RFC 9457), with our code and hint."""

from __future__ import annotations

import http
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException
from starlette.routing import Match

from tidegate.api.server_paths import ServerPaths
from tidegate.config.problems import ConfigProblems
from tidegate.errors import (
    ConfigError,
    DataError,
    HeldError,
    RetriableError,
    SetupError,
    TidegateError,
)
from tidegate.jobs.disclosure import as_tidegate_error

PROBLEM: Final = "application/problem+json"
RETRY_AFTER_SECONDS: Final = 5
"""A catalog that is locked is free within seconds."""
BUSY_RETRY_AFTER_SECONDS: Final = 60
"""Runs take minutes."""
_BY_CODE: Final[Mapping[str, int]] = {
    "api.cursor": 422,
    "config.no_folder": 503,
    "control.unknown_table": 404,
    "dead_letters.unknown": 404,
    "lakehouse.no_snapshot": 404,
    "lakehouse.no_table": 404,
    "offsets.moved": 409,
    "pipelines.exists": 409,
    "position.unreadable": 422,  # it came with the request
    "schema.cannot_approve": 409,
    "schema.none": 404,
    "schema.nothing_held": 409,
}
_BY_KIND: Final[tuple[tuple[type[TidegateError], int], ...]] = (
    (ConfigError, 422),
    (DataError, 422),
    (HeldError, 409),
    (RetriableError, 503),
    (SetupError, 503),
)


class Refused(TidegateError):
    """A request that is turned away: not known, not allowed, not now."""

    def __init__(self, status: int, code: str, message: str, *, hint: str) -> None:
        super().__init__(code, message, hint=hint)
        self.status = status


def status_of(error: TidegateError) -> int:
    """The HTTP status that says how one recovers."""
    if isinstance(error, Refused):
        return error.status
    if error.code in _BY_CODE:
        return _BY_CODE[error.code]
    return next((status for kind, status in _BY_KIND if isinstance(error, kind)), 500)


def problem(
    error: TidegateError, paths: ServerPaths, instance: str | None = None
) -> dict[str, Any]:
    """The document; files are told by their names."""
    status = status_of(error)
    body: dict[str, Any] = {
        "type": f"urn:tidegate:{error.code}",
        "title": http.HTTPStatus(status).phrase,
        "status": status,
        "code": error.code,
        "detail": paths.hidden(error.message),
        "hint": paths.hidden(error.hint),
    }
    if isinstance(error, ConfigProblems):
        body["problems"] = [
            {
                "file": Path(p.file).name,
                "line": p.line,
                "path": p.path,
                "message": paths.hidden(p.message),
            }
            for p in error.problems
        ]
    return body | ({"instance": instance} if instance else {})


def respond(request: Request, error: TidegateError) -> JSONResponse:
    """The response."""
    status, headers = status_of(error), {"cache-control": "no-store"}
    if status == 401:
        headers["www-authenticate"] = 'Bearer realm="tidegate"'
    if isinstance(error, RetriableError):
        headers["retry-after"] = str(RETRY_AFTER_SECONDS)
    if status == 429:
        headers["retry-after"] = str(BUSY_RETRY_AFTER_SECONDS)
    paths: ServerPaths = request.app.state.pipelines.paths
    body = problem(error, paths, request.url.path)
    return JSONResponse(body, status, headers, media_type=PROBLEM)


def install(app: FastAPI) -> None:
    """Everything that goes wrong becomes a problem document; nothing shows a value (I9)."""

    @app.exception_handler(TidegateError)
    async def known(request: Request, error: TidegateError) -> JSONResponse:
        return respond(request, error)

    @app.exception_handler(RequestValidationError)
    async def invalid(request: Request, error: RequestValidationError) -> JSONResponse:
        response = ConfigError(
            "api.invalid_request",
            "; ".join(_said(one) for one in error.errors()) or "the request cannot be read",
            hint="see `tidegate openapi` for what the request may hold",
        )
        return respond(request, response)

    @app.exception_handler(HTTPException)
    async def http_error(request: Request, error: HTTPException) -> JSONResponse:
        refused = Refused(
            error.status_code,
            f"api.http_{error.status_code}",
            str(error.detail),
            hint="see `tidegate openapi` for what there is",
        )
        response = respond(request, refused)
        response.headers.update(error.headers or {})
        if error.status_code == 405:
            response.headers["allow"] = _allowed(request)
        return response

    @app.exception_handler(Exception)
    async def unexpected(request: Request, error: Exception) -> JSONResponse:
        return respond(request, as_tidegate_error(error))


def _allowed(request: Request) -> str:
    """All methods of a path; the framework names those of its first route only."""
    methods: set[str] = set()
    for route in request.app.routes:
        if route.matches(request.scope)[0] is not Match.NONE:
            methods |= getattr(route, "methods", None) or set()
    return ", ".join(sorted(methods))


def _said(error: Mapping[str, Any]) -> str:
    """One thing that is wrong; never the value that was sent."""
    place = ".".join(str(part) for part in error.get("loc", ()))
    return f"{place}: {error.get('msg', 'is not valid')}"
