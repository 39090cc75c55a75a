"""Every pipeline at a glance, and what ran."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Request
from fastapi.responses import JSONResponse

from tidegate.api.access import Role, needs
from tidegate.api.live import LiveStatus
from tidegate.api.models.overview import Overview, RunRecord
from tidegate.api.pages import DEFAULT_LIMIT, Cursor, Limit, Page, page
from tidegate.api.routes.subject import ONE, About, Admitted, Looks
from tidegate.control.activity import runs

router = APIRouter(tags=["overview"])


@router.get("/overview", response_model=Overview)
@needs(Role.READ)
async def get_overview(request: Request, admitted: Admitted) -> JSONResponse:
    """Each pipeline's figures, what is wrong and why, and one short line per table. Some seconds
    old at most, and computed once for all who ask."""
    live: LiveStatus = request.app.state.live
    state = await live.overviews()
    # It was validated when it was made: 500 tables need not pay for that at every request.
    found = [
        {"name": name, "overview": None, "problem": None} | one
        for name, one in sorted(state.items())
        if admitted.sees(name)
    ]
    return JSONResponse({"pipelines": found})


@router.get(f"{ONE}/reports")
@needs(Role.READ)
def list_reports(
    looks: Looks,
    about: About,
    table: Annotated[str | None, Query(max_length=200)] = None,
    limit: Limit = DEFAULT_LIMIT,
    cursor: Cursor = None,
) -> Page[RunRecord]:
    """What ran, newest first, whoever started it: applies, sweeps, captures, upkeep, comparisons.
    Kept for about a week."""
    found = list(runs(looks.lake(about).reports, table))
    rows = page(found, lambda row: row.id, limit, cursor)
    items = [RunRecord.model_validate(row) for row in rows.items]
    return Page(items=items, next=rows.next, total=rows.total)
