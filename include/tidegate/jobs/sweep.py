"""Sweep: re-read tables in full at one cut, audit them on a branch, publish (DESIGN §7).

Gate → cut → per table: lease, branch, chunks, drain, audit, publish, open. Every step before the
fast-forward leaves ``main`` as it was; a killed run leaves the gate ``sweeping`` and a branch that
the next call goes on with. Several tables side by side, for a small one mostly waits for catalogs;
of large ones, one reads at a time. One table's failure is kept to itself.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from tidegate import faults
from tidegate.config.pipeline import LakeTarget, PipelineConfig
from tidegate.config.platform import PlatformConfig
from tidegate.connectors.cut import BesideCut, Cut, looked
from tidegate.connectors.protocol import Source
from tidegate.connectors.registry import open_source
from tidegate.envelope.position import Position
from tidegate.errors import Decision, HeldError, TidegateError, UnexpectedError
from tidegate.jobs.disclosure import as_tidegate_error, describe
from tidegate.jobs.result import plain
from tidegate.jobs.sweep_cut import cut_of
from tidegate.jobs.sweep_drain import capture_through, complete, drain
from tidegate.jobs.sweep_plan import (
    SweepRun,
    check_range,
    check_tables,
    group_runs,
    planned,
    refuse_resume,
)
from tidegate.jobs.sweep_result import SweepResult, TableSweep, swept
from tidegate.jobs.write_errors import say_errors
from tidegate.lake.audit_trail import Action, AuditTrail, Noting
from tidegate.lake.catalog import load, open_catalog
from tidegate.lake.change_log import ChangeLog
from tidegate.lake.dead_letters import DeadLetters
from tidegate.lake.gate import PUBLISHED, Gate, Lease
from tidegate.lake.pauses import refuse_stopped
from tidegate.lake.reports import Reports
from tidegate.lake.schema_history import SchemaHistory
from tidegate.lake.schema_hold import NEEDS_SWEEP, hold_others, open_others
from tidegate.lake.version_news import say_versions
from tidegate.names import TableId, sweep_branch
from tidegate.observability import caller, log
from tidegate.observability.progress import Progress, silent
from tidegate.schema.contract import contracted
from tidegate.spark import expectations
from tidegate.spark.audit import failed
from tidegate.spark.base import ROW_MISSING, ROW_MOVED
from tidegate.spark.fill import TWO_AGES
from tidegate.spark.fitness import CAST_FAILED
from tidegate.spark.pool import SessionPool
from tidegate.spark.sweep import Built, Sweeper
from tidegate.spark.sweep_range import KeyRange
from tidegate.spark.sweep_state import published
from tidegate.transports.embedded import SLOT_ACTIVE

if TYPE_CHECKING:
    from tidegate.spark.session import SparkSession

_LOG = log.get(__name__)
ACTOR = "sweep"
LEASE_LOST = "gate.lease_lost"
_OTHERS_AT_WORK = (LEASE_LOST, SLOT_ACTIVE)
"""Someone else has the table, or the source's log; no reason to hold anything."""
_ANEW = (ROW_MOVED, ROW_MISSING, CAST_FAILED, NEEDS_SWEEP, TWO_AGES)
"""What a log cannot bring to the last cut, and reading the table at that cut can."""
Build = Callable[[Sweeper, LakeTarget, str], Built]


