"""A table as it is read: at a cut, in chunks, with what the source itself counted."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from tidegate.connectors.selecting import Selecting
from tidegate.envelope.position import Position
from tidegate.envelope.visible import Visible
from tidegate.names import TableId
from tidegate.schema.table import Column, TableSchema
from tidegate.schema.table_facts import TableFacts

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True, slots=True)
class Chunk:
    """A part of a table that one task reads. JSON in, JSON out: sweeps resume from it."""

    id: str
    predicate_sql: str  # true for exactly this chunk's rows
    lower: tuple[str, ...] | None = None  # inclusive, key text; None = from the beginning
    upper: tuple[str, ...] | None = None  # exclusive, key text; None = to the end
    estimate: int = 0
    relation: str | None = None  # quoted name of the partition to read, if not the table

    def to_dict(self) -> dict[str, Any]:
        return {
            "id": self.id,
            "predicate_sql": self.predicate_sql,
            "lower": None if self.lower is None else list(self.lower),
            "upper": None if self.upper is None else list(self.upper),
            "estimate": self.estimate,
            "relation": self.relation,
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Chunk:
        lower, upper = data["lower"], data["upper"]
        return cls(
            id=data["id"],
            predicate_sql=data["predicate_sql"],
            lower=None if lower is None else tuple(lower),
            upper=None if upper is None else tuple(upper),
            estimate=data["estimate"],
            relation=data.get("relation"),
        )


@dataclass(frozen=True, slots=True)
class JdbcRead:
    """How Spark reads at the cut. ``properties`` hold the password: never log them (I9)."""

    url: str
    driver: str
    properties: Mapping[str, str] = field(repr=False)
    session_init: str


@dataclass(frozen=True, slots=True)
class KeyFacts:
    """An integer key column in numbers; ``low`` and ``high`` are None for a table without rows."""

    total: int
    low: int | None = None
    high: int | None = None


@dataclass(frozen=True, slots=True)
class Survey:
    """What one pass over a table at the cut tells.

    ``plain`` columns hold only values that survive a native read: dates arrive as days since 1970,
    timestamps without zone as the instant of the same reading in UTC, others as they are.
    """

    rows: int
    plain: frozenset[str] = frozenset()
    keys: Mapping[str, KeyFacts] = field(default_factory=dict)
    """Of the integer key columns: the audit compares them."""
    too_large: Mapping[str, int] = field(default_factory=dict)
    """Columns with values above ``capture.max_value_bytes``, and in how many rows."""


@dataclass(frozen=True, slots=True)
class Settled:
    """What a table held at exactly ``position``."""

    position: Position
    survey: Survey


def lost_flag(slot: int) -> str:
    """The column that says whether the value of ``slot`` was left out (``text_sql``)."""
    return f"_cdc_lost{slot}"


class Cut(Protocol):
    """The tables as they were at one position, for as long as the context is open.

    What lies at or before ``position`` in the log is visible to every read; later changes may be,
    unless it is an :class:`ExactCut`. The rows become exact by draining the log from ``position``
    to that of :meth:`settle`.
    """

    @property
    def position(self) -> Position: ...

    @property
    def jdbc(self) -> JdbcRead: ...

    def schema(self, table: TableId) -> TableSchema:
        """The table's columns as the log sends them."""
        ...

    def facts(self, table: TableId) -> TableFacts | None:
        """The catalog's traces at the cut; None where the log tells everything."""
        ...

    def count(self, table: TableId) -> int:
        """Rows at the cut."""
        ...

    def chunks(
        self,
        table: TableId,
        schema: TableSchema,
        chunk_rows: int,
        *,
        by_key: bool | None = None,
        after: tuple[str, ...] | None = None,
    ) -> list[Chunk]:
        """Disjoint chunks, in order, that cover the table (or its keys at or above ``after``).

        ``by_key=True``: key ranges, valid at any other cut too (resumable). ``False``: physical
        ranges, fastest, valid at this cut only. ``None``: by key where there is one.
        """
        ...

    def survey(self, table: TableId, schema: TableSchema, predicate: str | None = None) -> Survey:
        """Rows at the cut (those that ``predicate`` lets through), and which columns can be read
        natively though their type cannot."""
        ...

    def settle(self, table: TableId, schema: TableSchema) -> Settled:
        """After the last read: a position that no read was later than, and the table there."""
        ...

    def select_sql(
        self,
        table: TableId,
        schema: TableSchema,
        predicate: Chunk | str | None = None,
        *,
        plain_columns: frozenset[str] = frozenset(),
        too_large: Collection[str] = (),
    ) -> str:
        """The query a task runs; column names and order are the schema's.

        ``plain_columns`` of this cut's :class:`Survey` are read natively. Of the columns
        ``too_large``, something small stands for values that are so: none that is a value.
        """
        ...

    def text_sql(
        self,
        table: TableId,
        schema: TableSchema,
        predicate: Chunk | str | None = None,
        *,
        too_large: Collection[str] = (),
    ) -> str:
        """Like ``select_sql``, every column as the log prints it (a float may be spelled
        otherwise): what a dead letter keeps. Of the columns ``too_large``, values that are so are
        NULL, and :func:`lost_flag` of their slots says which."""
        ...

    def too_large_sql(self, column: Column) -> str:
        """A predicate, never NULL: a row's value is larger than ``capture.max_value_bytes``."""
        ...

    def ordered_sql(self, column: Column) -> str:
        """``column`` as an expression that compares as the lake does: text by its bytes."""
        ...

    def native(self, column: Column) -> bool:
        """True: JDBC delivers the final value. False: the log path's text, cast like the log."""
        ...

    def check(self) -> None:
        """Raise if the cut no longer holds (connection lost, maximum age reached)."""
        ...


class ExactCut(Cut, Selecting, Protocol):
    """A transaction is visible to every read if and only if its changes lie at or before
    ``position`` in the log: what comparing needs. It is one of the two that follow."""


@runtime_checkable
class SharedCut(ExactCut, Protocol):
    """Any number of connections read it (``Capability.CUT_SHARE``)."""

    @property
    def snapshot_name(self) -> str:
        """What a connection of the source names to join."""
        ...


@runtime_checkable
class BesideCut(SharedCut, Protocol):
    """A cut that was made while transactions ran. Its rows are those of one snapshot, but whether
    a change between ``position`` and ``visible.through`` is among them only ``visible`` says."""

    @property
    def visible(self) -> Visible: ...


@runtime_checkable
class LoneCut(ExactCut, Protocol):
    """One connection reads it, the cut's own: no column is ``native``, ``select_sql`` gives every
    one of them as the log prints it."""

    def fetch(self, sql: str, rows: int) -> Iterator[pa.Table]:
        """The answer in texts, ``rows`` at a time; of no row, an empty table."""
        ...


@runtime_checkable
class ComparingCut(Protocol):
    """A cut whose facts mean more beside a look before them."""

    def facts_since(self, table: TableId, known: TableFacts | None) -> TableFacts:
        """:meth:`Cut.facts`, with what became of the rows since ``known``."""
        ...


def looked(cut: Cut, table: TableId, known: TableFacts | None) -> TableFacts | None:
    """A cut's facts, beside those ``known`` before where it compares them."""
    return cut.facts_since(table, known) if isinstance(cut, ComparingCut) else cut.facts(table)
