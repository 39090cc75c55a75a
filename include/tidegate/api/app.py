"""The HTTP application: routes, the one way in, problem documents, headers.

``create_app`` takes what differs between the two places it runs in: who callers are
(:class:`~tidegate.api.access.Authorizer`) and how work is started
(:class:`~tidegate.api.runner.Runner`).
"""

from __future__ import annotations

from typing import Final

from fastapi import FastAPI

import tidegate
from tidegate.api import openapi, problems
from tidegate.api.access import Authorizer
from tidegate.api.admission import Admission
from tidegate.api.exposition import Figures
from tidegate.api.headers import ResponseHeaders
from tidegate.api.hosts import Hosts
from tidegate.api.live import LiveStatus
from tidegate.api.looks import SourceLooks
from tidegate.api.pipelines import Pipelines
from tidegate.api.readiness import look
from tidegate.api.routes import (
    about,
    connectors,
    gates,
    health,
    letters,
    life,
    live,
    metrics,
    overview,
    page,
    proofs,
    runs,
    schemas,
    tables,
)
from tidegate.api.routes.subject import BASE
from tidegate.api.runner import Runner
from tidegate.api.status_caches import StatusCaches
from tidegate.control.readiness import Kept

_PARTS: Final = (
    connectors,
    overview,
    life,
    tables,
    gates,
    letters,
    schemas,
    runs,
    proofs,
    live,
    about,
)


def create_app(
    pipelines: Pipelines, authorizer: Authorizer, runner: Runner, hosts: Hosts | None = None
) -> FastAPI:
    """The application; without the interactive pages FastAPI adds by itself. ``hosts`` is None
    where a server around it decides by which names it is called (Airflow's)."""
    app = FastAPI(
        title="Tidegate",
        version=tidegate.__version__,
        description="Status and actions of change-data-capture pipelines.",
        docs_url=None,
        redoc_url=None,
        openapi_url=None,
    )
    app.state.pipelines = pipelines
    app.state.authorizer = authorizer
    app.state.runner = runner
    caches = StatusCaches(pipelines.platform)
    app.state.live = LiveStatus(pipelines, caches)
    app.state.looks = SourceLooks(caches)
    app.state.figures = Figures(pipelines)
    app.state.readiness = Kept(lambda: look(pipelines))
    problems.install(app)
    app.add_middleware(Admission, hosts=hosts)
    app.add_middleware(ResponseHeaders)  # around it: refusals have them too
    app.include_router(health.router)
    app.include_router(metrics.router)
    app.include_router(page.router)
    for part in _PARTS:
        app.include_router(part.router, prefix=BASE)
    openapi.install(app)
    return app
