"""A whole pipeline in one process: deploy, first sweeps, capture, apply, due upkeep, in rounds.

Capture never waits for a sweep: while one runs, a thread goes on reading the source's log, so that
a long first sweep does not make the source keep its WAL. A stop is looked for between steps; a step
that is interrupted anyway leaves what is durable, and the next run goes on from it (I3).
"""

from __future__ import annotations

import logging
import threading
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from tidegate.config.pipeline import PipelineConfig
from tidegate.config.platform import PlatformConfig
from tidegate.config.source import SnapshotMode
from tidegate.errors import STOPPED_CODE, Decision, TidegateError, decide
from tidegate.jobs.apply import Status, run_apply
from tidegate.jobs.capture import run_capture
from tidegate.jobs.deploy import deploy
from tidegate.jobs.heeding import LOOK_SECONDS
from tidegate.jobs.lag_report import LagReport
from tidegate.jobs.maintain import run_maintain
from tidegate.jobs.readiness import HeldTable
from tidegate.jobs.registering import Registering
from tidegate.jobs.sweep import run_sweep
from tidegate.jobs.sweep_result import TableSweep
from tidegate.lake import positions
from tidegate.lake.catalog import load, open_catalog
from tidegate.lake.gate import Gate, GateState
from tidegate.lake.pauses import Pauses, refuse_stopped
from tidegate.observability import log
from tidegate.observability.progress import Progress, silent
from tidegate.transports.embedded import backoff

if TYPE_CHECKING:
    from tidegate.spark.session import SparkSession

_LOG = log.get(__name__)
FAILED: Final = "failed"
WITHOUT_SWEEP: Final = (Status.MISSING, Status.HELD, Status.WAITING)
"""What an apply says of a table whose first sweep failed; others were swept meanwhile."""
READY_SECONDS: Final = 60.0
"""How often a source is asked again that is not ready for all tables."""
MAX_DOUBLINGS: Final = 32


@dataclass(slots=True)
class RunOutcome:
    """What a run did, over all its rounds."""

    rounds: int = 0
    captured: int = 0
    inserted: int = 0
    updated: int = 0
    deleted: int = 0
    parked: int = 0  # changes that became dead letters
    swept: list[str] = field(default_factory=list)
    through: str | None = None
    stopped: bool = False
    abandoned: bool = False  # the step in hand was interrupted by a second signal
    seconds: float = 0.0
    tables: list[Any] = field(default_factory=list)  # of the last round
    not_ready: list[HeldTable] = field(default_factory=list)
    """Tables that deploy holds, for the source is not ready for them."""
    sweeps: list[TableSweep] = field(default_factory=list)
    """First sweeps: how each table's last one ended."""

    @property
    def failed(self) -> bool:
        """Whether a table failed in the last round, or is without its first sweep for one that
        failed (I12)."""
        if any(str(table.status) == FAILED for table in self.tables):
            return True
        return any(sweep.error is not None for sweep in self.sweeps)


@dataclass(slots=True)
class Pulse:
    """What is known of a run from another thread while it goes on."""

    problem: TidegateError | None = None  # why the last round did not come to its end


def run_pipeline(
    spark: SparkSession,
    pipeline: PipelineConfig,
    platform: PlatformConfig,
    *,
    interval: float | None,
    stop: threading.Event,
    progress: Progress = silent,
    pulse: Pulse | None = None,
) -> RunOutcome:
    """Run rounds until ``stop``; with ``interval=None`` one, which takes everything up to now.

    Between rounds a passing failure is waited out with back-off. What cannot pass ends the run.
    """
    began = time.monotonic()
    outcome = RunOutcome()
    try:
        if not stop.is_set():
            job = _Run(spark, pipeline, platform, stop, progress, outcome, pulse)
            job.deploy()
            with job.lag.speaking():
                _rounds(job, interval)
            job.registering.finish()
    except KeyboardInterrupt:
        if not stop.is_set():
            raise
        outcome.abandoned = True  # asked twice; what is durable stays, the next run goes on (I3)
    outcome.stopped = stop.is_set()
    outcome.seconds = round(time.monotonic() - began, 3)
    return outcome


def _rounds(job: _Run, interval: float | None) -> None:
    attempt = 0
    while not job.stop.is_set():
        try:
            job.round()
            job.pulse.problem = None
            attempt = 0
        except TidegateError as error:
            if interval is not None and error.code == STOPPED_CODE:
                _wait_for_start(job, error, interval)
                continue
            attempt += 1
            if interval is None or decide(error) is Decision.STOP:
                raise
            job.pulse.problem = error
            # Bounded, for an outage of days would overflow the power in it.
            pause = backoff(job.platform.retry, min(attempt, MAX_DOUBLINGS))
            log.event(
                _LOG,
                "round failed, trying again",
                level=logging.WARNING,
                code=error.code,
                reason=error.message,
                wait_seconds=pause,
            )
            job.stop.wait(pause)
            continue
        if interval is None:
            return
        job.stop.wait(interval)


def _wait_for_start(job: _Run, stopped: TidegateError, interval: float) -> None:
    """A process that follows a pipeline stays while that is stopped, and goes on when it may."""
    log.event(_LOG, "stopped", reason=stopped.message, hint=stopped.hint)
    pauses = Pauses(job.catalog, job.pipeline)
    while pauses.stopped() is not None:
        if job.stop.wait(max(interval, LOOK_SECONDS)):
            return
    log.event(_LOG, "started again")


