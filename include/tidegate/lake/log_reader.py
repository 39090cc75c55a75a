"""Changes of the log in their order, from any position, in bounded memory.

Order: by position within an epoch. Duplicates: none. The log's files are sorted by table, then
position, so that a reader of one table skips most of them; to give all tables in log order, files
whose places overlap are read together, in windows of :data:`WINDOW_ROWS` rows. What a snapshot of
the log held when it was planned stays readable for ``retention.READER_GRACE``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg import expressions
from pyiceberg.expressions import And, BooleanExpression
from pyiceberg.io.pyarrow import ArrowScan
from pyiceberg.table import FileScanTask, Table

from tidegate.envelope.change import Change, Op
from tidegate.envelope.position import Position
from tidegate.lake.log_files import span_of
from tidegate.lake.schema_history import SchemaHistory

WINDOW_ROWS: Final = 50_000
"""Rows held at once, as Arrow: some 50 MB of rows of a kilobyte. Every window of a group reads the
group's files again, so that smaller ones would cost time."""
_SLICE_ROWS: Final = 1_000
"""Rows that are Python objects at once."""
_ALL: Final = ("*",)


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which changes. Tables, operations and times are pushed down to the scan."""

    tables: frozenset[str] = field(default_factory=frozenset)  # empty: all
    ops: frozenset[str] = field(default_factory=frozenset)  # empty: all
    key: tuple[str, ...] = ()
    """Values of the key's columns, in key order, in the source's text; matches the key before or
    after the change."""
    since: datetime | None = None  # committed at the source then or later

    def matches(self, change: Change) -> bool:
        """What a scan cannot decide: the key is a list."""
        if not self.key:
            return True
        return self.key in (change.key_values, change.new_key_values)


@dataclass(frozen=True, slots=True)
class Span:
    """Changes of one epoch, after a place up to another; None: from the first, to the last."""

    epoch: str
    after: str | None = None
    until: str | None = None


@dataclass(frozen=True, slots=True)
class Tally:
    """How many changes a span holds, and from when to when they were committed."""

    changes: int = 0
    first_at: datetime | None = None
    last_at: datetime | None = None


def read(
    table: Table, history: SchemaHistory, span: Span, wanted: Wanted | None = None
) -> Iterator[Change]:
    """Changes of ``span`` in log order."""
    wanted = wanted or Wanted()
    base = _filter(span, wanted)
    for group in _groups(table.scan(base).plan_files()):
        for window in _windows(table, base, group):
            batches = list(_batches(table, window, group, _ALL))
            if not batches:
                continue
            rows = pa.Table.from_batches(batches).sort_by("position")
            for part in rows.to_batches(max_chunksize=_SLICE_ROWS):
                found = (_change(row, history) for row in part.to_pylist())
                yield from (change for change in found if wanted.matches(change))


def tally(table: Table, span: Span, source_table: str) -> Tally:
    """Count the changes of one table; reads two narrow columns."""
    base = _filter(span, Wanted(tables=frozenset({source_table})))
    count, first, last = 0, None, None
    for task in table.scan(base).plan_files():
        for batch in _batches(table, base, [task], ("position", "commit_ts")):
            if batch.num_rows:
                count += batch.num_rows
                times = pc.min_max(batch.column("commit_ts")).as_py()
                first = _extreme(min, first, times["min"])
                last = _extreme(max, last, times["max"])
    return Tally(count, first, last)


def leaves_values_out(table: Table, span: Span, source_table: str) -> bool:
    """Whether the source sent some change of one table without all of its values."""
    base = _filter(span, Wanted(tables=frozenset({source_table})))
    for task in table.scan(base).plan_files():
        for batch in _batches(table, base, [task], ("position", "unchanged")):
            if pc.any(pc.greater(pc.list_value_length(batch.column("unchanged")), 0)).as_py():
                return True
    return False


def first_place(table: Table, span: Span, source_table: str, also: BooleanExpression) -> str | None:
    """The lowest place of a change of one table that fits ``also`` as well."""
    base = And(_filter(span, Wanted(tables=frozenset({source_table}))), also)
    places = (
        pc.min(batch.column("position")).as_py()
        for batch in _batches(table, base, table.scan(base).plan_files(), ("position",))
        if batch.num_rows
    )
    return min(places, default=None)


def _extreme(choose: Any, known: datetime | None, found: datetime | None) -> datetime | None:
    if known is None or found is None:
        return found if known is None else known
    return choose(known, found)  # type: ignore[no-any-return]


def _filter(span: Span, wanted: Wanted) -> BooleanExpression:
    base: BooleanExpression = compare(expressions.EqualTo, "epoch", span.epoch)
    if span.after is not None:
        base = And(base, compare(expressions.GreaterThan, "position", span.after))
    if span.until is not None:
        base = And(base, compare(expressions.LessThanOrEqual, "position", span.until))
    if wanted.tables:
        base = And(base, compare(expressions.In, "table", set(wanted.tables)))
    if wanted.ops:
        base = And(base, compare(expressions.In, "op", set(wanted.ops)))
    if wanted.since is not None:
        since = wanted.since.isoformat()
        base = And(base, compare(expressions.GreaterThanOrEqual, "commit_ts", since))
    return base


def compare(test: Any, column: str, value: Any) -> BooleanExpression:
    """A predicate; PyIceberg's own signatures confuse the type checker's pydantic plug-in."""
    return test(column, value)  # type: ignore[no-any-return]


def _groups(tasks: Iterable[FileScanTask]) -> Iterator[list[FileScanTask]]:
    """Files whose places overlap, in the order of their places. Captures commit disjoint ranges, so
    a group is the files of one commit, unless compaction joined several."""
    placed = [(_places(task), task) for task in tasks]
    group: list[FileScanTask] = []
    end = ""
    for (first, last), task in sorted(placed, key=lambda entry: entry[0]):
        if group and first > end:
            yield group
            group = []
        group.append(task)
        end = max(end, last)
    if group:
        yield group


def _places(task: FileScanTask) -> tuple[str, str]:
    span = span_of(task.file)
    # Without bounds it may hold anything: then it belongs to every other file.
    return ("", "~") if span is None else (span.first_place, span.last_place)


def _windows(
    table: Table, base: BooleanExpression, group: list[FileScanTask]
) -> Iterator[BooleanExpression]:
    """The group's filter, cut into pieces of at most :data:`WINDOW_ROWS` rows."""
    if sum(int(task.file.record_count) for task in group) <= WINDOW_ROWS:
        yield base
        return
    places = pa.chunked_array(
        [
            batch.column("position").cast(pa.string())
            for batch in _batches(table, base, group, ("position",))
        ],
        type=pa.string(),
    )
    ordered = places.take(pc.sort_indices(places))
    low: str | None = None
    for at in range(WINDOW_ROWS - 1, len(ordered) + WINDOW_ROWS - 1, WINDOW_ROWS):
        high = ordered[min(at, len(ordered) - 1)].as_py()
        window = And(base, compare(expressions.LessThanOrEqual, "position", high))
        yield (
            window
            if low is None
            else And(window, compare(expressions.GreaterThan, "position", low))
        )
        low = high


def _batches(
    table: Table,
    condition: BooleanExpression,
    tasks: Iterable[FileScanTask],
    columns: tuple[str, ...],
) -> Iterator[pa.RecordBatch]:
    schema = table.schema() if columns == _ALL else table.schema().select(*columns)
    scan = ArrowScan(table.metadata, table.io, schema, condition)
    for task in tasks:  # one at a time: given several, a scan reads them all at once
        yield from scan.to_record_batches([task])


def _change(row: dict[str, Any], history: SchemaHistory) -> Change:
    return Change(
        position=Position(row["epoch"], row["position"]),
        table=row["table"],
        op=Op(row["op"]),
        tx_id=row["tx_id"],
        commit_ts=row["commit_ts"],
        captured_at=row["captured_at"],
        event_id=row["event_id"],
        schema=history.get(row["schema_id"]),
        key_values=_texts(row["key"]),
        before_values=_texts(row["before"]),
        after_values=_texts(row["after"]),
        unchanged_slots=tuple(row["unchanged"] or ()),
    )


def _texts(values: list[str | None] | None) -> tuple[str | None, ...] | None:
    return None if values is None else tuple(values)
