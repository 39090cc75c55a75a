"""A pipeline from a real PostgreSQL into a real lake, for tests of whole jobs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.postgres import SourceDatabase
from tidegate import faults
from tidegate.config.pipeline import PipelineConfig
from tidegate.config.platform import PlatformConfig, SweepConfig
from tidegate.names import TableId

if TYPE_CHECKING:  # whole jobs need pyspark, which only tests that use the stack load
    from pyiceberg.catalog import Catalog
    from pyiceberg.table import Table
    from pyspark.sql import SparkSession

    from tidegate.jobs.sweep_result import SweepResult, TableSweep
    from tidegate.lake.gate import Gate, TableGate

SMALL_CHUNKS = SweepConfig(chunk_rows=1000, parallelism=2, fetch_size=500, lock_timeout_seconds=5)


@dataclass
class Stack:
    """One pipeline of one test."""

    db: SourceDatabase
    spark: SparkSession
    platform: PlatformConfig
    pipeline: PipelineConfig
    runs: int = field(default=0)

    def deploy(self) -> None:
        from tidegate.jobs.deploy import deploy

        deploy(self.pipeline, self.platform)

    def sweep(self, *tables: str, run: str | None = None, **options: Any) -> SweepResult:
        from tidegate.jobs.sweep import run_sweep

        self.runs += 1
        return run_sweep(
            self.spark,
            self.pipeline,
            self.platform,
            tables=tables or None,
            run=run or f"run{self.runs}",
            **options,
        )

    def swept(self, *tables: str, **options: Any) -> TableSweep:
        """A sweep of one table that must succeed."""
        result = self.sweep(*tables, **options).tables[0]
        assert result.error is None, result.error
        return result

    @property
    def catalog(self) -> Catalog:
        from tidegate.lake.catalog import open_catalog

        return open_catalog(self.platform, self.pipeline)

    @property
    def gate(self) -> Gate:
        from tidegate.lake.gate import Gate

        return Gate(self.catalog, self.pipeline, self.platform.gate)

    def state(self, table: str) -> TableGate:
        return self.gate.states([table])[table]

    def table(self, table: str) -> Table:
        return self.catalog.load_table(self.pipeline.target(TableId.parse(table)).identifier)

    def lake(self, table: str, *columns: str, where: str | None = None) -> list[tuple[Any, ...]]:
        """Rows of the lake table as readers see them, sorted."""
        loaded = self.table(table)
        names = columns or tuple(field.name for field in loaded.schema().fields)
        options = {} if where is None else {"row_filter": where}
        rows = loaded.scan(selected_fields=names, **options).to_arrow().to_pylist()
        return sorted((tuple(row[name] for name in names) for row in rows), key=repr)


@pytest.fixture
def stack(
    source_db: SourceDatabase, spark: SparkSession, spark_platform: PlatformConfig
) -> Callable[..., Stack]:
    """Makes a deployed pipeline over tables that exist in ``source_db``."""

    def make(
        *tables: str,
        lake: dict[str, Any] | None = None,
        sweep: SweepConfig = SMALL_CHUNKS,
        deployed: bool = True,
    ) -> Stack:
        sinks = [{"sink_id": "lake", "sink_type": "iceberg", "iceberg": lake or {}}]
        pipeline = source_db.pipeline(*tables, sinks=sinks)
        platform = spark_platform.model_copy(update={"sweep": sweep})
        made = Stack(source_db, spark, platform, pipeline)
        if deployed:
            made.deploy()
        return made

    return make


@pytest.fixture
def fault(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Raise :class:`~tidegate.faults.Fault` the first time a point is reached from now on."""

    def arm(point: str) -> None:
        assert point.partition(":")[0] in faults.POINTS
        faults._hits.clear()
        monkeypatch.setenv("TIDEGATE_FAULT", f"{point}@raise")

    yield arm  # type: ignore[misc]
    faults._hits.clear()
