"""Pipelines: listed, described, their status, lag and guard."""

from __future__ import annotations

import tempfile
from collections import Counter
from pathlib import Path
from typing import Annotated, Any

from fastapi import APIRouter, Query

from tidegate.api.access import Role, needs
from tidegate.api.looks import SourceLooks
from tidegate.api.models.actions import ValidateRequest, ValidationReport
from tidegate.api.models.status import (
    ConnectorDetail,
    ConnectorSummary,
    Guard,
    PipelineLag,
    PipelineStatus,
)
from tidegate.api.pages import DEFAULT_LIMIT, Cursor, Limit, Page, page
from tidegate.api.pipelines import Known as KnownFile
from tidegate.api.pipelines import Pipelines, Subject
from tidegate.api.routes.subject import ONE, About, Admitted, Known, Looks
from tidegate.config.loader import load_pipeline
from tidegate.config.pipeline import PipelineConfig
from tidegate.config.platform import PlatformConfig
from tidegate.config.shown import shown
from tidegate.control.pipelines import BROKEN
from tidegate.control.records import PipelineStatus as StatusRecord
from tidegate.control.running import RUNNING
from tidegate.control.status import lag_of
from tidegate.control.validation import validate_pipeline

router = APIRouter(tags=["connectors"])
AskSource = Annotated[
    bool, Query(description="Ask the source too: what it holds, and how far capture is behind.")
]


@router.get("/connectors")
@needs(Role.READ)
def list_connectors(
    known: Known,
    admitted: Admitted,
    looks: Looks,
    limit: Limit = DEFAULT_LIMIT,
    cursor: Cursor = None,
) -> Page[ConnectorSummary]:
    """Every pipeline the server knows and the caller may see, broken files among them."""
    seen = [file for file in known.all() if admitted.sees(file.name)]
    files = page(seen, lambda item: item.file.name, limit, cursor)
    items = [_listed(file, known, looks) for file in files.items]
    return Page(items=items, next=files.next, total=files.total)


@router.get(ONE)
@needs(Role.READ)
def get_connector(about: About, looks: Looks) -> ConnectorDetail:
    """One pipeline, and what its file says."""
    summary = _summary(about.pipeline, about.platform, looks)
    return ConnectorDetail(**summary.model_dump(), config=shown(about.pipeline))


@router.get(f"{ONE}/status")
@needs(Role.READ)
def get_status(about: About, looks: Looks, source: AskSource = False) -> PipelineStatus:
    """Gates, positions, lag, snapshots and last runs of every table."""
    return PipelineStatus.model_validate(_status(about, looks, source))


@router.get(f"{ONE}/lag")
@needs(Role.READ)
def get_lag(about: About, looks: Looks, source: AskSource = False) -> PipelineLag:
    """How far the change log is behind the source, and each table behind the change log."""
    return PipelineLag.model_validate(lag_of(_status(about, looks, source)))


@router.get(f"{ONE}/guard")
@needs(Role.READ)
def get_guard(about: About, looks: Looks) -> Guard:
    """What the pipeline holds on its source and in its change log. Asks the source."""
    return Guard.model_validate(looks.status(about).guard)


@router.post("/validate")
@needs(Role.EDIT)
def validate(body: ValidateRequest, known: Known) -> ValidationReport:
    """A pipeline's file, checked without its source and not kept; or a known pipeline, checked
    with it."""
    if body.name is not None:
        about = known.get(body.name)
        return _report(validate_pipeline(about.with_secrets(), about.platform))
    with tempfile.TemporaryDirectory(prefix="tidegate-") as folder:
        file = Path(folder) / "pipeline.yaml"
        file.write_text(body.config or "", encoding="utf-8")
        # Variables stay names: a file from elsewhere must not read this server's (I9).
        pipeline = load_pipeline(file, resolve_secrets=False, environ={})
    return _report(validate_pipeline(pipeline, known.platform, offline=True))


def _status(about: Subject, looks: SourceLooks, source: bool) -> StatusRecord:
    if source:
        return looks.status(about)
    return looks.status_of_lake(about.pipeline, about.platform)


def _report(found: Any) -> ValidationReport:
    return ValidationReport.model_validate(found)


def _listed(file: KnownFile, known: Pipelines, looks: SourceLooks) -> ConnectorSummary:
    if file.pipeline is None:
        problem = known.paths.hidden(file.error.message) if file.error else "it cannot be read"
        return ConnectorSummary(name=file.name, state=BROKEN, problem=problem)
    return _summary(file.pipeline, known.platform, looks)


def _summary(
    pipeline: PipelineConfig, platform: PlatformConfig, looks: SourceLooks
) -> ConnectorSummary:
    now = looks.status_of_lake(pipeline, platform)
    told = shown(pipeline)
    behind = [table.lag_seconds for table in now.tables if table.lag_seconds is not None]
    return ConnectorSummary(
        name=pipeline.pipeline_id,
        type=str(pipeline.source.source_type),
        database=told["source"]["database"],
        tables=list(pipeline.source.tables),
        owner=told["owner"],
        tags=told["tags"],
        state=now.running.state if now.running else RUNNING,
        deployed=now.deployed,
        gates=dict(Counter(table.gate.state for table in now.tables)),
        dead_letters=sum(table.dead_letters for table in now.tables),
        lag_seconds=max(behind, default=None),
        needs=sum(table.needs is not None for table in now.tables),
    )
