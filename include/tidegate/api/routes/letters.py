"""Dead letters: looked at, redriven, discarded."""

from __future__ import annotations

from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Query, status

from tidegate.api.access import Role, needs
from tidegate.api.models.actions import Discarded, Letter, LetterChoice, LetterDetail, RunView
from tidegate.api.pages import DEFAULT_LIMIT, Cursor, Limit, Page, page
from tidegate.api.routes.subject import ONE, About, Actor, Key, Work, run_view
from tidegate.api.runner import Verb
from tidegate.api.runner import Work as Task
from tidegate.control import dead_letters
from tidegate.control.tables import known_tables
from tidegate.lake.dead_letter_choice import Choice
from tidegate.observability.caller import acting_as

router = APIRouter(tags=["dead letters"])
PLACE = f"{ONE}/dead-letters"


@router.get(PLACE)
@needs(Role.READ)
def list_letters(
    about: About,
    table: Annotated[str | None, Query(max_length=200)] = None,
    code: Annotated[str | None, Query(max_length=100)] = None,
    limit: Limit = DEFAULT_LIMIT,
    cursor: Cursor = None,
) -> Page[Letter]:
    """What waits, by table and position; neither keys nor values."""
    choice = Choice(codes=frozenset({code} if code else ()))
    names = known_tables(about.pipeline, [table] if table else None)
    found = dead_letters.find(about.pipeline, about.platform, names, choice).letters
    rows = page(found, lambda row: row.event_id, limit, cursor)
    items = [Letter.model_validate(row) for row in rows.items]
    return Page(items=items, next=rows.next, total=rows.total)


@router.get(f"{PLACE}/{{event_id:uuid}}")
@needs(Role.EDIT)
def get_letter(about: About, event_id: UUID) -> LetterDetail:
    """One letter with the change it holds. Shows row values, so it needs more than a look."""
    found = dead_letters.show(about.pipeline, about.platform, str(event_id))
    return LetterDetail(
        letter=Letter.model_validate(found.letter),
        key=list(found.letter.key),
        schema_id=found.schema_id,
        committed_at=found.committed_at,
        before=found.before,
        after=found.after,
        unchanged=list(found.unchanged),
        headers=found.headers,
    )


@router.post(f"{PLACE}/redrive", status_code=status.HTTP_202_ACCEPTED)
@needs(Role.EDIT)
def redrive(
    about: About, body: LetterChoice, actor: Actor, runner: Work, key: Key = None
) -> RunView:
    """Apply letters once more, in order; all letters of a row go together."""
    known_tables(about.pipeline, body.tables)
    task = Task(Verb.REDRIVE, about.pipeline.pipeline_id, body.model_dump(exclude_none=True))
    return run_view(runner.start(task, actor, key))


@router.post(f"{PLACE}/discard")
@needs(Role.ADMIN)
def discard(about: About, body: LetterChoice, actor: Actor) -> Discarded:
    """Decide that letters are never applied. What waits behind them is applied by a redrive."""
    choice = Choice(event_ids=frozenset(body.event_ids or ()), codes=frozenset(body.codes or ()))
    with acting_as(actor):
        found = dead_letters.discard(
            about.pipeline,
            about.platform,
            known_tables(about.pipeline, body.tables),
            choice,
            actor=str(actor),
            dry_run=body.dry_run,
        )
    letters = [Letter.model_validate(row) for row in found.letters]
    return Discarded(discarded=found.discarded, letters=letters)
