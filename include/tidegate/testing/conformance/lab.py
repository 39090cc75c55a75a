"""One database and one pipeline per path: the cases' statements go in, lake tables come out."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from tidegate.config.pipeline import PipelineConfig
from tidegate.config.platform import PlatformConfig
from tidegate.connectors.registry import open_source
from tidegate.errors import TidegateError
from tidegate.jobs.abandon import abandon_sweep
from tidegate.jobs.apply import run_apply
from tidegate.jobs.capture import run_capture
from tidegate.jobs.deploy import deploy, undeploy
from tidegate.jobs.sweep import run_sweep
from tidegate.lake.catalog import load, open_catalog
from tidegate.lake.dead_letters import DeadLetters
from tidegate.names import TableId
from tidegate.observability.progress import Progress, silent
from tidegate.testing.conformance.packing import Unit
from tidegate.testing.conformance.server import Server

if TYPE_CHECKING:
    from pyiceberg.catalog import Catalog
    from pyiceberg.table import Table

    from tidegate.spark.session import SparkSession


@dataclass
class Lab:
    """The units of one path, run."""

    spark: SparkSession
    platform: PlatformConfig
    server: Server
    database: str
    path: str
    mode: str
    units: Sequence[Unit]
    progress: Progress = silent
    errors: dict[str, TidegateError] = field(default_factory=dict)
    """The first refusal, by table."""
    adjusted: dict[str, dict[str, int]] = field(default_factory=dict)

    @cached_property
    def pipeline(self) -> PipelineConfig:
        return self.pipeline_of(self.units)

    def lake_table(self, table: TableId) -> Table | None:
        """The lake's table of a captured one."""
        return load(self._catalog, self.pipeline.target(table).identifier)

    def dead_letters(self, table: TableId) -> int:
        """How many changes of it wait."""
        letters = DeadLetters(self._catalog, self.pipeline)
        return len(letters.waiting(str(table), self.lake_table(table)))

    @cached_property
    def _catalog(self) -> Catalog:
        return open_catalog(self.platform, self.pipeline)

    def pipeline_of(self, units: Iterable[Unit]) -> PipelineConfig:
        units = list(units)
        tables = {
            str(table): unit.options.get(letter)
            for unit in units
            for letter, table in unit.tables.items()
        }
        options = {name: own.model_dump(exclude_unset=True) for name, own in tables.items() if own}
        iceberg = {"write_mode": self.mode, "tables": options}
        return PipelineConfig.model_validate(
            {
                "pipeline_id": self.database,
                "source": {**self.server.facts, "database": self.database, "tables": list(tables)},
                "sinks": [{"sink_id": "lake", "sink_type": "iceberg", "iceberg": iceberg}],
            }
        )

    def prepare(self) -> None:
        """The database's types and every table."""
        cases = [case for unit in self.units for case in unit.cases]
        self._execute("setup", self.server.preparation(cases))
        for unit in self.units:
            self._execute(unit.name, unit.ddl)

    def run(self) -> None:
        """Sweep and log, as the path has them."""
        scripts = {unit.name: unit.script(self.path) for unit in self.units}
        deploy(self.pipeline, self.platform)
        for name, script in scripts.items():
            self._execute(name, script.before)
        self._sweep()
        most = max(len(script.batches) for script in scripts.values())
        for number in range(most):
            for name, script in scripts.items():
                self._execute(name, script.batches[number] if number < len(script.batches) else ())
            self._apply(number)
            self.progress(f"{self.path} {self.mode}", number + 1, most, "batches")

    def close(self) -> None:
        """Leave nothing at the source; a sweep that was refused still holds its table's gate. The
        lake tables go with the caller's lake, file by file they would take a minute."""
        abandon_sweep(
            self.spark, self.pipeline, self.platform, actor="conformance", reason="the case is over"
        )
        undeploy(self.pipeline, self.platform)

    def problems(self, unit: Unit) -> list[str]:
        """Codes of what ``validate`` says about a unit's tables."""
        source = open_source(self.pipeline_of([unit]), self.platform)
        try:
            return [problem.code for problem in source.validate().problems]
        finally:
            source.close()

    def _sweep(self) -> None:
        result = run_sweep(
            self.spark, self.pipeline, self.platform, run="conformance", progress=self.progress
        )
        for table in result.tables:
            self._note(table.table, table.error, table.adjusted)

    def _apply(self, number: int) -> None:
        run_capture(self.pipeline, self.platform)
        result = run_apply(
            self.spark, self.pipeline, self.platform, run=f"batch_{number}", progress=self.progress
        )
        for table in result.tables:
            self._note(table.table, table.error, table.adjusted)

    def _note(self, table: str, error: TidegateError | None, adjusted: dict[str, int]) -> None:
        if error is not None:
            self.errors.setdefault(table, error)
        total = self.adjusted.setdefault(table, {})
        for column, count in adjusted.items():
            total[column] = total.get(column, 0) + count

    def _execute(self, name: str, statements: Iterable[str]) -> None:
        self.server.execute(self.database, name, statements)
