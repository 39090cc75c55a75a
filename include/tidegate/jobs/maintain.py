"""Maintenance: what is due for every lake table, then the change log and the control tables.

Per table, under its lease (I4): leftovers → compact → delete files → manifests → stamp → expire →
orphans. None of it changes a row or a position (I1); both are checked afterwards.
"""

from __future__ import annotations

import logging
import time
import uuid
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from tidegate.config.pipeline import LakeTarget, PipelineConfig
from tidegate.config.platform import PlatformConfig
from tidegate.errors import HeldError, TidegateError
from tidegate.jobs.disclosure import as_tidegate_error, describe
from tidegate.jobs.maintain_log import LogUpkeep, maintain_log
from tidegate.jobs.maintain_table import TableKeeper, TableWork
from tidegate.jobs.result import plain
from tidegate.jobs.sweep_plan import check_tables
from tidegate.lake import upkeep
from tidegate.lake.audit_trail import Action, AuditTrail, Noting
from tidegate.lake.catalog import load, open_catalog
from tidegate.lake.dead_letters import DeadLetters
from tidegate.lake.gate import Gate
from tidegate.lake.proofs import Proofs
from tidegate.lake.reports import Reports
from tidegate.lake.upkeep import UpkeepPlan
from tidegate.names import TableId
from tidegate.observability import log
from tidegate.observability.progress import Progress, silent

if TYPE_CHECKING:
    from pyiceberg.table import Table

    from tidegate.spark.session import SparkSession

_LOG = log.get(__name__)


@dataclass(frozen=True, slots=True)
class TableUpkeep:
    """What was done for one table, and why (or why not)."""

    table: str
    status: str  # maintained | nothing due | planned | skipped | failed
    done: tuple[str, ...] = ()
    work: TableWork = field(default_factory=TableWork)
    reasons: dict[str, str] = field(default_factory=dict)
    seconds: float = 0.0
    reason: str | None = None
    error: TidegateError | None = None


@dataclass(frozen=True, slots=True)
class MaintainResult:
    """How a maintenance run ended."""

    run: str
    seconds: float
    tables: list[TableUpkeep]
    change_log: LogUpkeep

    @property
    def failed(self) -> bool:
        return any(table.status == "failed" for table in self.tables)


def run_maintain(
    spark: SparkSession,
    pipeline: PipelineConfig,
    platform: PlatformConfig,
    *,
    tables: Sequence[str | TableId] | None = None,
    force: bool = False,
    dry_run: bool = False,
    run: str | None = None,
    progress: Progress = silent,
) -> MaintainResult:
    """Do what is due for ``tables`` (all by default, and then the change log too).

    ``force`` does every step whether due or not; how old a snapshot or file must be to go is
    still respected.
    """
    job = _Maintain(spark, pipeline, platform, run or f"maintain_{uuid.uuid4().hex[:12]}")
    targets = check_tables(pipeline, tables)
    names = [target.source for target in targets]
    with job.noted(names) if force and not dry_run else nullcontext(Noting()) as noting:
        result = job.maintain(
            targets, whole=tables is None, force=force, dry_run=dry_run, progress=progress
        )
        if result.failed:
            noting.failed(failed=[t.table for t in result.tables if t.status == "failed"])
    return result


