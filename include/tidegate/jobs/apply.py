"""Apply: merge what was captured into the lake tables whose gate is open.

One Spark application serves all tables of a pipeline, several side by side; one table's failure is
kept to itself. A table without changes is not touched, so an idle run commits nowhere and takes no
lease. Only while others move on is the position of a long-quiet table moved by an empty commit
(``apply_plan.STALE_SHARE``), so that the log can be trimmed.
"""

from __future__ import annotations

import logging
import time
import uuid
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from pyiceberg.catalog import Catalog

from tidegate import faults
from tidegate.config.pipeline import LakeTarget, PipelineConfig
from tidegate.config.platform import PlatformConfig
from tidegate.envelope.position import Position
from tidegate.envelope.visible import Visible
from tidegate.errors import ConfigError, DataError, FatalError, HeldError, TidegateError
from tidegate.jobs.apply_plan import Plan, Planner, Task, stand
from tidegate.jobs.apply_result import ApplyResult, Status, TableResult
from tidegate.jobs.disclosure import as_tidegate_error, frames
from tidegate.jobs.result import plain
from tidegate.jobs.write_errors import say_errors
from tidegate.lake.catalog import open_catalog
from tidegate.lake.change_log import ChangeLog
from tidegate.lake.dead_letters import DeadLetters
from tidegate.lake.gate import Gate, Lease
from tidegate.lake.log_times import LogTimes
from tidegate.lake.looked import worth_noting
from tidegate.lake.pauses import refuse_stopped
from tidegate.lake.reports import Reports
from tidegate.lake.schema_history import SchemaHistory
from tidegate.lake.schema_hold import NEEDS_SWEEP, hold_others
from tidegate.names import TableId
from tidegate.observability import log
from tidegate.observability.progress import Progress, silent

if TYPE_CHECKING:
    from tidegate.spark.apply import ApplyContext
    from tidegate.spark.outcome import Outcome
    from tidegate.spark.session import SparkSession

__all__ = ["ApplyResult", "Status", "TableResult", "apply_table", "run_apply"]

PURPOSE: Final = "apply"
_TRIES: Final = 3
"""A gate may close between the look at it and the lease; then the run looks again."""
_HOLDING: Final = ("apply.schema_incompatible", NEEDS_SWEEP)
"""Only a person or a sweep helps, so the gate closes; all else that is held passes by itself."""
_LOG = log.get(__name__)


def run_apply(
    spark: SparkSession,
    pipeline: PipelineConfig,
    platform: PlatformConfig,
    *,
    tables: Iterable[str] | None = None,
    until: Position | None = None,
    run: str,
    lease: Lease | None = None,
    stamp_quiet: bool = False,
    progress: Progress = silent,
) -> ApplyResult:
    """Apply everything captured (or up to ``until``) to ``tables`` (all by default).

    With ``lease`` the caller holds the tables already: gates and stops are not asked.
    """
    began = time.monotonic()
    catalog = open_catalog(platform, pipeline)
    try:
        if lease is None:
            refuse_stopped(catalog, pipeline)
        job = _Run(spark, catalog, pipeline, platform, run, lease, progress)
        results = job.apply(_targets(pipeline, tables), until, stamp_quiet)
        result = ApplyResult(run, results, time.monotonic() - began)
        if not result.idle or _tells_more(catalog, pipeline, platform, result):
            Reports(catalog, pipeline).add("apply", run, plain(result))
    finally:
        catalog.close()
    return result


