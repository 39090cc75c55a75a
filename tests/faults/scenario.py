"""A deployed, swept pipeline under a writer that never rests: what the fault tests act on."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.faults import comparison, source
from tests.support.faults import Files, JobProcess, SparkJobs, capture_process, halt_at, until
from tests.support.postgres import SourceDatabase
from tests.support.stack import Stack
from tidegate.config.pipeline import PipelineConfig
from tidegate.config.platform import PlatformConfig
from tidegate.jobs.apply import ApplyResult, run_apply
from tidegate.jobs.apply_result import Status
from tidegate.jobs.capture import run_capture
from tidegate.lake.gate import GateState

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

STIR = 3
"""Transactions that touched a table, before it counts as changed."""


@dataclass
class Scenario(Stack):
    """Jobs run in this process, or in processes of their own that are killed."""

    folder: Path = field(kw_only=True)
    jobs: SparkJobs = field(kw_only=True)
    writer: source.Writer = field(kw_only=True)
    trimmed: bool = False
    proven: bool = True
    """Whether source and lake were equal when last looked at; a scenario that is not is not used
    again."""

    @property
    def files(self) -> Files:
        return Files.write(self.folder, self.pipeline, self.platform)

    @property
    def tables(self) -> tuple[str, ...]:
        return self.pipeline.source.tables

    def name(self, verb: str) -> str:
        self.runs += 1
        return f"{verb}{self.runs}"

    def capture(self) -> Any:
        return run_capture(self.pipeline, self.platform)

    def apply(self, **options: Any) -> ApplyResult:
        return run_apply(
            self.spark, self.pipeline, self.platform, run=self.name("apply"), **options
        )

    def stir(self) -> None:
        """Wait until the writer has changed every table some more."""
        before = dict(self.writer.touched)

        def stirred() -> bool:
            self.writer.check()
            return all(self.writer.touched[t] >= before[t] + STIR for t in self.tables)

        until(stirred, "the writer touched every table")

    def halt(self, door: str, point: str, *arguments: str) -> JobProcess:
        """A job that stands still at ``point``, the writer active beside it."""
        self.proven = False
        before = self.writer.committed
        process = self.jobs.run(door, self.files, self.name("run"), arguments, halt_at(point))
        process.wait_for_halt()
        until(lambda: self.writer.committed > before, "the writer went on")
        return process

    def kill(self, door: str, point: str, *arguments: str) -> JobProcess:
        """A job that is dead right after ``point``."""
        process = self.halt(door, point, *arguments)
        process.kill()
        self.jobs.prepare()
        return process

    def kill_capture(self, point: str) -> None:
        self.proven = False
        run = self.name("capture")
        with capture_process(self.files, self.folder / run, run, halt_at(point)) as process:
            process.wait_for_halt()
            process.kill()

    def drain(self) -> None:
        """Everything that is committed, into the lake. The writer must rest."""
        self.capture()
        result = self.apply()
        stuck = [t for t in result.tables if t.status not in (Status.APPLIED, Status.UNCHANGED)]
        assert not stuck, [(t.table, t.status.value, t.reason, t.error) for t in stuck]

    def prove(self) -> None:
        """Source and lake are equal, row by row, and so are source and change log, by event."""
        with self.writer.resting():
            self.drain()
            self.compare()
        self.proven = True

    def compare(self) -> None:
        catalog = self.catalog
        assert comparison.differences(self.db, catalog, self.pipeline) == []
        assert comparison.check_log(self.db, catalog, self.pipeline, trimmed=self.trimmed) > 0
        comparison.check_events(catalog, self.pipeline)
        comparison.check_positions(catalog, self.pipeline)
        for table, gate in self.gate.states(self.tables).items():
            assert gate.state is GateState.OPEN, table
            assert gate.lease is None, f"{table} is still held by {gate.lease}"
        catalog.close()


def build(
    db: SourceDatabase,
    spark: SparkSession,
    platform: PlatformConfig,
    jobs: SparkJobs,
    folder: Path,
    *,
    swept: bool = True,
) -> Scenario:
    """Create, note, deploy, sweep, write. Whoever builds it stops its writer."""
    source.create(db)
    source.start_notes(db)
    sinks = [{"sink_id": "lake", "sink_type": "iceberg", "iceberg": source.LAKE}]
    pipeline: PipelineConfig = db.pipeline(*source.TABLES, sinks=sinks)
    writer = source.Writer(db, seed=len(db.name))
    made = Scenario(db, spark, platform, pipeline, folder=folder, jobs=jobs, writer=writer)
    made.deploy()
    if swept:
        result = made.sweep()
        assert not result.failed, [table.error for table in result.tables]
    writer.start()
    return made
