"""What a file of the change log holds, from its bounds alone: no row is read."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from pyiceberg.conversions import from_bytes
from pyiceberg.manifest import DataFile
from pyiceberg.table import Table
from pyiceberg.types import StringType, TimestamptzType

from tidegate.envelope.position import Position
from tidegate.lake.log_table import LOG_SCHEMA

_EPOCH, _POSITION, _CAPTURED_AT, _TABLE = (
    LOG_SCHEMA.find_field(name).field_id for name in ("epoch", "position", "captured_at", "table")
)
_MICROSECONDS: Final = 1_000_000


@dataclass(frozen=True, slots=True)
class FileSpan:
    """Rows of one epoch: the tables and places from first to last, captured between times
    (microseconds since 1970)."""

    epoch: str
    first_table: str
    last_table: str
    first_place: str
    last_place: str
    since: int
    until: int

    def covers(self, table: str) -> bool:
        """Whether it may hold rows of ``table``."""
        return self.first_table <= table <= self.last_table


def span_of(file: DataFile) -> FileSpan | None:
    """None where the bounds do not tell: then nothing is certain."""
    low, high = file.lower_bounds or {}, file.upper_bounds or {}
    if not all(f in low and f in high for f in (_EPOCH, _POSITION, _CAPTURED_AT, _TABLE)):
        return None
    epoch = _text(low[_EPOCH])
    if epoch != _text(high[_EPOCH]):
        return None
    return FileSpan(
        epoch=epoch,
        first_table=_text(low[_TABLE]),
        last_table=_text(high[_TABLE]),
        first_place=_text(low[_POSITION]),
        last_place=_text(high[_POSITION]),
        since=int(from_bytes(TimestamptzType(), low[_CAPTURED_AT])),
        until=int(from_bytes(TimestamptzType(), high[_CAPTURED_AT])),
    )


@dataclass(frozen=True, slots=True)
class Backlog:
    """The change log's files: how much, how old, and what waits for a table."""

    bytes: int
    spans: tuple[FileSpan, ...]

    @classmethod
    def read(cls, table: Table) -> Backlog:
        files = [task.file for task in table.scan().plan_files()]
        return cls(
            sum(int(file.file_size_in_bytes) for file in files),
            tuple(span for span in map(span_of, files) if span is not None),
        )

    @property
    def oldest(self) -> datetime | None:
        """When the oldest row was captured."""
        return _earliest(self.spans)

    def waiting_since(self, table: str, after: Position) -> datetime | None:
        """When the first change of ``table`` after a position was captured; None: none waits.

        By file: a file of several tables, or one that began before the position, gives an earlier
        time than the change's own, never a later one.
        """
        return _earliest(
            span
            for span in self.spans
            if span.epoch == after.epoch and span.covers(table) and span.last_place > after.place
        )


def _earliest(spans: Iterable[FileSpan]) -> datetime | None:
    first = min((span.since for span in spans), default=None)
    return None if first is None else datetime.fromtimestamp(first / _MICROSECONDS, UTC)


def _text(bound: bytes) -> str:
    return str(from_bytes(StringType(), bound))