def run_sweep(
    spark: SparkSession,
    pipeline: PipelineConfig,
    platform: PlatformConfig,
    *,
    tables: Sequence[str | TableId] | None = None,
    where: str | None = None,
    run: str,
    dry_run: bool = False,
    resume: bool = True,
    actor: str | None = None,
    reason: str | None = None,
    progress: Progress = silent,
) -> SweepResult:
    """Sweep ``tables`` (all by default). ``reason`` goes to the gate's timeline, and ``actor``,
    by default whoever came through the door.

    With ``resume``, what a killed sweep of theirs left is gone on with; without, it starts over.
    ``where`` is a range of keys of one table (:class:`KeyRange`); other rows stay as they are.
    """
    began = time.monotonic()
    targets = check_tables(pipeline, tables)
    keys = check_range(where, targets)
    expectations.check(pipeline)
    if not dry_run:
        refuse_stopped(open_catalog(platform, pipeline), pipeline)
    source = open_source(pipeline, platform)
    try:
        if keys is not None:  # before any gate closes
            keys.key(targets[0], contracted(source.discover(targets[0].table), targets[0]))
        actor = actor or str(caller.current())
        job = _Sweep(spark, pipeline, platform, source, progress, actor, reason)
        if dry_run:
            rows = [TableSweep(**plan) for plan in planned(source, job.head, targets, platform)]
            return SweepResult(run, rows[0].position, time.monotonic() - began, rows)
        with job.noted(targets, run, keys) as noting:
            cut, results = job.sweep(targets, run, resume=resume, keys=keys)
            result = SweepResult(run, cut, round(time.monotonic() - began, 3), results)
            _note(noting, result)
    finally:
        source.close()
    say_errors(pipeline, job.letters, run, result.tables)
    job.report(result)
    return result


