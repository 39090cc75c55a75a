"""Connector protocol v4: one lifecycle for sources, destinations and transforms.

``open → OpenInfo``, ``validate → ValidationReport``, ``run(RunRequest) → RunSummary``, ``close``.
Records are frozen; each connector has its own strict settings model. A change source adds
``provision``, ``changes`` and ``cut``; what it promises about them is said at :class:`Source`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import Any, Final, Literal, Protocol, runtime_checkable

import pyarrow as pa

from tidegate.connectors.selecting import Selecting
from tidegate.connectors.source_status import SourceStatus
from tidegate.envelope.position import Position
from tidegate.names import TableId
from tidegate.schema.table import Column, TableSchema
from tidegate.schema.table_facts import TableFacts

PROTOCOL_VERSION: Final = "4.0"


class ConnectorRole(StrEnum):
    SOURCE = "source"
    DESTINATION = "destination"
    TRANSFORM = "transform"


class RunPhase(StrEnum):
    DISCOVER = "discover"
    READ = "read"
    WRITE = "write"
    TRANSFORM = "transform"


class Severity(StrEnum):
    ERROR = "error"  # deploy refuses
    WARNING = "warning"  # worth knowing
    INFO = "info"  # how things are, nothing to do


@dataclass(frozen=True, slots=True)
class OpenInfo:
    """What a connector says of itself once it is connected."""

    connector_id: str
    role: ConnectorRole
    system: str  # e.g. PostgreSQL 16.4
    protocol_version: str = PROTOCOL_VERSION
    capabilities: tuple[str, ...] = ()
    default_limits: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Problem:
    """One finding of ``validate``, with the SQL that fixes it where SQL can."""

    code: str
    severity: Severity
    message: str
    table: str | None = None
    fix_sql: str | None = None

    def __str__(self) -> str:
        where = f"{self.table}: " if self.table else ""
        fix = f" → {self.fix_sql}" if self.fix_sql else ""
        return f"{where}{self.message} [{self.code}]{fix}"

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True, slots=True)
class ValidationReport:
    """Every problem at once; ``ok`` means that no error is among them."""

    problems: tuple[Problem, ...] = ()

    @property
    def status(self) -> Literal["ok", "warning", "failed"]:
        if self.errors:
            return "failed"
        return "warning" if self.warnings else "ok"

    @property
    def ok(self) -> bool:
        return not self.errors

    @property
    def errors(self) -> tuple[Problem, ...]:
        return tuple(p for p in self.problems if p.severity is Severity.ERROR)

    @property
    def warnings(self) -> tuple[Problem, ...]:
        return tuple(p for p in self.problems if p.severity is Severity.WARNING)

    def to_dict(self) -> dict[str, Any]:
        return {"status": self.status, "problems": [p.to_dict() for p in self.problems]}


@dataclass(frozen=True, slots=True)
class RunRequest:
    """One bounded piece of work through the uniform door."""

    phase: RunPhase
    streams: tuple[str, ...] = ()  # table names; empty = all of the pipeline
    dry_run: bool = False
    max_records: int | None = None


@dataclass(frozen=True, slots=True)
class RunSummary:
    role: ConnectorRole
    phase: RunPhase
    records: int = 0
    schemas: tuple[TableSchema, ...] = ()


@dataclass(frozen=True, slots=True)
class AvailableTable:
    """A table that a pipeline could take."""

    table: str
    keyed: bool  # has a primary key
    rows_about: int
    bytes: int | None = None


@runtime_checkable
class ListsTables(Protocol):
    """A source that can say what there is to take. Optional: `tidegate init` uses it."""

    def available(self) -> tuple[AvailableTable, ...]:
        """Tables that the user may read."""
        ...


class Connector(Protocol):
    """What every connector has, whatever its role."""

    def open(self) -> OpenInfo:
        """Connect and identify the other side. Cheap to call again."""
        ...

    def validate(self) -> ValidationReport:
        """Every problem at once, nothing changed on the other side."""
        ...

    def run(self, request: RunRequest) -> RunSummary:
        """One phase, bounded by the request."""
        ...

    def close(self) -> None:
        """End all connections. Safe to call twice."""
        ...


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


class Cut(Selecting, Protocol):
    """The tables as they were at one position, for as long as the context is open.

    Exact where ``shared``: a transaction is visible at the cut if and only if its changes lie at
    or before ``position`` in the log. A source whose connections cannot share a snapshot promises
    less: what lies at or before ``position`` is visible to every read, later changes may be. Its
    rows become exact by draining the log from ``position`` to that of :meth:`settle`.
    """

    @property
    def shared(self) -> bool: ...

    @property
    def position(self) -> Position: ...

    @property
    def snapshot_name(self) -> str: ...

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

    def native(self, column: Column) -> bool:
        """True: JDBC delivers the final value. False: the log path's text, cast like the log."""
        ...

    def check(self) -> None:
        """Raise if the cut no longer holds (connection lost, maximum age reached)."""
        ...


@dataclass(frozen=True, slots=True)
class Provisioned:
    """What ``provision`` found or made."""

    start: Position  # nothing before it will ever be delivered
    publication: str
    slot: str
    actions: tuple[str, ...] = ()  # what was done, in words; empty on a second run


class Source(Connector, Protocol):
    """A database whose log can be followed and whose tables can be read at a cut."""

    @property
    def shared_cuts(self) -> bool:
        """Whether its cuts are ``shared``: verify and reload need that."""
        ...

    def discover(self, table: TableId) -> TableSchema:
        """The table's columns as the log sends them, from the live catalog."""
        ...

    def facts(self, table: TableId, known: int | None) -> TableFacts:
        """Traces of changes that send no rows; ``known`` is the table's number when last seen."""
        ...

    def plan(self, deployment: str) -> tuple[str, ...]:
        """What ``provision`` would do, in words."""
        ...

    def provision(self, deployment: str, *, slot_is_ours: bool, renew: bool = False) -> Provisioned:
        """Create or alter what capture needs; idempotent, marked with ``deployment``.

        ``slot_is_ours``: an existing slot was made by an earlier, interrupted deploy of ours.
        ``renew``: if that slot is lost, make another in its place.
        """
        ...

    def deprovision(
        self, deployment: str, *, slot_is_ours: bool, dry_run: bool = False
    ) -> tuple[str, ...]:
        """Remove exactly what ``provision`` made for ``deployment``; says what, in words."""
        ...

    def changes(
        self, after: Position, *, until: Position | Literal["now"] | None = None
    ) -> AbstractContextManager[ChangeStream]:
        """Everything committed after ``after``; FatalError if the log no longer has it."""
        ...

    def cut(self, tables: tuple[TableId, ...], *, epoch: str) -> AbstractContextManager[Cut]:
        """A consistent view of ``tables``; locks and snapshot live as long as the context (I11)."""
        ...

    def check_history(self, after: Position) -> None:
        """FatalError, with the way back, if the log no longer has everything after ``after``."""
        ...

    def status(self, epoch: str | None = None) -> SourceStatus:
        """Current boundary and slot, for lag and health."""
        ...
