"""Connector protocol v4: one lifecycle for sources, destinations and transforms.

``open → OpenInfo``, ``validate → ValidationReport``, ``run(RunRequest) → RunSummary`` (its records:
:mod:`tidegate.connectors.running`), ``close``. Records are frozen; each connector has its own
strict settings model. What one can do beyond the lifecycle it says as data (:class:`Capability`):
callers ask for that, never for a connector's kind. A change source adds ``provision``, ``changes``
and ``cut``; what it promises about them is said at :class:`Source`.
``tidegate.testing.connector`` holds every source to it.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import Any, Final, Literal, Protocol, runtime_checkable

from tidegate.connectors.changes import ChangeStream
from tidegate.connectors.cut import Cut, ExactCut
from tidegate.connectors.running import ConnectorRole, Host, RunRequest, RunSummary
from tidegate.connectors.source_status import SourceStatus
from tidegate.envelope.position import Position
from tidegate.names import TableId
from tidegate.schema.table import TableSchema
from tidegate.schema.table_facts import TableFacts

PROTOCOL_VERSION: Final = "4.0"


class Capability(StrEnum):
    """What a connector can do: a noun and an action, as the specification names things."""

    SCHEMA_DISCOVER = "schema-discover"  # runs the phase ``discover``
    BATCH_WRITE = "batch-write"  # runs the phase ``write``
    BATCH_TRANSFORM = "batch-transform"  # runs the phase ``transform``
    TABLES_LIST = "tables-list"  # it is a :class:`ListsTables`
    SOURCE_PROVISION = "source-provision"  # something is made at the source, and taken away again
    CHANGES_READ = "changes-read"  # its log can be followed; runs the phase ``read``
    CUT_READ = "cut-read"  # its tables can be read at a cut
    CUT_HOLD = "cut-hold"  # :meth:`Source.hold`
    CUT_SHARE = "cut-share"  # its cuts are :class:`~tidegate.connectors.cut.SharedCut`


SOURCE_CAPABILITIES: Final = frozenset(Capability) - {
    Capability.BATCH_WRITE,
    Capability.BATCH_TRANSFORM,
}
"""All that a source can do."""


ONLY_READING: Final = frozenset(
    {"schema_privilege", "select_privilege", "partition_privilege", "row_security"}
)
"""Codes, after the connector's name, of what keeps a table from being read in full: its changes
are captured all the same."""


class Severity(StrEnum):
    ERROR = "error"  # deploy holds the table, or refuses where it is no single table's
    WARNING = "warning"  # worth knowing
    INFO = "info"  # how things are, nothing to do


@dataclass(frozen=True, slots=True)
class OpenInfo:
    """What a connector says of itself once it is connected."""

    connector_id: str
    role: ConnectorRole
    system: str  # e.g. PostgreSQL 16.4
    protocol_version: str = PROTOCOL_VERSION
    capabilities: frozenset[Capability] = frozenset()
    default_limits: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Problem:
    """One finding of ``validate``, with the SQL that fixes it where SQL can."""

    code: str
    severity: Severity
    message: str
    table: str | None = None
    fix_sql: str | None = None
    tables: tuple[str, ...] = ()
    """Those it concerns, where it is said once for several."""

    @property
    def concerns(self) -> tuple[str, ...]:
        """The tables that wait for it; none: the whole source."""
        return self.tables if self.table is None else (self.table,)

    @property
    def only_reading(self) -> bool:
        """Whether the table's changes are captured in spite of it."""
        return self.code.rpartition(".")[2] in ONLY_READING

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

    @property
    def capabilities(self) -> frozenset[Capability]:
        """What it can do; known without a connection, and the same as :meth:`open` tells."""
        ...

    def open(self) -> OpenInfo:
        """Connect and identify the other side. Cheap to call again."""
        ...

    def validate(self) -> ValidationReport:
        """Every problem at once, nothing changed on the other side. Of one that cannot be reached
        there is nothing to report: it raises what :meth:`open` does."""
        ...

    def run(self, request: RunRequest, host: Host | None = None) -> RunSummary:
        """One phase, bounded by the request; ConfigError for a phase that it does not run. Phases
        that move batches need a ``host``."""
        ...

    def close(self) -> None:
        """End all connections. Safe to call twice."""
        ...


