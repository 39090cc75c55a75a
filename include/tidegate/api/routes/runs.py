"""Work that takes longer than a request: sweeps, comparisons, upkeep, going back."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path, status

from tidegate.api.access import Role, needs
from tidegate.api.models.actions import (
    MaintainRequest,
    RollbackRequest,
    RunView,
    SweepRequest,
    VerifyRequest,
)
from tidegate.api.models.base import Body
from tidegate.api.pages import DEFAULT_LIMIT, Limit
from tidegate.api.pipelines import Subject
from tidegate.api.routes.subject import ONE, TABLE, About, Actor, Key, TableOf, Work, run_view
from tidegate.api.runner import Runner, Verb, no_such_run
from tidegate.api.runner import Work as Task
from tidegate.control.lakehouse import find_snapshot
from tidegate.control.tables import known_tables
from tidegate.observability.caller import Caller

router = APIRouter(tags=["runs"])
STARTED = status.HTTP_202_ACCEPTED


@router.post(f"{ONE}/snapshot", status_code=STARTED)
@needs(Role.EDIT)
def start_sweep(
    about: About, body: SweepRequest, actor: Actor, runner: Work, key: Key = None
) -> RunView:
    """Re-read tables in full (a sweep); their increments wait meanwhile."""
    return _start(Verb.SWEEP, about, body, actor, runner, key)


@router.post(f"{ONE}/verify", status_code=STARTED)
@needs(Role.EDIT)
def start_verify(
    about: About, body: VerifyRequest, actor: Actor, runner: Work, key: Key = None
) -> RunView:
    """Compare source and lake, row by row, at one stated position."""
    return _start(Verb.VERIFY, about, body, actor, runner, key)


@router.post(f"{ONE}/maintain", status_code=STARTED)
@needs(Role.EDIT)
def start_maintain(
    about: About, body: MaintainRequest, actor: Actor, runner: Work, key: Key = None
) -> RunView:
    """Do the upkeep that is due; with `force` whether due or not."""
    return _start(Verb.MAINTAIN, about, body, actor, runner, key)


@router.post(f"{TABLE}/rollback", status_code=STARTED)
@needs(Role.ADMIN)
def start_rollback(
    about: About,
    table: TableOf,
    body: RollbackRequest,
    actor: Actor,
    runner: Work,
    key: Key = None,
) -> RunView:
    """Take a table, and its position with it, back to a snapshot; the next apply replays."""
    find_snapshot(about.pipeline, about.platform, table, int(body.snapshot_id))
    options = {"tables": [table], **body.model_dump()}
    task = Task(Verb.ROLLBACK, about.pipeline.pipeline_id, options)
    return run_view(runner.start(task, actor, key))


@router.get(f"{ONE}/runs")
@needs(Role.READ)
def list_runs(about: About, runner: Work, limit: Limit = DEFAULT_LIMIT) -> list[RunView]:
    """Work that was started through this API, newest first."""
    return [run_view(run) for run in runner.recent(about.pipeline.pipeline_id, limit)]


@router.get(f"{ONE}/runs/{{run_id}}")
@needs(Role.READ)
def get_run(about: About, runner: Work, run_id: Annotated[str, Path(max_length=250)]) -> RunView:
    """The state of started work, its result or error, and the end of its log."""
    found = runner.find(about.pipeline.pipeline_id, run_id)
    if found is None:
        raise no_such_run()
    return run_view(found)


def _start(
    verb: Verb, about: Subject, body: Body, actor: Caller, runner: Runner, key: str | None
) -> RunView:
    options = body.model_dump(exclude_none=True)
    if options.get("tables") is not None:
        options["tables"] = list(known_tables(about.pipeline, options["tables"]) or ())
    return run_view(runner.start(Task(verb, about.pipeline.pipeline_id, options), actor, key))
