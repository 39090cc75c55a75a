"""What every source's cases run on, and how a run of them is judged."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Protocol

import pytest

from tidegate.config.platform import PlatformConfig
from tidegate.testing.conformance import runner
from tidegate.testing.conformance.cases import Case
from tidegate.testing.conformance.readers import Reader, duckdb_reader, pyiceberg_reader
from tidegate.testing.conformance.results import Report
from tidegate.testing.conformance.server import Server

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class Prove(Protocol):
    """``prove(server, cases, path)``"""

    def __call__(
        self, server: Server, cases: Sequence[Case], path: str, mode: str = runner.UPSERT
    ) -> Report: ...


@pytest.fixture(scope="module")
def platform(spark_platform: PlatformConfig) -> PlatformConfig:
    """Hundreds of tiny tables: more of them side by side than cores, they wait for the catalog."""
    spark = spark_platform.spark.model_copy(update={"table_parallelism": 4})
    return spark_platform.model_copy(update={"spark": spark})


@pytest.fixture(scope="module")
def readers() -> Iterator[dict[str, Reader]]:
    with duckdb_reader() as duckdb:
        yield {"pyiceberg": pyiceberg_reader, "duckdb": duckdb}


@pytest.fixture
def prove(spark: SparkSession, platform: PlatformConfig, readers: dict[str, Reader]) -> Prove:
    """Run cases on a path; what differs is told."""

    def run(server: Server, cases: Sequence[Case], path: str, mode: str = runner.UPSERT) -> Report:
        report = runner.run(spark, platform, server, cases, readers, paths=[path], modes=[mode])
        told = "\n".join(f"{f.case} ({f.reader}): {f.why}" for f in report.failures)
        assert not report.failures, told
        return report

    return run
