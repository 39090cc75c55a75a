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
from tidegate.errors import TidegateError
from tidegate.jobs.disclosure import as_tidegate_error
from tidegate.lake.catalog import open_catalog

router = APIRouter(tags=["health"])
KEPT_SECONDS: Final = 5.0
"""Anyone may ask; the catalog is asked this often at most."""


class Alive(View):
    status: str = Field(examples=["ok"])
    version: str


class Ready(View):
    """Components by name: `ok`, or the code of what is wrong. No names of yours, no addresses."""

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
    """200 if the catalog answers and every pipeline's file can be read; 503 otherwise."""
    components = _looked(request.app.state, request.app.state.pipelines)
    ready = all(word == "ok" for word in components.values())
    response.status_code = 200 if ready else 503
    return Ready(status="ok" if ready else "not ready", components=components)


def _looked(state: Any, pipelines: Pipelines) -> dict[str, str]:
    kept: tuple[float, dict[str, str]] | None = getattr(state, "readiness", None)
    if kept is not None and time.monotonic() - kept[0] < KEPT_SECONDS:
        return kept[1]
    found = {
        "catalog": _catalog(pipelines),
        "pipelines": next((k.error.code for k in pipelines.all() if k.error), "ok"),
    }
    state.readiness = (time.monotonic(), found)
    return found


def _catalog(pipelines: Pipelines) -> str:
    try:
        open_catalog(pipelines.platform).list_namespaces()
    except TidegateError as error:
        return error.code
    except Exception as error:  # noqa: BLE001 - whatever a catalog raises, it is not ready
        return as_tidegate_error(error).code
    return "ok"
