"""Pipelines and tables as they stand."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from pydantic import Field

from tidegate.api.models.base import Facts, SnapshotId, View

GateName = Literal["open", "sweeping", "held"]
_POSITION = "A place in the source's log: `<epoch>/<place>`, in text order."


class Lease(View):
    """The writer that holds a table right now."""

    run: str
    purpose: str
    owner: str


class EarlierHold(View):
    """Why a table was held before its gate got its present state."""

    reason: str | None = None
    actor: str | None = None
    since: datetime


class FailedSweep(View):
    """How the last attempt of a sweep ended, and both ways on."""

    reason: str | None = None
    at: datetime
    resume: str = Field(description="A command that goes on where it ended.")
    abandon: str = Field(description="A command that gives it up.")


class Gate(View):
    """One table's gate."""

    table: str = Field(examples=["public.orders"])
    state: GateName
    reason: str | None = None
    actor: str | None = None
    since: datetime | None = None
    run: str | None = None
    lease: Lease | None = None
    before: EarlierHold | None = Field(
        None, description="The hold that a sweep found, or that another hold came on top of."
    )
    failed: FailedSweep | None = Field(
        None, description="While `sweeping`: the last attempt ended, nothing is at work."
    )


class Verified(View):
    """Through which position a table is proven equal to its source."""

    position: str | None = Field(None, description="null: nothing is proven.")
    at: datetime | None = None
    coverage: float = Field(description="Percent of the keys.")
    runs: int
    last_position: str | None = None
    last_at: datetime | None = None
    snapshot_id: SnapshotId | None = None
    differs: bool = False
    withdrawn: str | None = Field(None, description="Why a newer proof no longer counts.")


class TableStatus(View):
    """One table: its gate, where it stands, how far behind, what happened last."""

    table: str = Field(examples=["public.orders"])
    lake_table: str = Field(examples=["shop.orders"])
    write_mode: str = Field(examples=["upsert"])
    gate: Gate
    exists: bool
    position: str | None = Field(None, description=_POSITION)
    reflects: str | None = Field(
        None, description="The log has nothing more for the table up to here; lag counts from it."
    )
    lag_bytes: int | None = Field(None, description="Captured and not yet applied.")
    lag_seconds: float | None = None
    snapshot_id: SnapshotId | None = None
    snapshot_at: datetime | None = None
    rows: int | None = None
    needs: str | None = Field(None, description="What must be done before changes flow.")
    last_apply: Facts | None = None
    last_sweep: Facts | None = None
    adjusted: dict[str, int] = Field({}, description="Values that a policy changed, by column.")
    verified_through: Verified | None = None
    dead_letters: int = 0


class Source(View):
    """The source as it was seen just now."""

    reachable: bool
    current: str | None = None
    slot: str | None = None
    slot_state: str | None = None
    retained_bytes: int | None = None
    problem: str | None = None
    by_time: bool = Field(False, description="Its log is kept for a time, read or not.")
    expiry_seconds: float | None = Field(None, description="That time; null: for ever.")


class GuardFinding(View):
    """One judgement of the source guard."""

    check: str
    verdict: Literal["ok", "warn", "act"]
    says: str
    next: str | None = None


class SourceFigures(View):
    """What a pipeline holds on its source."""

    slot: str
    slot_state: str
    retained_bytes: int | None = None
    keep_bytes: int | None = None
    left_bytes: int | None = None
    limit: str | None = None
    bytes_per_hour: float | None = None
    hours_left: float | None = None
    xmin_age: int | None = None
    to_capture_bytes: int | None = None
    capture_seconds: float | None = None
    by_time: bool = False
    expiry_seconds: float | None = None
    lost: str | None = None


class LogFigures(View):
    """The change log."""

    bytes: int
    oldest_seconds: float | None = None


class TableFigures(View):
    """How long a table's changes wait."""

    table: str
    gate: str
    applied_seconds: float | None = None
    waits_seconds: float | None = None


class Figures(View):
    """What the judgement was made from."""

    source: SourceFigures | None = None
    problem: str | None = None
    log: LogFigures | None = None
    tables: list[TableFigures] = Field([])


class Guard(View):
    """What a pipeline holds on its source and in its change log, and whether it is too much."""

    verdict: Literal["ok", "warn", "act"]
    findings: list[GuardFinding]
    figures: Figures


class Running(View):
    """Whether a pipeline may work, and who said so."""

    pipeline_id: str
    state: Literal["running", "stopped"]
    since: datetime | None = None
    actor: str | None = None
    surface: str | None = None
    reason: str | None = None
    changed: bool = Field(description="By this very request.")


class PipelineStatus(View):
    """A pipeline as a whole."""

    pipeline_id: str = Field(examples=["shop"])
    source_type: str = Field(examples=["postgres"])
    deployed: bool
    captured_through: str | None = Field(None, description=_POSITION)
    captured_at: datetime | None = None
    capture_lag_bytes: int | None = Field(None, description="Written by the source, not captured.")
    source: Source | None = Field(None, description="null: the source was not asked.")
    tables: list[TableStatus]
    guard: Guard | None = Field(None, description="null: the source was not asked.")
    running: Running | None = Field(None, description="Whether somebody stopped it.")


class TableLag(View):
    table: str
    state: GateName
    bytes: int | None = None
    seconds: float | None = None


class PipelineLag(View):
    """The log behind the source, the tables behind the log."""

    pipeline_id: str
    capture_bytes: int | None = None
    retained_bytes: int | None = None
    tables: list[TableLag]


class ConnectorSummary(View):
    """A pipeline in the list."""

    name: str = Field(examples=["shop"])
    type: str | None = Field(None, examples=["postgres"])
    database: str | None = None
    tables: list[str] = Field([])
    owner: str | None = None
    tags: list[str] = Field([])
    state: Literal["running", "stopped", "broken"] = "running"
    deployed: bool | None = None
    gates: dict[str, int] = Field({}, description="Tables by gate state.")
    dead_letters: int = 0
    lag_seconds: float | None = Field(None, description="Of the table furthest behind.")
    needs: int = Field(0, description="Tables that need something before changes flow.")
    problem: str | None = Field(None, description="What is wrong with its file.")


class ConnectorDetail(ConnectorSummary):
    """A pipeline: its summary and what its file says, without secrets."""

    config: dict[str, object] = Field(
        description="The file, defaults filled in; what may be secret reads `(not shown)`."
    )