class _Run:
    """One call of :func:`run_pipeline`."""

    def __init__(
        self,
        spark: SparkSession,
        pipeline: PipelineConfig,
        platform: PlatformConfig,
        stop: threading.Event,
        progress: Progress,
        outcome: RunOutcome,
        pulse: Pulse | None = None,
    ) -> None:
        self.spark = spark
        self.pipeline = pipeline
        self.platform = platform
        self.stop = stop
        self.progress = progress
        self.outcome = outcome
        self.pulse = pulse or Pulse()
        self.catalog = open_catalog(platform, pipeline)
        self.gate = Gate(self.catalog, pipeline, platform.gate)
        self.registering = Registering(pipeline, platform)
        every = platform.lag_monitor_interval_seconds
        self.lag = LagReport(open_catalog(platform, pipeline), pipeline, every)
        self._asked = time.monotonic()

    def deploy(self) -> None:
        """One table's problem holds that table; the others go on."""
        self._asked = time.monotonic()
        before = {held.table for held in self.outcome.not_ready}
        self.outcome.not_ready = list(deploy(self.pipeline, self.platform).held)
        for held in self.outcome.not_ready:
            if held.table not in before:
                for reason in held.reasons:
                    log.event(_LOG, "held", logging.WARNING, table=held.table, reason=reason)

    def round(self) -> None:
        """First sweeps, capture up to now, apply, upkeep; ends early between steps on a stop."""
        refuse_stopped(self.catalog, self.pipeline)
        for step in (self._ask_again, self._sweep, self._capture, self._apply, self._maintain):
            if self.stop.is_set():
                return
            step()
        self.outcome.rounds += 1
        self.lag.say()

    def _ask_again(self) -> None:
        """Tables that waited for their source join once it is ready for them."""
        if not self.outcome.not_ready or time.monotonic() - self._asked < READY_SECONDS:
            return
        try:
            self.deploy()
        except TidegateError as error:
            # The tables that are ready go on; whatever is wrong for them too, they meet it.
            log.event(_LOG, "not deployed", logging.WARNING, code=error.code, reason=error.message)

    def _sweep(self) -> None:
        """Tables that were never swept. After them capture goes at least to their cut."""
        wanted = self._never_swept()
        if not wanted:
            return
        with self._capturing() if self._all_open(wanted) else nullcontext():
            result = run_sweep(
                self.spark,
                self.pipeline,
                self.platform,
                tables=wanted,
                run=_run_id("sweep"),
                progress=self.progress,
            )
        self.outcome.swept += [t.table for t in result.tables if t.snapshot_id is not None]
        ended = {sweep.table: sweep for sweep in (*self.outcome.sweeps, *result.tables)}
        self.outcome.sweeps = list(ended.values())
        self.outcome.parked += sum(table.parked for table in result.tables)

    def _all_open(self, tables: list[str]) -> bool:
        """False if a killed sweep is resumed: it captures by itself, and a slot has one reader."""
        return all(gate.state is GateState.OPEN for gate in self.gate.states(tables).values())

    def _never_swept(self) -> list[str]:
        if self.pipeline.source.snapshot_mode is not SnapshotMode.INITIAL:
            return []
        states = self.gate.states(self.pipeline.source.tables)
        not_ready = {held.table for held in self.outcome.not_ready}
        return [
            target.source
            for target in self.pipeline.targets
            if states[target.source].state is not GateState.HELD
            and target.source not in not_ready
            and (
                (table := load(self.catalog, target.identifier)) is None
                or positions.applied(table) is None
            )
        ]

    def _capture(self) -> None:
        result = run_capture(
            self.pipeline, self.platform, until="now", stop=self.stop, progress=self.progress
        )
        self._count(result)
        self.registering.begin()

    def _count(self, result: Any) -> None:
        self.outcome.captured += result.rows
        self.outcome.through = str(result.through)

    def _apply(self) -> None:
        result = run_apply(
            self.spark,
            self.pipeline,
            self.platform,
            run=_run_id("apply"),
            progress=self.progress,
        )
        self.outcome.tables = list(result.tables)
        behind = {table.table for table in result.tables if table.status in WITHOUT_SWEEP}
        self.outcome.sweeps = [
            sweep for sweep in self.outcome.sweeps if sweep.error is None or sweep.table in behind
        ]
        self.outcome.inserted += sum(table.inserted for table in result.tables)
        self.outcome.updated += sum(table.updated for table in result.tables)
        self.outcome.deleted += sum(table.deleted for table in result.tables)
        self.outcome.parked += sum(table.parked for table in result.tables)

    def _maintain(self) -> None:
        run_maintain(self.spark, self.pipeline, self.platform, progress=self.progress)

    @contextmanager
    def _capturing(self) -> Iterator[None]:
        """Capture in a thread for as long as the block runs; its failure is raised after it."""
        enough = threading.Event()
        failures: list[BaseException] = []

        def follow() -> None:
            try:
                self._count(
                    run_capture(
                        self.pipeline,
                        self.platform,
                        until=None,
                        stop=enough,
                        progress=self.progress,
                    )
                )
            except BaseException as error:  # noqa: BLE001 - handed to the thread that waits
                failures.append(error)

        thread = threading.Thread(target=follow, name="tidegate-capture", daemon=True)
        thread.start()
        try:
            yield
        finally:
            enough.set()
            thread.join()
        if failures:
            raise failures[0]


def _run_id(verb: str) -> str:
    return f"{verb}_{uuid.uuid4().hex[:12]}"