@dataclass(frozen=True, slots=True)
class Provisioned:
    """What ``provision`` found or made."""

    start: Position  # nothing before it will ever be delivered
    objects: Mapping[str, str] = field(default_factory=dict)
    """What capture uses at the source, names by kind: a slot, a publication, a table."""
    actions: tuple[str, ...] = ()  # what was done, in words; empty on a second run


class Destination(Connector, Protocol):
    """Takes batches with the phase ``write`` until the host has no more.

    Order: as the host hands them out. Duplicates: a batch may come again after a crash, and must
    leave the same rows. Durability: a checkpoint is told once everything before it is durable,
    its cursor beside the rows (I1). A record that cannot be taken is told as a dead letter (I7).
    """


class Transform(Connector, Protocol):
    """Makes batches of batches with the phase ``transform``; keeps nothing between runs.

    Order: rows of one key stay in order. Duplicates: the same batch gives the same rows, event ids
    included. What it cannot transform is told as a dead letter (I7), what it leaves out is counted.
    """


@runtime_checkable
class CutsBeside(Protocol):
    """A source whose cuts may have to wait for transactions, and that has a way around it.
    Optional: sweeps use it."""

    def cut_beside(
        self, tables: tuple[TableId, ...], *, head: Position
    ) -> AbstractContextManager[Cut]:
        """Like :meth:`Source.cut`; if that has waited as long as it may, a
        :class:`~tidegate.connectors.cut.BesideCut`."""
        ...


class Source(Connector, Protocol):
    """A database whose log can be followed and whose tables can be read at a cut."""

    def discover(self, table: TableId) -> TableSchema:
        """The table's columns as the log sends them, from the live catalog."""
        ...

    def discover_all(self, tables: tuple[TableId, ...]) -> Mapping[TableId, TableSchema]:
        """Like :meth:`discover`, of many tables."""
        ...

    def facts(self, table: TableId, known: int | None) -> TableFacts:
        """Traces of changes that send no rows; ``known`` is the table's number when last seen."""
        ...

    def plan(self, deployment: str) -> tuple[str, ...]:
        """What ``provision`` would do, in words."""
        ...

    def provision(self, deployment: str, *, ours: bool, renew: bool = False) -> Provisioned:
        """Create or alter what capture needs; idempotent, marked with ``deployment``.

        ``ours``: what exists and cannot say whose it is (a slot) was made by an earlier,
        interrupted deploy of ours. ``renew``: if that is lost, make another in its place.
        """
        ...

    def deprovision(self, deployment: str, *, ours: bool, dry_run: bool = False) -> tuple[str, ...]:
        """Remove exactly what ``provision`` made for ``deployment``; says what, in words."""
        ...

    def changes(
        self, after: Position, *, until: Position | Literal["now"] | None = None
    ) -> AbstractContextManager[ChangeStream]:
        """Everything committed after ``after``; FatalError if the log no longer has it.

        Whoever asks has everything up to ``after``: the source may forget it (I2).
        """
        ...

    def cut(self, tables: tuple[TableId, ...], *, head: Position) -> AbstractContextManager[Cut]:
        """A consistent view of ``tables``; locks and snapshot live as long as the context (I11).
        With ``CUT_SHARE`` it is a :class:`~tidegate.connectors.cut.SharedCut`.

        ``head`` is where the change log stands: the cut's position continues it."""
        ...

    def hold(
        self, tables: tuple[TableId, ...], *, head: Position
    ) -> AbstractContextManager[ExactCut]:
        """Like :meth:`cut`, exact at its position for as long as the context is open.
        ConfigError without ``CUT_HOLD``."""
        ...

    def check_history(self, after: Position) -> None:
        """FatalError, with the way back, if the log no longer has everything after ``after``."""
        ...

    def status(self, head: Position | None = None) -> SourceStatus:
        """Current boundary, as one that continues ``head``, and slot, for lag and health."""
        ...
