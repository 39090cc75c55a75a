"""Reload: the rows of a time interval again, by key.

Keys of rows whose time column lies in the interval, at the source or in the lake, are compared at
one position; those that differ are read again through a branch (``spark.repair``). So a row that
drifted into or out of the interval is right afterwards, and what is equal is not written.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING

from tidegate.config.pipeline import LakeTarget, PipelineConfig
from tidegate.config.platform import PlatformConfig
from tidegate.connectors.cut import ExactCut
from tidegate.envelope.position import Position
from tidegate.errors import ConfigError
from tidegate.jobs.audited import audited
from tidegate.jobs.comparing import Comparer, Task
from tidegate.jobs.sweep_plan import check_tables
from tidegate.jobs.verdict import TableVerdict, VerifyResult
from tidegate.lake.audit_trail import Action
from tidegate.lake.reports import Reports
from tidegate.names import TableId
from tidegate.observability.progress import Progress, silent
from tidegate.schema.table import TableSchema
from tidegate.spark.selection import Interval
from tidegate.spark.verify import Comparison

if TYPE_CHECKING:
    from pyiceberg.table import Table

    from tidegate.spark.session import SparkSession


def run_reload(
    spark: SparkSession,
    pipeline: PipelineConfig,
    platform: PlatformConfig,
    *,
    start: datetime,
    end: datetime,
    tables: Sequence[str | TableId] | None = None,
    dry_run: bool = False,
    run: str | None = None,
    progress: Progress = silent,
) -> VerifyResult:
    """Read the rows of [start, end) again. By default of every table with ``reload.time_column``.

    ``dry_run`` says how many rows would change, and which.
    """
    began = time.monotonic()
    run = run or f"reload_{uuid.uuid4().hex[:12]}"
    targets = reloadable(pipeline, tables)
    if not start < end:
        raise ConfigError(
            "reload.interval", f"{start} is not before {end}", hint="give --from and a later --to"
        )

    def select(target: LakeTarget, table: Table, cut: ExactCut, schema: TableSchema) -> Interval:
        assert target.options.reload is not None
        return Interval(target.options.reload.time_column, start, end)

    def settle(
        target: LakeTarget, position: Position, found: Comparison, verdict: TableVerdict
    ) -> TableVerdict:
        if not dry_run or found.equal:
            return verdict
        reason = verdict.reason or f"{found.count} keys would be read again"
        return replace(verdict, status="planned", reason=reason)

    job = Comparer(spark, pipeline, platform, run, progress)
    task = Task("reload", select, settle, repair=not dry_run, by_key=True)
    with audited(job.catalog, pipeline, Action.RELOAD, targets, run, when=task.repair):
        position, verdicts = job.compare(targets, task)
    result = VerifyResult(run, position, round(time.monotonic() - began, 3), verdicts)
    Reports(job.catalog, pipeline).add("reload", run, result.without_keys())
    return result


def reloadable(
    pipeline: PipelineConfig, tables: Sequence[str | TableId] | None
) -> tuple[LakeTarget, ...]:
    """The targets that know which rows belong to an interval."""
    targets = check_tables(pipeline, tables)
    able = tuple(target for target in targets if target.options.reload is not None)
    left = [target.source for target in targets if target not in able]
    if not able or (tables is not None and left):
        raise ConfigError(
            "reload.no_time_column",
            f"no reload.time_column for {', '.join(left)}",
            hint="name a date or timestamp column of the table in the pipeline's file:"
            " sinks → iceberg → tables → <table> → reload: {time_column: …}",
        )
    return able
