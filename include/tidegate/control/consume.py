"""Changes as they stand in the change log, from any position, for people and programs (I10)."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from pyiceberg.table import Table

from tidegate.config.pipeline import PipelineConfig
from tidegate.config.platform import PlatformConfig
from tidegate.control.tables import known_tables
from tidegate.envelope.change import Change, Op, Row
from tidegate.envelope.position import Position, read_position
from tidegate.errors import ConfigError
from tidegate.lake.catalog import open_catalog
from tidegate.lake.change_log import ChangeLog
from tidegate.lake.log_reader import Span, Wanted, read
from tidegate.lake.schema_history import SchemaHistory

BEGINNING: Final = "beginning"
NOW: Final = "now"
POLL_SECONDS: Final = 1.0
"""One look at the log's metadata; capture commits every few seconds at most."""


@dataclass(frozen=True, slots=True)
class ChangeRecord:
    """One change, by column, in the source's own text."""

    position: str
    table: str
    op: str
    tx_id: int | None
    committed_at: datetime | None
    captured_at: datetime
    event_id: str
    schema_id: str
    key: Row | None
    before: Row | None
    after: Row | None
    unchanged: tuple[str, ...]  # columns of `after` that the source did not send
    left_out: tuple[str, ...]  # columns of `after` that were too large to be captured


def wanted(
    pipeline: PipelineConfig,
    *,
    tables: Sequence[str] | None = None,
    ops: Sequence[str] | None = None,
    key: Sequence[str] | None = None,
    since: datetime | None = None,
) -> Wanted:
    """A filter, its names checked."""
    known = {op.value for op in Op}
    unknown = sorted(set(ops or ()) - known)
    if unknown:
        raise ConfigError(
            "consume.op",
            f"{', '.join(unknown)} is no operation",
            hint="c create, u update, d delete, t truncate, r read by a sweep, m message",
        )
    names = known_tables(pipeline, tables) or ()
    return Wanted(frozenset(names), frozenset(ops or ()), tuple(key or ()), since)


def changes(
    pipeline: PipelineConfig,
    platform: PlatformConfig,
    *,
    after: str = BEGINNING,
    choice: Wanted | None = None,
    follow: threading.Event | None = None,
    poll_seconds: float = POLL_SECONDS,
) -> Iterator[Change]:
    """Changes after a place, in log order: ``beginning``, ``now``, a position or an LSN.

    Up to what is captured now; with ``follow`` until that is set, waiting for more. Rows are read
    as they are asked for: whoever stops early has read no more than a window.
    """
    catalog = open_catalog(platform, pipeline)
    log, history = ChangeLog(catalog, pipeline), SchemaHistory(catalog, pipeline)
    table = log.table()
    head = log.head_of(table).captured_through
    begun = _start(after, head)
    while True:
        for span in _spans(begun, head):
            yield from read(table, history, span, choice)
        if follow is None:
            return
        begun = head
        found = _wait(log, head, follow, poll_seconds)
        if found is None:
            return
        table, head = found


def record(change: Change) -> ChangeRecord:
    """A change as it is shown."""
    return ChangeRecord(
        position=str(change.position),
        table=change.table,
        op=change.op.value,
        tx_id=change.tx_id,
        committed_at=change.commit_ts,
        captured_at=change.captured_at,
        event_id=change.event_id,
        schema_id=change.schema.schema_id,
        key=change.key,
        before=change.before,
        after=_sent(change),
        unchanged=change.unchanged,
        left_out=change.left_out,
    )


def _sent(change: Change) -> Row | None:
    """The new row without what was not sent: a null there would be a lie."""
    after = change.after
    if after is None:
        return None
    unsent = {*change.unchanged, *change.left_out}
    return {name: value for name, value in after.items() if name not in unsent}


def _start(after: str, head: Position) -> Position | None:
    if after == BEGINNING:
        return None
    return head if after == NOW else read_position(after, head.epoch)


def _spans(begun: Position | None, head: Position) -> Iterator[Span]:
    """What lies between, an older epoch first where the place is of one."""
    if begun is not None and begun.epoch != head.epoch:
        yield Span(begun.epoch, begun.place)
        begun = None
    yield Span(head.epoch, None if begun is None else begun.place, head.place)


def _wait(
    log: ChangeLog, seen: Position, stop: threading.Event, poll_seconds: float
) -> tuple[Table, Position] | None:
    """The log once it moved on; None if ``stop`` came first."""
    while not stop.wait(poll_seconds):
        table = log.table()
        head = log.head_of(table).captured_through
        if head != seen:
            return table, head
    return None
