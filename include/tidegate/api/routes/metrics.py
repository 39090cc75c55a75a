"""``/metrics`` for Prometheus."""

from __future__ import annotations

from fastapi import APIRouter, Request, Response
from prometheus_client.exposition import CONTENT_TYPE_LATEST

from tidegate.api.access import Role, needs
from tidegate.api.exposition import Figures
from tidegate.api.routes.subject import Admitted

router = APIRouter(tags=["metrics"])


@router.get(
    "/metrics",
    response_class=Response,
    responses={200: {"content": {"text/plain": {"schema": {"type": "string"}}}}},
)
@needs(Role.READ)
def get_metrics(request: Request, admitted: Admitted) -> Response:
    """Every pipeline's figures in Prometheus' text format, read at the scrape from snapshots and
    control tables. Sources are asked once a minute at most."""
    figures: Figures = request.app.state.figures
    return Response(figures.text(admitted.sees), media_type=CONTENT_TYPE_LATEST)