def apply_table(
    spark: SparkSession,
    pipeline: PipelineConfig,
    platform: PlatformConfig,
    table: TableId,
    *,
    branch: str,
    after: Position,
    until: Position,
    held: Visible | None = None,
    run: str | None = None,
    check: Callable[[], None] = lambda: None,
) -> Outcome:
    """Apply (after, until] of one table onto a branch of the caller's, who holds its lease.

    For sweeps that were resumed: in ``upsert`` mode rows that are newer than a change take no
    harm from it, because the last change of every key up to ``until`` wins. And for branches that
    hold one snapshot of the source: what ``held`` says is in it is left out.
    """
    from tidegate.spark.apply import ApplyContext, apply_range
    from tidegate.spark.pool import SessionPool
    from tidegate.spark.survey import NOTHING, LogPin, LogRange, survey

    catalog = open_catalog(platform, pipeline)
    try:
        change_log = ChangeLog(catalog, pipeline)
        head = change_log.head()
        if head.captured_through < until:
            raise FatalError(
                "apply.not_captured",
                f"the change log holds {pipeline.pipeline_id} up to {head.captured_through},"
                f" not {until}",
                hint="capture first",
            )
        token = uuid.uuid4().hex
        pin = LogPin(change_log.identifier, head.snapshot_id)
        context = ApplyContext(
            catalog=catalog,
            history=SchemaHistory(catalog, pipeline),
            letters=DeadLetters(catalog, pipeline),
            limits=platform.dlq,
            pin=pin,
            run=run or token,
            token=token,
            check=check,
        )
        span = LogRange(after, until, held)
        with SessionPool(spark, 1).session() as session:
            found = survey(session, pin, {str(table): span}).get(str(table), NOTHING)
            target = pipeline.target(table)
            return apply_range(session, context, target, span, found, branch=branch)
    finally:
        catalog.close()


@dataclass
class _Run:
    """One run over some tables."""

    spark: SparkSession
    catalog: Catalog
    pipeline: PipelineConfig
    platform: PlatformConfig
    run: str
    lease: Lease | None
    progress: Progress

    def __post_init__(self) -> None:
        self.gate = Gate(self.catalog, self.pipeline, self.platform.gate)
        self.planner = Planner(self.spark, self.catalog, self.pipeline, self.platform, self.gate)

    def apply(
        self, targets: list[LakeTarget], until: Position | None, stamp: bool
    ) -> list[TableResult]:
        """Plan, take the lease, plan again if anything moved meanwhile, write."""
        order = {target.source: place for place, target in enumerate(targets)}
        results: list[TableResult] = []
        for attempt in range(1, _TRIES + 1):
            plan = self.planner.plan(targets, until, gated=self.lease is None, stamp=stamp)
            try:
                results = [*plan.settled, *self._write(plan, until)]
                break
            except HeldError as error:
                if error.code != "gate.closed" or attempt == _TRIES:
                    raise
        results.sort(key=lambda result: order[result.table])
        for result in results:
            _say(result, self.pipeline.pipeline_id, self.run)
        letters = DeadLetters(self.catalog, self.pipeline)
        say_errors(self.pipeline, letters, self.run, results)
        return results

    def _write(self, plan: Plan, until: Position | None) -> list[TableResult]:
        if not plan.tasks:
            return []
        with self._hold(plan) as lease:
            faults.point("apply.after_lease")
            current, settled = self._again(plan, until)
            return settled + self._side_by_side(current, lease)

    def _hold(self, plan: Plan) -> AbstractContextManager[Lease]:
        if self.lease is not None:
            return nullcontext(self.lease)
        sources = [task.standing.target.source for task in plan.tasks]
        return self.gate.lease(self.run, sources, PURPOSE)

    def _again(self, plan: Plan, until: Position | None) -> tuple[Plan, list[TableResult]]:
        """The plan, or a new one if another writer moved a table before the lease was ours."""
        targets = [task.standing.target for task in plan.tasks]
        if all(stand(self.catalog, task.standing.target) == task.standing for task in plan.tasks):
            return plan, []
        fresh = self.planner.plan(targets, until, gated=False, stamp=False)
        return fresh, list(fresh.settled)

    def _side_by_side(self, plan: Plan, lease: Lease) -> list[TableResult]:
        from tidegate.spark.apply import ApplyContext
        from tidegate.spark.pool import SessionPool

        history = SchemaHistory(self.catalog, self.pipeline)
        letters = DeadLetters(self.catalog, self.pipeline, read_once=True)
        for share in (share for task in plan.tasks for share in task.found.shares):
            history.get(share.schema_id)  # read once here, so that threads only look it up
        done = 0

        def one(session: SparkSession, task: Task) -> TableResult:
            nonlocal done
            source = task.standing.target.source
            context = ApplyContext(
                catalog=self.catalog,
                history=history,
                letters=letters,
                limits=self.platform.dlq,
                pin=plan.pin,
                run=self.run,
                token=lease.token,
                check=lambda: lease.check([source]),
            )
            result = self._table(session, context, task)
            done += 1
            self.progress("apply", done, len(plan.tasks), "tables", table=source)
            return result

        size = min(self.platform.spark.table_parallelism, max(1, len(plan.tasks)))
        return SessionPool(self.spark, size).map(one, plan.tasks)

    def _table(self, session: SparkSession, context: ApplyContext, task: Task) -> TableResult:
        from tidegate.spark.apply import apply_range
        from tidegate.spark.survey import LogRange

        standing = task.standing
        span = LogRange(standing.position, task.until)
        began = time.monotonic()
        try:
            outcome = apply_range(
                session, context, standing.target, span, task.found, base=standing.snapshot_id
            )
        except Exception as error:  # noqa: BLE001 - one table's failure is kept to itself
            return self._refused(task, error, time.monotonic() - began)
        return TableResult(
            standing.target.source,
            Status.APPLIED if task.found.rows else Status.UNCHANGED,
            outcome.inserted,
            outcome.updated,
            outcome.deleted,
            outcome.truncated,
            standing.position,
            task.until,
            outcome.snapshot_id,
            outcome.seconds,
            outcome.adjusted,
            outcome.parked,
        )

    def _refused(self, task: Task, error: Exception, seconds: float) -> TableResult:
        reason = as_tidegate_error(error)
        for line in frames(error) if reason is not error else ():
            _LOG.error(line)
        source = task.standing.target.source
        status = Status.FAILED
        if isinstance(reason, DataError) or reason.code in _HOLDING:
            status = Status.HELD
            self.gate.hold([source], f"{reason.message} → {reason.hint}", f"apply {self.run}")
            actor = f"apply {self.run}"
            hold_others(self.gate, self.pipeline, self.platform, source, reason.code, actor)
        elif isinstance(reason, HeldError):
            status = Status.WAITING
        return TableResult(
            source,
            status,
            from_position=task.standing.position,
            to_position=task.standing.position,
            snapshot_id=task.standing.snapshot_id,
            seconds=seconds,
            reason=reason.message,
            error=reason,
        )


