"""Pipelines made, started, stopped, moved, deleted; and their health."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Annotated

from fastapi import APIRouter, Query, Response, status

from tidegate.api import posted
from tidegate.api.access import Role, needs
from tidegate.api.models.actions import RunView
from tidegate.api.models.life import (
    Created,
    CreateRequest,
    Deleted,
    Health,
    Move,
    OffsetRequest,
    Offsets,
    SayRequest,
)
from tidegate.api.models.status import Running
from tidegate.api.pipelines import Subject
from tidegate.api.routes.subject import ONE, About, Actor, Key, Known, Work, run_view
from tidegate.api.runner import Verb
from tidegate.api.runner import Work as Task
from tidegate.control import health, offsets, pipelines, running
from tidegate.lake import reposition
from tidegate.observability.caller import acting_as

router = APIRouter(tags=["life"])


@router.post("/connectors", status_code=status.HTTP_201_CREATED)
@needs(Role.ADMIN)
def create_connector(
    body: CreateRequest, known: Known, actor: Actor, response: Response
) -> Created:
    """Check a pipeline's file and put it into the pipelines folder; nothing is deployed."""
    with tempfile.TemporaryDirectory(prefix="tidegate-") as folder, acting_as(actor):
        file = Path(folder) / "pipeline.yaml"
        file.write_text(body.config, encoding="utf-8")
        posted.check(file, known.allowed_variables)
        made = pipelines.create(
            file,
            known.platform,
            known.directory,
            offline=body.offline,
            dry_run=body.dry_run,
            with_secrets=known.with_secrets,
        )
    if body.dry_run:
        response.status_code = status.HTTP_200_OK
    return Created.model_validate(made)


@router.delete(ONE)
@needs(Role.ADMIN)
def delete_connector(
    about: About,
    actor: Actor,
    dry_run: Annotated[bool, Query(description="Say what would be done, do nothing.")] = False,
) -> Deleted:
    """Take the pipeline's file out of the folder. Refused while it is deployed: `tidegate undeploy`
    comes first. Lake tables stay."""
    with acting_as(actor):
        gone = pipelines.delete(about.pipeline, about.platform, about.file, dry_run=dry_run)
    return Deleted.model_validate(gone)


@router.post(f"{ONE}/start")
@needs(Role.EDIT)
def start_connector(about: About, actor: Actor, body: SayRequest | None = None) -> Running:
    """Let a stopped pipeline go on from where it stands. Again: no change."""
    reason = (body or SayRequest()).reason
    with acting_as(actor):
        said = running.start(about.pipeline, about.platform, reason=reason)
    return Running.model_validate(said)


@router.post(f"{ONE}/stop")
@needs(Role.EDIT)
def stop_connector(about: About, actor: Actor, body: SayRequest | None = None) -> Running:
    """Let nothing begin any more; what is at work ends its batch. The slot stays, so the source
    keeps its WAL meanwhile. Again: no change."""
    reason = (body or SayRequest()).reason
    with acting_as(actor):
        said = running.stop(about.pipeline, about.platform, reason=reason)
    return Running.model_validate(said)


@router.get(f"{ONE}/offsets")
@needs(Role.READ)
def get_offsets(about: About) -> Offsets:
    """Where the change log and each table stand, and how far back each may be set."""
    return Offsets.model_validate(offsets.offsets(about.pipeline, about.platform))


@router.post(f"{ONE}/offsets/plan")
@needs(Role.READ)
def plan_offset(about: About, body: OffsetRequest) -> Move:
    """What setting a position would replay or skip; does nothing."""
    found = _planned(about, body)
    return Move(
        table=found.table,
        direction=found.direction.value,
        from_position=str(found.from_position),
        to_position=str(found.to_position),
        changes=found.changes,
        first_at=found.first_at,
        last_at=found.last_at,
        says=found.words,
    )


@router.put(f"{ONE}/offsets", status_code=status.HTTP_202_ACCEPTED)
@needs(Role.ADMIN)
def set_offset(
    about: About, body: OffsetRequest, actor: Actor, runner: Work, key: Key = None
) -> RunView:
    """Set a table's position; `offsets/plan` says beforehand what that means."""
    # Refused here and now where it is not allowed; the run looks again under its lease.
    found = _planned(about, body)
    options = {
        "tables": [found.table],
        "position": str(found.to_position),
        "skip": body.skip,
        "reason": body.reason,
        "expect": body.expect,
    }
    task = Task(Verb.SET_OFFSET, about.pipeline.pipeline_id, options)
    return run_view(runner.start(task, actor, key))


def _planned(about: Subject, body: OffsetRequest) -> reposition.Move:
    return offsets.plan(
        about.pipeline,
        about.platform,
        body.table,
        body.position,
        skip=body.skip,
        expect=body.expect,
    )


@router.get(f"{ONE}/health")
@needs(Role.READ)
def get_health(about: About) -> Health:
    """Catalog, storage, source, change log and gates, part by part. Asks the source."""
    return Health.model_validate(health.health(about.platform, about.with_secrets()))
