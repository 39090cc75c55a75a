"""The uniform door of protocol v4: one request, one summary, and the host that a run talks to.

Whatever its role, a connector does bounded work by ``run(RunRequest, Host)``. The roles differ in
the phases they run and in which part of the summary they fill in, not in names of functions. Names
follow the specification's grammar: a noun and an action for batches, ``telemetry_`` for what is
told on the way.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol

import pyarrow as pa

from tidegate.envelope.position import Position
from tidegate.schema.table import TableSchema


class ConnectorRole(StrEnum):
    SOURCE = "source"
    DESTINATION = "destination"
    TRANSFORM = "transform"


class RunPhase(StrEnum):
    DISCOVER = "discover"
    READ = "read"
    WRITE = "write"
    TRANSFORM = "transform"


@dataclass(frozen=True, slots=True)
class RunRequest:
    """One bounded piece of work."""

    phase: RunPhase
    streams: tuple[str, ...] = ()  # table names; empty = all of the pipeline
    dry_run: bool = False
    """Do everything but hand batches on, or write them."""
    max_records: int | None = None
    """End at the first whole transaction that reaches it."""
    cursor: Position | None = None
    """Where a read goes on: everything at or before it is durable with whoever asks (I2)."""


@dataclass(frozen=True, slots=True)
class ReadSummary:
    """What a source read."""

    records: int = 0
    bytes: int = 0
    batches: int = 0
    cursor: Position | None = None
    """Nothing at or before it is still to come: the ``cursor`` of the next request."""
    needs_sweep: tuple[str, ...] = ()
    """Tables whose values changed without rows in the log: batches alone do not tell them (I8)."""


@dataclass(frozen=True, slots=True)
class WriteSummary:
    """What a destination made durable."""

    records: int = 0
    bytes: int = 0
    batches: int = 0
    dead_letters: int = 0
    cursor: Position | None = None


@dataclass(frozen=True, slots=True)
class TransformSummary:
    """What a transform made of its batches."""

    records_in: int = 0
    records_out: int = 0
    records_dropped: int = 0
    dead_letters: int = 0


@dataclass(frozen=True, slots=True)
class RunSummary:
    """How a run ended; of the three parts, the one of the phase is there."""

    role: ConnectorRole
    phase: RunPhase
    schemas: tuple[TableSchema, ...] = ()
    """Discovered, or met while reading."""
    read: ReadSummary | None = None
    write: WriteSummary | None = None
    transform: TransformSummary | None = None


class CheckpointKind(StrEnum):
    SOURCE = "source"  # everything up to the cursor was handed on
    DESTINATION = "destination"  # everything up to the cursor is durable


@dataclass(frozen=True, slots=True)
class CheckpointEvent:
    """A place that a later run can go on from."""

    kind: CheckpointKind
    stream: str  # a table; "*": all of the run's
    id: int  # counts within a run
    cursor: str
    records: int  # since the checkpoint before
    bytes: int


@dataclass(frozen=True, slots=True)
class MetricEvent:
    """One figure; ``labels`` never hold a row's value (I9)."""

    name: str
    value: float
    labels: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class DeadLetterEvent:
    """A record that a destination or transform could not take, with the reason (I7)."""

    stream: str
    event_id: str
    code: str
    message: str  # never a value (I9)


class Host(Protocol):
    """What a run may ask of whoever started it.

    Order: batches are handed on in log order, and a checkpoint after every batch it covers.
    Durability: a destination's checkpoint is told only once its rows are durable. Concurrency: one
    run, one thread.
    """

    def batch_emit(self, batch: pa.Table) -> None:
        """Hand a batch on (sources, transforms); rows of ``envelope.log_rows.ARROW_SCHEMA``."""
        ...

    def batch_next(self) -> pa.Table | None:
        """The next batch to be taken (destinations, transforms); None: there is no more."""
        ...

    def telemetry_checkpoint(self, event: CheckpointEvent) -> None: ...

    def telemetry_metric(self, event: MetricEvent) -> None: ...

    def telemetry_dlq(self, event: DeadLetterEvent) -> None: ...
