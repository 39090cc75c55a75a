"""What status and actions answer with. Plain frozen records: CLI, API and UI show the same."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from tidegate.control.running import Running
from tidegate.transports.guard import Guard


@dataclass(frozen=True, slots=True)
class LeaseStatus:
    """The writer that holds a table right now."""

    run: str
    purpose: str
    owner: str


@dataclass(frozen=True, slots=True)
class GateStatus:
    """One table's gate."""

    table: str
    state: str  # open | sweeping | held
    reason: str | None
    actor: str | None
    since: datetime | None
    run: str | None
    lease: LeaseStatus | None
    before: EarlierHold | None = None
    """The hold that a sweep found, or that another one came on top of: still to be mended."""
    failed: FailedSweep | None = None
    """Of a sweep that is no longer at work."""


@dataclass(frozen=True, slots=True)
class EarlierHold:
    """Why a table was held before its gate got its present state."""

    reason: str | None
    actor: str | None
    since: datetime


@dataclass(frozen=True, slots=True)
class FailedSweep:
    """How the last attempt of a sweep ended, and both ways on."""

    reason: str | None
    at: datetime
    resume: str  # a command that goes on where it ended
    abandon: str  # a command that gives it up; the gate is then as it was before


@dataclass(frozen=True, slots=True)
class VerifiedThrough:
    """What is proven of one table."""

    position: str | None  # every covered key was found equal here or later; None: nothing is proven
    at: datetime | None
    coverage: float  # percent of the keys
    runs: int  # verifications the coverage is made of
    last_position: str | None
    last_at: datetime | None
    snapshot_id: int | None  # the proof stands while this is an ancestor of main
    differs: bool = False  # the last comparison of some keys found differences
    withdrawn: str | None = None  # why a newer proof no longer counts


@dataclass(frozen=True, slots=True)
class TableStatus:
    """One table: its gate, where it stands, how far behind, what happened last."""

    table: str
    lake_table: str
    write_mode: str
    gate: GateStatus
    exists: bool
    position: str | None
    lag_bytes: int | None  # captured and not yet applied; None: never swept, or another epoch
    lag_seconds: float | None
    snapshot_id: int | None
    snapshot_at: datetime | None
    rows: int | None  # from the snapshot's summary; deletes may be counted in
    needs: str | None  # what must be done before changes flow, if anything
    last_apply: dict[str, Any] | None
    last_sweep: dict[str, Any] | None
    adjusted: dict[str, int] = field(default_factory=dict)
    """Values that a policy changed, by column: by the last sweep and what was applied since."""
    verified_through: VerifiedThrough | None = None  # None: never verified
    dead_letters: int = 0
    """Changes that could not be applied, and those that wait behind them."""
    reflects: str | None = None
    """Where the log was looked through to: further than ``position`` where nothing was found."""


@dataclass(frozen=True, slots=True)
class SourceSide:
    """The source as it was seen now."""

    reachable: bool
    current: str | None
    slot: str | None
    slot_state: str | None
    retained_bytes: int | None
    problem: str | None
    by_time: bool = False  # its log is kept for a time, read or not
    expiry_seconds: float | None = None  # that time; None: for ever


@dataclass(frozen=True, slots=True)
class RegistryStatus:
    """The schema registry as the last run met it."""

    url: str
    registered: int  # schemas under a subject, keys and rows apart
    pending: int
    refused: int
    problem: dict[str, str] | None  # why it did not answer: code, message, hint
    problem_since: datetime | None


@dataclass(frozen=True, slots=True)
class PipelineStatus:
    """A pipeline as a whole."""

    pipeline_id: str
    source_type: str
    deployed: bool
    captured_through: str | None
    captured_at: datetime | None
    capture_lag_bytes: int | None  # written by the source and not yet captured
    source: SourceSide | None  # None: nobody asked
    tables: tuple[TableStatus, ...]
    guard: Guard | None = None  # None: the source was not asked
    registry: RegistryStatus | None = None  # None: no schema registry is used
    running: Running | None = None  # whether somebody stopped it; None: not read


@dataclass(frozen=True, slots=True)
class TableLag:
    table: str
    state: str
    bytes: int | None
    seconds: float | None


@dataclass(frozen=True, slots=True)
class PipelineLag:
    """How far behind a pipeline is: the log behind the source, the tables behind the log."""

    pipeline_id: str
    capture_bytes: int | None
    retained_bytes: int | None
    tables: tuple[TableLag, ...]
    guard: Guard | None = None  # None: the source was not asked


@dataclass(frozen=True, slots=True)
class SnapshotRow:
    """One snapshot of a lake table."""

    table: str
    snapshot_id: int
    parent_id: int | None
    committed_at: datetime
    operation: str
    step: str | None
    run: str | None
    position: str | None
    rows: int | None
    current: bool
    on_main: bool


@dataclass(frozen=True, slots=True)
class QueryResult:
    """Rows of a lake table as of a snapshot."""

    table: str
    snapshot_id: int | None
    position: str | None
    columns: tuple[str, ...]
    rows: tuple[dict[str, Any], ...]
    complete: bool  # False: the limit cut it
