"""Pipelines at a glance: figures, what is wrong, a short line for every table, what ran."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from pydantic import Field

from tidegate.api.models.base import Facts, Problem, SnapshotId, View
from tidegate.api.models.status import Gate, Running
from tidegate.control.overview import PipelineOverview as OverviewRecord
from tidegate.control.overview import TableLine as LineRecord

Condition = Literal[
    "differs", "failing", "held", "letters", "needs", "lagging", "sweeping", "unproven"
]
_GAP = "null: nothing ran, which is a gap and no zero."


class Activity(View):
    """Changes applied per bucket. Every pipeline and table has the same axis."""

    since: datetime = Field(description="Where the axis begins; it is a day long.")
    bucket_seconds: int
    rows: list[int | None] = Field(description=f"Oldest bucket first; {_GAP}")
    swept: list[int] = Field(description="Rows that sweeps wrote.")
    failed: list[int] = Field(description="Tables whose part of a run failed.")
    rows_hour: int = Field(description="Within the last hour.")
    rows_day: int


class LineActivity(View):
    """The same of one table: only the buckets in which it was worked on."""

    rows_hour: int = 0
    rows_day: int = 0
    bars: list[tuple[int, int, int, int]] = Field(
        [], description="Bucket, changes, failures, rows that sweeps wrote."
    )


class Finding(View):
    """Something that waits for a person, its reason in fields: all tables of a pipeline that are
    in the same condition for the same reason."""

    kind: str = Field(examples=["held", "failing", "lagging", "unproven", "stopped"])
    severity: Literal["bad", "warn", "note"]
    tables: list[str] = Field([])
    since: datetime | None = Field(None, description="Of the table that waits longest.")
    reason: str | None = None
    code: str | None = None
    hint: str | None = None
    actor: str | None = None
    run: str | None = None
    lag_seconds: float | None = None
    letters: int = 0
    action: str | None = Field(
        None,
        description="What helps: approve, open, sweep, letters, verify, repair, runs, start.",
        examples=["approve"],
    )


class TableLine(View):
    """One table of a list."""

    table: str = Field(examples=["public.orders"])
    state: str = Field(description="The gravest of its conditions, or `healthy`.")
    conditions: list[Condition]
    action: str | None = Field(None, description="What ends the gravest of them.")
    gate: Gate
    needs: str | None = None
    lag_bytes: int | None = None
    lag_seconds: float | None = None
    rows: int | None = None
    snapshot_id: SnapshotId | None = None
    snapshot_at: datetime | None = None
    dead_letters: int = 0
    proven: float | None = Field(None, description="Percent of the keys; null: never verified.")
    differs: bool = False
    position: str | None = None
    activity: LineActivity

    @classmethod
    def of(cls, line: LineRecord) -> TableLine:
        ran = line.activity
        own = (
            LineActivity()
            if ran is None
            else LineActivity(
                rows_hour=ran.rows_hour,
                rows_day=ran.rows_day,
                bars=[
                    (place, rows, ran.failed[place], ran.swept[place])
                    for place, rows in enumerate(ran.rows)
                    if rows is not None
                ],
            )
        )
        names = [name for name in cls.model_fields if name != "activity"]
        return cls(**{name: getattr(line, name) for name in names}, activity=own)


class PipelineOverview(View):
    """One line of figures, what is wrong, and the tables."""

    pipeline_id: str = Field(examples=["shop"])
    source_type: str = Field(examples=["postgres"])
    deployed: bool
    running: Running | None = None
    captured_through: str | None = None
    captured_at: datetime | None = None
    tables: int
    gates: dict[str, int] = Field(description="Tables by gate state.")
    states: dict[str, int] = Field(description="Tables by their gravest condition.")
    conditions: dict[str, int] = Field(description="A table may be in several.")
    worst_lag_seconds: float | None = None
    worst_lag_bytes: int | None = None
    worst_lag_table: str | None = None
    dead_letters: int
    proven_tables: int = Field(description="Every key proven equal.")
    proven_share: float = Field(description="Percent of all keys, each table counting the same.")
    activity: Activity
    findings: list[Finding] = Field(description="Gravest first.")
    lines: list[TableLine] = Field(description="In the order of the pipeline's file.")

    @classmethod
    def of(cls, found: OverviewRecord) -> PipelineOverview:
        names = [name for name in cls.model_fields if name != "lines"]
        lines = [TableLine.of(line) for line in found.lines]
        return cls(**{name: getattr(found, name) for name in names}, lines=lines)


class Glance(View):
    """One pipeline: its overview, or what is wrong with its file or its lake."""

    name: str
    overview: PipelineOverview | None = None
    problem: Problem | None = None


class Overview(View):
    """Every pipeline that the caller may see, by name."""

    pipelines: list[Glance]


class RunRecord(View):
    """One run, as its report tells, whoever started it."""

    id: str
    run: str
    kind: str = Field(examples=["apply", "sweep", "capture", "verify", "maintain"])
    at: datetime = Field(description="When it ended.")
    outcome: Literal["done", "failed", "held"]
    tables: int
    failed: int
    held: int
    rows: int
    seconds: float | None = None
    concerned: list[str] = Field(description="Some tables; those that failed come first.")
    error: Facts | None = Field(None, description="The first one: code, message, hint.")
