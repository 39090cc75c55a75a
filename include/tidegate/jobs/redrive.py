"""Redrive: apply dead letters once more, in order, after their cause was mended (I7).

The letters of a row go together, whichever of them was asked for: order within a row holds. What
still cannot be applied stays a letter; the rest is published in one snapshot, and the letters it
resolves are named before that, so that a kill at any point applies each of them exactly once (I3).
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from pyiceberg.catalog import Catalog

from tidegate.config.pipeline import LakeTarget, PipelineConfig
from tidegate.config.platform import PlatformConfig
from tidegate.errors import ConfigError, TidegateError
from tidegate.jobs.apply_plan import stand
from tidegate.jobs.disclosure import as_tidegate_error
from tidegate.jobs.result import plain
from tidegate.jobs.sweep_plan import check_tables
from tidegate.lake.audit_trail import Action, AuditTrail
from tidegate.lake.catalog import load, open_catalog
from tidegate.lake.change_log import ChangeLog
from tidegate.lake.dead_letter_choice import Choice, together
from tidegate.lake.dead_letter_fold import Letter
from tidegate.lake.dead_letters import DeadLetters
from tidegate.lake.gate import Gate, Lease
from tidegate.lake.pauses import refuse_stopped
from tidegate.lake.reports import Reports
from tidegate.lake.schema_history import SchemaHistory
from tidegate.names import TableId
from tidegate.observability.progress import Progress, silent

if TYPE_CHECKING:
    from tidegate.spark.outcome import Outcome
    from tidegate.spark.session import SparkSession

PURPOSE: Final = "redrive"


@dataclass(frozen=True, slots=True)
class TableRedrive:
    """How one table's letters fared."""

    table: str
    status: str  # redriven | nothing | planned | failed
    tried: int = 0
    applied: int = 0
    still_waiting: int = 0
    snapshot_id: int | None = None
    seconds: float = 0.0
    error: TidegateError | None = None


@dataclass(frozen=True, slots=True)
class RedriveResult:
    run: str
    seconds: float
    tables: list[TableRedrive] = field(default_factory=list)

    @property
    def failed(self) -> bool:
        return any(table.error is not None for table in self.tables)


def run_redrive(
    spark: SparkSession,
    pipeline: PipelineConfig,
    platform: PlatformConfig,
    *,
    tables: Sequence[str | TableId] | None = None,
    choice: Choice | None = None,
    run: str | None = None,
    dry_run: bool = False,
    progress: Progress = silent,
) -> RedriveResult:
    """Apply the chosen letters of ``tables`` (all by default) once more."""
    began = time.monotonic()
    choice = choice or Choice()
    run = run or f"redrive_{uuid.uuid4().hex[:12]}"
    catalog = open_catalog(platform, pipeline)
    try:
        if not dry_run:
            refuse_stopped(catalog, pipeline)
        job = _Redrive(spark, catalog, pipeline, platform, run)
        results = []
        targets = check_tables(pipeline, tables)
        for done, target in enumerate(targets, start=1):
            results.append(job.table(target, choice, dry_run=dry_run))
            progress("redrive", done, len(targets), "tables", table=target.source)
        result = RedriveResult(run, round(time.monotonic() - began, 3), results)
        if any(table.status not in ("nothing", "planned") for table in results):
            Reports(catalog, pipeline).add("redrive", run, plain(result))
    finally:
        catalog.close()
    return result


class _Redrive:
    """One call of :func:`run_redrive`."""

    def __init__(
        self,
        spark: SparkSession,
        catalog: Catalog,
        pipeline: PipelineConfig,
        platform: PlatformConfig,
        run: str,
    ) -> None:
        self.spark = spark
        self.catalog = catalog
        self.pipeline = pipeline
        self.platform = platform
        self.run = run
        self.gate = Gate(catalog, pipeline, platform.gate)
        self.letters = DeadLetters(catalog, pipeline)
        self.trail = AuditTrail(catalog, pipeline)

    def table(self, target: LakeTarget, choice: Choice, *, dry_run: bool) -> TableRedrive:
        chosen = self._chosen(target, choice)
        if not chosen:
            return TableRedrive(target.source, "nothing")
        if dry_run:
            return TableRedrive(target.source, "planned", tried=len(chosen))
        began = time.monotonic()
        try:
            with (
                self.gate.lease(self.run, [target.source], PURPOSE) as lease,
                self.trail.action(Action.REDRIVE, [target.source], run=self.run) as noting,
            ):
                # What was chosen before the lease may have been redriven meanwhile.
                chosen = self._chosen(target, choice)
                outcome = self._apply(target, chosen, lease) if chosen else None
                noting.add(tried=len(chosen), still_waiting=outcome.parked if outcome else 0)
        except Exception as error:  # noqa: BLE001 - one table's failure is kept to itself
            return TableRedrive(target.source, "failed", error=as_tidegate_error(error))
        waiting = outcome.parked if outcome else 0
        return TableRedrive(
            target.source,
            "redriven",
            tried=len(chosen),
            applied=len(chosen) - waiting,
            still_waiting=waiting,
            snapshot_id=outcome.snapshot_id if outcome else None,
            seconds=round(time.monotonic() - began, 3),
        )

    def _chosen(self, target: LakeTarget, choice: Choice) -> list[Letter]:
        table = load(self.catalog, target.identifier)
        return together(self.letters.waiting(target.source, table), choice)

    def _apply(self, target: LakeTarget, chosen: list[Letter], lease: Lease) -> Outcome:
        from tidegate.spark.apply import ApplyContext, Redrive, apply_range
        from tidegate.spark.letters import letter_rows
        from tidegate.spark.pool import SessionPool
        from tidegate.spark.survey import LogPin, LogRange, survey_rows

        standing = stand(self.catalog, target)
        if standing is None:
            raise ConfigError(
                "redrive.no_table",
                f"{target.namespace}.{target.name} does not exist",
                hint="sweep the table first",
            )
        change_log = ChangeLog(self.catalog, self.pipeline)
        context = ApplyContext(
            catalog=self.catalog,
            history=SchemaHistory(self.catalog, self.pipeline),
            letters=self.letters,
            limits=self.platform.dlq,
            pin=LogPin(change_log.identifier, change_log.head().snapshot_id),
            run=self.run,
            token=lease.token,
            check=lambda: lease.check([target.source]),
        )
        span = LogRange(standing.position, standing.position)
        with SessionPool(self.spark, 1).session() as session:
            ids = [letter.event_id for letter in chosen]
            rows = letter_rows(session, self.letters.identifier, ids)
            found = survey_rows(rows)[target.source]
            return apply_range(
                session,
                context,
                target,
                span,
                found,
                base=standing.snapshot_id,
                redrive=Redrive(chosen, rows),
            )
