"""The log of a source as it is read: batches of changes, and the stream they come from."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import pyarrow as pa

from tidegate.envelope.position import Position
from tidegate.names import TableId
from tidegate.schema.table import TableSchema
from tidegate.schema.table_facts import TableFacts


@dataclass(frozen=True, slots=True)
class SchemaSeen:
    """A schema the log uses from ``at`` on."""

    schema: TableSchema
    at: Position


@dataclass(frozen=True, slots=True)
class TableHold:
    """A table whose values changed without rows in the log: only a sweep brings it right (I8)."""

    table: str  # str(TableId)
    reason: str  # never a value, never the statement (I9)
    standing: bool = False
    """It is so as long as the table is what it is, and told at every look: its sweep refuses."""


@dataclass(frozen=True, slots=True)
class Altered:
    """A statement of the log says that it changed a table: what a look finds there has an
    explanation. Columns that left and came are named in lower case, whatever rows tell."""

    table: TableId
    at: Position
    left: frozenset[str] = frozenset()
    came: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class ChangeBatch:
    """Rows of the change log, decoded.

    ``rows`` follow ``envelope.log_rows.ARROW_SCHEMA``; rows of one table are in log order, tables
    follow one another. ``through`` is set if nothing at or before that boundary is still to come;
    an empty batch with ``through`` says that the source was quiet up to there.
    """

    rows: pa.Table
    schemas: tuple[SchemaSeen, ...] = ()
    through: Position | None = None
    transactions: int = 0
    raw_bytes: int = 0
    rewritten: tuple[tuple[TableId, Position], ...] = ()
    """Tables whose old rows got other values without an event, and where."""
    astray: tuple[tuple[TableId, Position], ...] = ()
    """Tables with rows under another name, which are not among ``rows``, and where."""
    altered: tuple[Altered, ...] = ()
    holds: tuple[TableHold, ...] = ()  # closed before anything of this batch is committed


class ChangeStream(Protocol):
    """Changes in commit order, whole transactions, over one connection.

    Order: transactions by commit; batches never run backwards. Duplicates: none within a stream; a
    new stream after ``confirm(p)`` may repeat what lies after ``p`` only. Durability: the source
    keeps everything after the confirmed position (I2). Concurrency: one thread, one stream per
    slot.
    """

    def __iter__(self) -> Iterator[ChangeBatch]:
        """Ends by itself once everything up to ``until`` was delivered; otherwise never."""
        ...

    def confirm(self, position: Position) -> None:
        """Let the source forget everything up to ``position``, which must be durable (I2)."""
        ...

    def settle(self) -> None:
        """Wait until the source has noted the last confirmation."""
        ...

    def look(self) -> Mapping[TableId, TableFacts]:
        """The tables as the catalog has them now, for changes that send no rows; empty where the
        log tells everything."""
        ...

    def keep_alive(self) -> None:
        """Tell the source that we live; called while the consumer is busy elsewhere."""
        ...


@runtime_checkable
class Comparing(Protocol):
    """A stream whose looks mean more beside those before them: what became of a table's rows
    follows from both."""

    def compare(
        self, known: Mapping[TableId, TableFacts], through: Position
    ) -> Mapping[TableId, TableFacts]:
        """:meth:`ChangeStream.look`, with what changed since ``known``, which are the looks in
        force at ``through``: the boundary that is about to be committed, and lies before now."""
        ...