class _Sweep:
    """One call of :func:`run_sweep`."""

    def __init__(
        self,
        spark: SparkSession,
        pipeline: PipelineConfig,
        platform: PlatformConfig,
        source: Source,
        progress: Progress,
        actor: str,
        reason: str | None,
    ) -> None:
        self.actor = actor
        self.reason = reason
        self.spark = spark
        self.pipeline = pipeline
        self.platform = platform
        self.source = source
        self.progress = progress
        self.catalog = open_catalog(platform, pipeline)
        self.gate = Gate(self.catalog, pipeline, platform.gate)
        self.log = ChangeLog(self.catalog, pipeline)
        self.letters = DeadLetters(self.catalog, pipeline)
        self.head = self.log.head().captured_through
        self._capturing = threading.Lock()  # a slot admits one connection

    def sweep(
        self, targets: Sequence[LakeTarget], run: str, *, resume: bool, keys: KeyRange | None
    ) -> tuple[Position, list[TableSweep]]:
        runs = group_runs(self.gate, targets, run)
        if keys is not None:
            refuse_resume(runs, run)
            self._refuse_letters(targets)
        for group in runs:
            self.progress(f"gate {group.run}", 0, len(group.targets), "tables")
            reason = self.reason or f"sweep {group.run}"
            self.gate.begin_sweep(group.run, group.names, self.actor, reason=reason)
        faults.point("sweep.after_gate")
        with ExitStack() as stack:
            try:
                cut, runs, shut = cut_of(
                    stack, self.source, self.gate, self.head, runs, whole=keys is None
                )
            except TidegateError as error:
                self._give_back(runs, run, error)
                raise
            faults.point("sweep.after_cut")
            left_out = [TableSweep(one.table, "held", error=one.error) for one in shut]
            try:
                results = [*left_out, *self._all(cut, runs, resume=resume, keys=keys)]
            except Exception as error:
                for group in runs:
                    self._failed(group.run, group.names, as_tidegate_error(error))
                raise
        for result in results:
            if result.error is None:
                open_others(self.gate, self.pipeline, result.table, ACTOR)
        return cut.position, results

    def _refuse_letters(self, targets: Sequence[LakeTarget]) -> None:
        """Draining the log onto a part of the table knows nothing of changes that wait."""
        for target in targets:
            waiting = self.letters.waiting(target.source, load(self.catalog, target.identifier))
            if waiting:
                raise HeldError(
                    "sweep.dead_letters",
                    f"{target.source} has {len(waiting)} dead letters",
                    hint="redrive or discard them (`tidegate dead-letters`), or sweep the whole"
                    " table, which makes them moot",
                )

    def noted(
        self, targets: Sequence[LakeTarget], run: str, keys: KeyRange | None
    ) -> AbstractContextManager[Noting]:
        """The audit trail's entry; of a key range it says that there is one, not which keys."""
        names = [target.source for target in targets]
        part = "a range of keys" if keys is not None else None
        trail = AuditTrail(self.catalog, self.pipeline)
        return trail.action(Action.SWEEP, names, run=run, reason=self.reason, only=part)

    def report(self, result: SweepResult) -> None:
        Reports(self.catalog, self.pipeline).add("sweep", result.run, plain(result))

    def _give_back(self, runs: Sequence[SweepRun], run: str, error: TidegateError) -> None:
        """No cut, no sweep: what this call closed goes back to what it was. What an earlier run
        had begun stays for a resume."""
        for group in runs:
            if group.run == run:
                self.gate.end_sweep(run, group.names, "no cut")
            else:
                self._failed(group.run, group.names, error)

    def _failed(self, run: str, tables: Sequence[str], error: TidegateError) -> None:
        """Note at gates that stay ``sweeping`` why; not where another process goes on with it."""
        if error.code == LEASE_LOST:
            return
        reason = f"{error.message} [{error.code}] → {error.hint}"
        try:
            self.gate.fail_sweep(run, tables, reason)
        except TidegateError as unnoted:
            # What ended the sweep may be what keeps it from being told.
            text = f"not noted at the gate: {unnoted.message}"
            log.event(_LOG, text, level=logging.WARNING, run=run, code=unnoted.code)

    def _all(
        self, cut: Cut, runs: Sequence[SweepRun], *, resume: bool, keys: KeyRange | None
    ) -> list[TableSweep]:
        tables = [target.table for group in runs for target in group.targets]
        sweeper = Sweeper(
            session=self.spark,
            catalog=self.catalog,
            pipeline=self.pipeline,
            settings=self.platform.sweep,
            cut=cut,
            cut_time=datetime.now(UTC),
            letters=self.letters,
            limits=self.platform.dlq,
            progress=self.progress,
            history=self._recorded(cut, tables),
            one_large=threading.Lock(),
        )

        def build(own: Sweeper, target: LakeTarget, run: str) -> Built:
            if keys is not None:
                return own.build_range(target, run, keys)
            return own.build(target, run, resume=resume)

        def one(session: SparkSession, task: tuple[LakeTarget, str]) -> TableSweep:
            return self._one(replace(sweeper, session=session), *task, build)

        tasks = [(target, group.run) for group in runs for target in group.targets]
        size = min(self.platform.spark.table_parallelism, len(tasks))
        return SessionPool(self.spark, size).map(one, tasks)

    def _recorded(self, cut: Cut, tables: Sequence[TableId]) -> SchemaHistory:
        """The cut says exactly which columns the tables have, with the source's numbers."""
        history = SchemaHistory(self.catalog, self.pipeline)
        added = history.record_all([(cut.schema(table), cut.position) for table in tables])
        say_versions(history, self.pipeline, added)
        known = history.facts.known(cut.position, cut.position, None)
        looks = {t: facts for t in tables if (facts := looked(cut, t, known.get(t))) is not None}
        history.facts.note(looks, cut.position, cut.position)
        return history

    def _one(self, sweeper: Sweeper, target: LakeTarget, run: str, build: Build) -> TableSweep:
        began = time.monotonic()
        try:
            with self.gate.lease(run, [target.source], "sweep") as lease:
                try:
                    result = self._leased(sweeper, target, run, lease, build)
                except Exception as error:
                    reason = as_tidegate_error(error)
                    if not isinstance(reason, UnexpectedError):  # another attempt may go on
                        self._close(target, run, lease, reason)
                    raise
        except Exception as error:  # noqa: BLE001 - one table's failure is kept to itself
            failure = _failure(target, run, error, time.monotonic() - began)
            self._failed(run, [target.source], as_tidegate_error(error))
            return failure
        faults.point("sweep.after_open")
        return result

    def _leased(
        self, sweeper: Sweeper, target: LakeTarget, run: str, lease: Lease, build: Build
    ) -> TableSweep:
        began = time.monotonic()
        table = load(self.catalog, target.identifier)
        done_at = published(table, run) if table is not None else None
        if done_at is not None:
            # Killed between publish and open: the rows are there, only the gate is left (I3).
            self.gate.end_sweep(run, [target.source], PUBLISHED, lease)
            return TableSweep(target.source, "opened", position=done_at, resumed=True)
        built = self._drained(sweeper, build(sweeper, target, run), run)
        outcome = sweeper.audit(built)
        if not outcome.complete and built.resumed:
            # Killed before the letters of its last chunks were durable, their rows are nowhere.
            built = self._anew(sweeper, built, run, "; ".join(outcome.failures))
            outcome = sweeper.audit(built)
        if not outcome.passed:
            raise failed(target.source, built.mode.branch, outcome)
        faults.point("sweep.after_audit")
        built = self._completed(sweeper, built)
        lease.check()  # a stale writer cannot publish (I4)
        if self.letters.waiting(target.source, table):
            built.parking.supersede()  # counts with the snapshot
        snapshot = sweeper.publish(built, run)
        faults.point("sweep.after_publish")
        self.letters.settle(target.source, sweeper.loaded(target), run)
        self.gate.end_sweep(run, [target.source], PUBLISHED, lease)
        checks = tuple(verdict.name for verdict in outcome.verdicts)
        return swept(built, snapshot, checks, time.monotonic() - began)

    def _drained(self, sweeper: Sweeper, built: Built, run: str) -> Built:
        """Every chunk at the last cut; if the log cannot bring it there, all of them read anew."""
        if not built.needs_drain:
            return built
        try:
            with self._capturing:
                capture_through(self.pipeline, self.platform, built.mode.cut, self.progress)
            drain(sweeper.session, self.pipeline, self.platform, built)
        except TidegateError as error:
            if error.code not in _ANEW or not built.resumed:
                raise
            return self._anew(sweeper, built, run, error.message)
        faults.point("sweep.after_drain")
        return built

    def _completed(self, sweeper: Sweeper, built: Built) -> Built:
        """What a cut beside running transactions lacks comes from the log."""
        if not isinstance(sweeper.cut, BesideCut):
            return built
        visible = sweeper.cut.visible
        with self._capturing:
            capture_through(self.pipeline, self.platform, visible.through, self.progress)
        built = complete(sweeper.session, self.pipeline, self.platform, built, visible)
        faults.point("sweep.after_drain")
        return built

    def _anew(self, sweeper: Sweeper, built: Built, run: str, reason: str) -> Built:
        target = built.mode.target
        log.event(_LOG, "reading anew", table=target.source, run=run, reason=reason)
        return sweeper.build(target, run, resume=False)

    def _close(self, target: LakeTarget, run: str, lease: Lease, error: TidegateError) -> None:
        """Hold the table with the reason and what to do.

        Not if the lease went to someone else, and not if trying again may help: then the gate
        stays ``sweeping`` and the next call goes on from the branch.
        """
        if error.decision is Decision.RETRY or error.code in _OTHERS_AT_WORK:
            return
        lease.check()
        self.gate.end_sweep(run, [target.source], error.code)
        self.gate.hold([target.source], f"{error.message} → {error.hint}", ACTOR)
        hold_others(self.gate, self.pipeline, self.platform, target.source, error.code, ACTOR)


def _note(noting: Noting, result: SweepResult) -> None:
    failures = {t.table: t.error.code for t in result.tables if t.error is not None}
    swept = len(result.tables) - len(failures)
    if failures:
        noting.failed(swept=swept, failures=failures)
    else:
        noting.add(swept=swept)


def _failure(target: LakeTarget, run: str, error: Exception, seconds: float) -> TableSweep:
    reason = as_tidegate_error(error)
    log.event(
        _LOG,
        "sweep failed",
        level=logging.ERROR,
        table=target.source,
        run=run,
        code=reason.code,
        reason=reason.message if reason is error else describe(error),
    )
    return TableSweep(
        target.source,
        "held" if isinstance(reason, HeldError) else "failed",
        seconds=round(seconds, 3),
        branch=sweep_branch(run),
        error=reason,
    )
