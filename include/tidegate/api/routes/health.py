"""``/healthz``: the process lives. ``/readyz``: it can do its work."""

from __future__ import annotations

import time
from typing import Any, Final

from fastapi import APIRouter, Request, Response
from pydantic import Field

import tidegate
from tidegate.api.access import Role, needs
from tidegate.api.models.base import View
from tidegate.api.pipelines import Pipelines
from tidegate.control.health import DEGRADED, FAILED, OK, check_catalog, check_storage
from tidegate.errors import TidegateError

router = APIRouter(tags=["health"])
KEPT_SECONDS: Final = 5.0
"""Anyone may ask; the catalog is asked this often at most."""


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
    """200 if the catalog answers and the warehouse can be written; 503 otherwise. What is wrong in
    detail: `tidegate health`, or `…/connectors/{name}/health`."""
    components = _looked(request.app.state, request.app.state.pipelines)
    ready = FAILED not in components.values()
    response.status_code = 200 if ready else 503
    return Ready(status="ok" if ready else "not ready", components=components)


def _looked(state: Any, pipelines: Pipelines) -> dict[str, str]:
    kept: tuple[float, dict[str, str]] | None = getattr(state, "readiness", None)
    if kept is not None and time.monotonic() - kept[0] < KEPT_SECONDS:
        return kept[1]
    parts = [check_catalog(pipelines.platform), check_storage(pipelines.platform)]
    found = {part.name: part.status for part in parts} | {"pipelines": _files(pipelines)}
    state.readiness = (time.monotonic(), found)
    return found


def _files(pipelines: Pipelines) -> str:
    try:
        broken = [known for known in pipelines.all() if known.error]
    except TidegateError:
        return FAILED
    return DEGRADED if broken else OK