def _tells_more(
    catalog: Catalog, pipeline: PipelineConfig, platform: PlatformConfig, result: ApplyResult
) -> bool:
    """Whether a run in which nothing happened is to be told all the same, because quiet tables
    would seem to fall behind."""
    found = [
        (table.table, table.from_position, table.to_position)
        for table in result.tables
        if table.from_position is not None and table.to_position is not None
    ]
    times, reports = LogTimes.read(catalog, pipeline), Reports(catalog, pipeline)
    return worth_noting(found, times, reports.recent, platform.capture.idle_commit_seconds)


def _targets(pipeline: PipelineConfig, tables: Iterable[str] | None) -> list[LakeTarget]:
    if tables is None:
        return list(pipeline.targets)
    wanted = [TableId.parse(str(table)) for table in tables]
    unknown = [str(table) for table in wanted if str(table) not in pipeline.source.tables]
    if unknown:
        raise ConfigError(
            "apply.unknown_table",
            f"pipeline {pipeline.pipeline_id} has no table {', '.join(unknown)}",
            hint=f"its tables are {', '.join(pipeline.source.tables)}",
        )
    return [pipeline.target(table) for table in wanted]


def _say(result: TableResult, pipeline: str, run: str) -> None:
    """One line per table."""
    fields: dict[str, Any] = {"pipeline": pipeline, "table": result.table, "run": run}
    fields["status"] = result.status.value
    if result.status is Status.APPLIED:
        fields["facts"] = {
            "inserted": result.inserted,
            "updated": result.updated,
            "deleted": result.deleted,
            "truncated": result.truncated,
            "adjusted": result.adjusted,
            "dead_letters": result.parked,
        }
        fields["seconds"] = round(result.seconds, 2)
    if result.to_position is not None:
        fields["position"] = str(result.to_position)
    if result.reason or result.error:
        fields["reason"] = result.reason or str(result.error)
    if isinstance(result.error, TidegateError):
        fields |= {"code": result.error.code, "hint": result.error.hint}
    wrong = result.status in (Status.FAILED, Status.HELD)
    level = logging.WARNING if wrong else logging.INFO
    log.event(_LOG, f"{result.table}: {result.status.value}", level, **fields)
