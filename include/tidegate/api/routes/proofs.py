"""What is proven, and who did what."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query

from tidegate.api.access import Role, needs
from tidegate.api.models.actions import AuditEntry, Verification
from tidegate.api.models.status import Verified
from tidegate.api.pages import DEFAULT_LIMIT, Limit
from tidegate.api.routes.subject import ONE, About, Known
from tidegate.control.audit import audit
from tidegate.control.proofs import verified_through
from tidegate.control.status_cache import StatusCache
from tidegate.lake.reports import Report

router = APIRouter(tags=["proofs"])
_REPORTS_READ = 200


@router.get(f"{ONE}/verification")
@needs(Role.READ)
def get_verification(about: About) -> list[Verification]:
    """Through which position each table is proven equal to its source, and its last comparison."""
    lake = StatusCache(about.pipeline, about.platform).look()
    proven = verified_through(lake.proofs, lake.tables)
    compared = [report for report in lake.reports if report.kind == "verify"]
    last = _last(compared[:_REPORTS_READ])
    return [
        Verification(
            table=name,
            verified_through=Verified.model_validate(proven[name]) if name in proven else None,
            last=last.get(name),
        )
        for name in about.pipeline.source.tables
    ]


@router.get(f"{ONE}/audit")
@needs(Role.READ)
def get_audit(
    about: About,
    known: Known,
    table: Annotated[str | None, Query(max_length=200)] = None,
    limit: Limit = DEFAULT_LIMIT,
) -> list[AuditEntry]:
    """Who did what to the pipeline, newest first."""
    found = audit(about.pipeline, about.platform, [table] if table else None, limit)
    entries = [AuditEntry.model_validate(entry) for entry in found.entries]
    return [
        entry.model_copy(update={"details": known.paths.hidden(entry.details)}) for entry in entries
    ]


def _last(reports: list[Report]) -> dict[str, dict[str, Any]]:
    """The newest comparison of each table."""
    found: dict[str, dict[str, Any]] = {}
    for report in reports:
        for entry in report.body.get("tables") or ():
            found.setdefault(str(entry.get("table")), {"run": report.run, "at": report.at, **entry})
    return found
