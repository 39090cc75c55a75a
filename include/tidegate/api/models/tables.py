"""One table: its files, past, schema and rows."""

from __future__ import annotations

from datetime import datetime

from pydantic import Field

from tidegate.api.models.base import Facts, SnapshotId, View
from tidegate.api.models.status import TableStatus


class Files(View):
    """What the current snapshot is made of."""

    data_files: int
    delete_files: int
    bytes: int
    snapshots: int


class UpkeepStep(View):
    """Whether one step of upkeep is due, and why."""

    step: str = Field(examples=["compact"])
    due: bool
    why: str = Field(examples=["3 small files in one partition (due from 20)"])


class Side(View):
    """One column on both sides."""

    column: str
    lake: str
    source: str


class HeldSchema(View):
    """A schema that waits for someone's word."""

    table: str
    schema_id: str
    first_used: str
    reasons: list[str]
    sides: list[Side]
    gate: str
    approvable: bool


class TableDetail(View):
    """Everything about one table that needs no data file."""

    status: TableStatus
    files: Files | None = None
    upkeep: list[UpkeepStep]
    held: HeldSchema | None = None


class TimelineEntry(View):
    """One thing that happened to a table."""

    id: str
    at: datetime
    kind: str = Field(examples=["apply", "sweep", "gate", "schema", "maintain", "verify"])
    event: str
    outcome: str | None = None
    run: str | None = None
    actor: str | None = None
    reason: str | None = None
    facts: Facts = Field({})


class Snapshot(View):
    """One snapshot of a lake table."""

    snapshot_id: SnapshotId
    parent_id: SnapshotId | None = None
    committed_at: datetime
    operation: str
    step: str | None = None
    run: str | None = None
    position: str | None = None
    rows: int | None = None
    current: bool
    on_main: bool
    inserted: int | None = Field(None, description="By the run's report; null: no report has it.")
    updated: int | None = None
    deleted: int | None = None


class Point(View):
    """One snapshot's figures."""

    at: datetime
    snapshot_id: SnapshotId
    step: str | None = None
    rows: int | None = None
    inserted: int | None = None
    updated: int | None = None
    deleted: int | None = None
    seconds: float | None = None
    rows_per_second: float | None = None
    lag_seconds: float | None = Field(
        None, description="What readers waited for the oldest change in it."
    )


class Series(View):
    """Figures over time, oldest first."""

    table: str
    points: list[Point]


class SchemaRow(View):
    """One schema that a table had."""

    table: str
    number: int
    schema_id: str
    fingerprint: str
    first_used: str
    recorded_at: datetime
    columns: int
    changes: list[str]
    kinds: list[str]
    approved_by: str | None = None
    current: bool


class Column(View):
    name: str
    source_type: str
    lake_type: str
    nullable: bool
    key: int | None = None
    number: int | None = None


class TableSchema(View):
    """A table's schemas: all of them, the newest one's columns, and one that waits."""

    table: str
    history: list[SchemaRow] = Field(description="Oldest first.")
    columns: list[Column] = Field(description="Of the newest schema.")
    held: HeldSchema | None = None


class RowChange(View):
    """One change of a row, with its values as the source printed them."""

    event_id: str
    position: str
    op: str = Field(examples=["c", "u", "d", "t"])
    tx_id: int | None = None
    committed_at: datetime | None = None
    captured_at: datetime
    before: dict[str, str | None] | None = None
    after: dict[str, str | None] | None = None
    unchanged: list[str] = Field([])
    snapshot_id: SnapshotId | None = Field(
        None, description="In which readers first saw it; null: not applied yet."
    )
    snapshot_at: datetime | None = None


class RowHistory(View):
    """Changes of one key, newest first."""

    table: str
    key: list[str | None]
    since: datetime | None = Field(None, description="The change log reaches back to here.")
    changes: list[RowChange]
