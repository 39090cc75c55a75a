"""Recover: history was lost; begin a new epoch if need be, and sweep the tables it concerns.

What is lost is decided by the checks that capture and apply refuse with, so that recovery and
refusal never disagree. Killed anywhere, the next call plans from what is then true: a table that
was swept since is no longer lost (I3).
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from tidegate.config.pipeline import PipelineConfig
from tidegate.config.platform import PlatformConfig
from tidegate.connectors.registry import open_source
from tidegate.envelope.position import Position
from tidegate.errors import FatalError, TidegateError
from tidegate.jobs.deploy import deploy
from tidegate.jobs.sweep import run_sweep
from tidegate.jobs.sweep_result import SweepResult
from tidegate.lake import positions
from tidegate.lake.catalog import load, open_catalog
from tidegate.lake.change_log import ChangeLog
from tidegate.observability.progress import Progress, silent

if TYPE_CHECKING:
    from pyiceberg.table import Table

    from tidegate.spark.session import SparkSession


@dataclass(frozen=True, slots=True)
class Loss:
    """What is lost: why the change log cannot go on, and why each of the tables must be swept."""

    log: str | None
    tables: dict[str, str]

    @property
    def any(self) -> bool:
        return self.log is not None or bool(self.tables)


@dataclass(frozen=True, slots=True)
class RecoveredTable:
    """One table that had lost changes."""

    table: str
    status: str  # planned | swept | opened | failed | held
    reason: str
    rows: int = 0
    position: Position | None = None
    snapshot_id: int | None = None
    error: TidegateError | None = None


@dataclass(frozen=True, slots=True)
class Recovery:
    """What was, or with ``dry_run`` would be, done."""

    run: str
    status: str  # nothing lost | planned | recovered | failed
    log: str | None = None
    start: str | None = None  # of the new epoch
    tables: list[RecoveredTable] = field(default_factory=list)

    @property
    def failed(self) -> bool:
        return any(table.error is not None for table in self.tables)


def find_loss(pipeline: PipelineConfig, platform: PlatformConfig) -> Loss:
    """Which tables lost changes, and why. Reads only; needs no Spark."""
    catalog = open_catalog(platform, pipeline)
    head = ChangeLog(catalog, pipeline).head().captured_through
    log = _broken(pipeline, platform, head)
    tables = {
        target.source: why
        for target in pipeline.targets
        if (table := load(catalog, target.identifier)) is not None
        and (why := _why(table, head, log)) is not None
    }
    return Loss(log, tables)


def planned(loss: Loss, run: str | None = None) -> Recovery:
    """The dry run's answer."""
    tables = [RecoveredTable(table, "planned", why) for table, why in loss.tables.items()]
    status = "planned" if loss.any else "nothing lost"
    return Recovery(run or _run_id(), status, loss.log, None, tables)


def run_recover(
    spark: SparkSession,
    pipeline: PipelineConfig,
    platform: PlatformConfig,
    *,
    run: str | None = None,
    dry_run: bool = False,
    reason: str | None = None,
    progress: Progress = silent,
) -> Recovery:
    """Make slot and epoch anew where the log has a hole, then sweep what lost changes.

    Nothing else is touched: tables that lost nothing go on, and a healthy slot is never dropped.
    """
    run = run or _run_id()
    loss = find_loss(pipeline, platform)
    if dry_run or not loss.any:
        return planned(loss, run)
    start, held = None, []
    if loss.log is not None:
        deployed = deploy(pipeline, platform, new_epoch=True)
        start = deployed.start
        held = [
            RecoveredTable(table.table, "held", table.reason)
            for table in deployed.held
            if loss.tables.pop(table.table, None) is not None
        ]
    if not loss.tables:  # none was ever swept: their first sweeps come as always
        return Recovery(run, "recovered", loss.log, start, held)
    swept = run_sweep(
        spark,
        pipeline,
        platform,
        tables=list(loss.tables),
        run=run,
        reason=reason or f"history lost: {loss.log or 'the tables stand in an older epoch'}",
        progress=progress,
    )
    recovered = _recovered(swept, loss, start)
    return replace(recovered, tables=[*recovered.tables, *held])


def _broken(pipeline: PipelineConfig, platform: PlatformConfig, head: Position) -> str | None:
    source = open_source(pipeline, platform)
    try:
        source.check_history(head)
    except FatalError as error:
        return error.message
    finally:
        source.close()
    return None


def _why(table: Table, head: Position, log: str | None) -> str | None:
    """Why a table must be swept; None if it need not, or never was (that is a first sweep)."""
    try:
        position = positions.applied(table)
    except TidegateError as error:
        return error.message
    if position is None:
        return None
    if position.epoch != head.epoch:
        return f"it stands in epoch {position.epoch}, the change log is in {head.epoch}"
    return log


def _recovered(swept: SweepResult, loss: Loss, start: str | None) -> Recovery:
    tables = [
        RecoveredTable(
            table.table,
            table.status,
            loss.tables[table.table],
            table.rows,
            table.position,
            table.snapshot_id,
            table.error,
        )
        for table in swept.tables
    ]
    return Recovery(swept.run, "failed" if swept.failed else "recovered", loss.log, start, tables)


def _run_id() -> str:
    return f"recover_{uuid.uuid4().hex[:12]}"