class _Maintain:
    """One call of :func:`run_maintain`."""

    def __init__(
        self, spark: SparkSession, pipeline: PipelineConfig, platform: PlatformConfig, run: str
    ) -> None:
        self.spark = spark
        self.pipeline = pipeline
        self.platform = platform
        self.run = run
        self.catalog = open_catalog(platform, pipeline)
        self.gate = Gate(self.catalog, pipeline, platform.gate)
        self.reports = Reports(self.catalog, pipeline)
        self.letters = DeadLetters(self.catalog, pipeline)

    def noted(self, tables: Sequence[str]) -> AbstractContextManager[Noting]:
        """The audit trail's entry. What is due is no one's decision and has none."""
        return AuditTrail(self.catalog, self.pipeline).action(
            Action.MAINTAIN, tables, run=self.run, forced=True
        )

    def maintain(
        self,
        targets: Sequence[LakeTarget],
        *,
        whole: bool,
        force: bool,
        dry_run: bool,
        progress: Progress,
    ) -> MaintainResult:
        """``whole``: the change log too."""
        began = time.monotonic()
        found = []
        for number, target in enumerate(targets, 1):
            found.append(self.table(target, force=force, dry_run=dry_run))
            progress("maintain", number, len(targets), "tables", table=target.source)
        kept = LogUpkeep()
        if whole and not dry_run:
            self.prune_letters()
        if whole:
            kept = maintain_log(
                self.spark,
                self.catalog,
                self.pipeline,
                self.platform,
                self.gate,
                force=force,
                dry_run=dry_run,
            )
        result = MaintainResult(self.run, round(time.monotonic() - began, 3), found, kept)
        if not dry_run:
            self.report(result)
        return result

    def table(self, target: LakeTarget, *, force: bool, dry_run: bool) -> TableUpkeep:
        began = time.monotonic()
        table = load(self.catalog, target.identifier)
        if table is None or table.current_snapshot() is None:
            return TableUpkeep(target.source, "skipped", reason="it was never swept")
        plan = self._plan(table, target, force=force)
        result = TableUpkeep(target.source, "nothing due", reasons=plan.reasons)
        if not plan.due and not TableKeeper.leftovers(table, self.platform.sweep):
            return result
        if dry_run:
            return replace(result, status="planned", done=plan.due)
        try:
            result = self._leased(target, plan, result)
        except HeldError as error:
            return replace(result, status="skipped", reason=error.message)
        except Exception as error:  # noqa: BLE001 - one table's failure is kept to itself
            reason = as_tidegate_error(error)
            log.event(
                _LOG,
                "maintenance failed",
                level=logging.ERROR,
                table=target.source,
                reason=describe(error),
            )
            return replace(result, status="failed", error=reason)
        return replace(result, seconds=round(time.monotonic() - began, 3))

    def report(self, result: MaintainResult) -> None:
        """``done`` by table is what the next plan reads (``lake.upkeep.last_done``)."""
        body: dict[str, Any] = plain(result)
        body["done"] = {table.table: table.done for table in result.tables if table.done}
        if result.change_log.done:
            body["done"][result.change_log.table] = result.change_log.done
        if body["done"]:
            self.reports.add("maintain", result.run, body)

    def prune_letters(self) -> None:
        loaded = {t.source: load(self.catalog, t.identifier) for t in self.pipeline.targets}
        self.letters.prune({name: table for name, table in loaded.items() if table is not None})

    def _plan(self, table: Table, target: LakeTarget, *, force: bool) -> UpkeepPlan:
        last = upkeep.last_done(self.reports, target.source)
        plan = upkeep.plan(table, target.maintenance, datetime.now(UTC), last)
        if force and target.maintenance.enabled:
            return UpkeepPlan(True, True, True, True, plan.reasons)
        return plan

    def _leased(self, target: LakeTarget, plan: UpkeepPlan, result: TableUpkeep) -> TableUpkeep:
        with self.gate.lease(self.run, [target.source], "maintain") as lease:
            # Before snapshots expire: which of them parked or resolved letters (lake.dead_letters).
            self.letters.settle(target.source, self.catalog.load_table(target.identifier), self.run)
            keeper = TableKeeper(self.spark, self.catalog, target, self.platform.sweep, lease)
            work = keeper.keep(plan, before_expiry=Proofs(self.catalog, self.pipeline).carry)
        log.event(_LOG, "maintained", table=target.source, step=", ".join(plan.due))
        return replace(result, status="maintained", done=plan.due, work=work)
