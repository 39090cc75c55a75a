"""Dead letters, looked at and discarded; redriving them is a job of its own (jobs.redrive)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from pyiceberg.catalog import Catalog

from tidegate.config.pipeline import PipelineConfig
from tidegate.config.platform import PlatformConfig
from tidegate.envelope.log_rows import too_large
from tidegate.errors import ConfigError
from tidegate.lake.audit_trail import Action, AuditTrail
from tidegate.lake.catalog import load, open_catalog
from tidegate.lake.dead_letter_choice import Choice
from tidegate.lake.dead_letter_fold import Letter
from tidegate.lake.dead_letters import DeadLetters
from tidegate.lake.schema_history import SchemaHistory
from tidegate.lake.topics import Topics
from tidegate.names import TableId


@dataclass(frozen=True, slots=True)
class LetterRow:
    """A letter without its values."""

    table: str
    event_id: str
    role: str  # failed | waiting
    op: str
    key: tuple[str | None, ...]
    position: str
    code: str
    message: str
    first_seen: datetime
    last_seen: datetime
    attempts: int


@dataclass(frozen=True, slots=True)
class Letters:
    """What waits, in the order of tables and positions."""

    pipeline_id: str
    letters: tuple[LetterRow, ...]
    discarded: bool = False
    """Whether these were discarded just now."""


@dataclass(frozen=True, slots=True)
class LetterDetail:
    """One letter with the change it holds, by column."""

    letter: LetterRow
    schema_id: str
    committed_at: datetime | None
    before: dict[str, str | None] | None
    after: dict[str, str | None] | None
    unchanged: tuple[str, ...]
    """Columns that the source did not send, or whose value was too large to be taken."""
    headers: dict[str, str] = field(default_factory=dict)
    """The platform specification's facts under its names; none without dlq.include_headers."""


def find(
    pipeline: PipelineConfig,
    platform: PlatformConfig,
    tables: Sequence[str] | None,
    choice: Choice,
) -> Letters:
    """Letters that wait."""
    catalog = open_catalog(platform, pipeline)
    found = _waiting(catalog, pipeline, tables, choice)
    return Letters(pipeline.pipeline_id, tuple(_row(letter) for letter in found))


def show(pipeline: PipelineConfig, platform: PlatformConfig, event_id: str) -> LetterDetail:
    """One letter, values included: whoever asks for it is shown the row."""
    catalog = open_catalog(platform, pipeline)
    found = _waiting(catalog, pipeline, None, Choice(event_ids=frozenset({event_id})))
    if not found:
        raise ConfigError(
            "dead_letters.unknown",
            f"no letter of pipeline {pipeline.pipeline_id} that waits has the event id {event_id}",
            hint="list them with `tidegate dead-letters list`",
        )
    row = DeadLetters(catalog, pipeline).values(found)[event_id]
    told = _headers(pipeline, found[0], row) if platform.dlq.include_headers else {}
    names = [c.name for c in SchemaHistory(catalog, pipeline).get(found[0].schema_id).columns]
    return LetterDetail(
        letter=_row(found[0]),
        schema_id=found[0].schema_id,
        committed_at=found[0].commit_ts,
        before=_by_name(names, row["before"]),
        after=_by_name(names, row["after"]),
        unchanged=tuple(names[max(slot, too_large(slot))] for slot in row["unchanged"] or ()),
        headers=told,
    )


def _headers(pipeline: PipelineConfig, letter: Letter, row: Mapping[str, Any]) -> dict[str, str]:
    """What a dead-letter topic's message has in its headers. The change log is one partition."""
    return {
        "dlq.source_topic": Topics(pipeline).of(TableId.parse(letter.table)),
        "dlq.source_partition": "0",
        "dlq.source_offset": str(letter.position.lsn),
        "dlq.error_type": letter.code,
        "dlq.error_message": letter.message,
        "dlq.stacktrace": row.get("stack") or "",
        "dlq.timestamp": letter.first_seen.isoformat(),
        "dlq.sink_id": row.get("sink_id") or pipeline.lake_id,
    }


def discard(
    pipeline: PipelineConfig,
    platform: PlatformConfig,
    tables: Sequence[str] | None,
    choice: Choice,
    *,
    actor: str,
    dry_run: bool = False,
) -> Letters:
    """Decide that the chosen letters are never applied. Others of the same rows stay: they are
    applied by the next redrive."""
    catalog = open_catalog(platform, pipeline)
    found = _waiting(catalog, pipeline, tables, choice)
    if found and not dry_run:
        concerned = list(dict.fromkeys(letter.table for letter in found))
        letters = DeadLetters(catalog, pipeline)
        trail = AuditTrail(catalog, pipeline)
        with trail.action(Action.DISCARD, concerned, letters=len(found)):
            for table in concerned:
                own = [letter.event_id for letter in found if letter.table == table]
                letters.discard(table, actor, own)
    rows = tuple(_row(letter) for letter in found)
    return Letters(pipeline.pipeline_id, rows, discarded=not dry_run and bool(rows))


def _waiting(
    catalog: Catalog, pipeline: PipelineConfig, tables: Sequence[str] | None, choice: Choice
) -> list[Letter]:
    known = DeadLetters(catalog, pipeline)
    found: list[Letter] = []
    for name in pipeline.source.tables if tables is None else tables:
        target = pipeline.target(TableId.parse(name))
        waiting = known.waiting(target.source, load(catalog, target.identifier))
        found += [letter for letter in waiting if choice.matches(letter)]
    return found


def _row(letter: Letter) -> LetterRow:
    return LetterRow(
        table=letter.table,
        event_id=letter.event_id,
        role=letter.role.value,
        op=letter.op,
        key=letter.key,
        position=str(letter.position),
        code=letter.code,
        message=letter.message,
        first_seen=letter.first_seen,
        last_seen=letter.last_seen,
        attempts=letter.attempts,
    )


def _by_name(names: Sequence[str], values: Iterable[Any] | None) -> dict[str, str | None] | None:
    return None if values is None else dict(zip(names, values, strict=True))
