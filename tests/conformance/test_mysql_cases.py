"""Every case of MySQL and MariaDB on every path, on both servers: minutes, so marked ``long``.

``make test-conformance ARGS="-k mariadb"`` runs them; without a JVM every value case runs in
``tests/integration/mysql/test_case_texts.py``.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tidegate.config.platform import PlatformConfig
from tidegate.testing.conformance import runner
from tidegate.testing.conformance.cases import PATHS, Case, load_cases
from tidegate.testing.conformance.mysql import started_server
from tidegate.testing.conformance.readers import Reader, duckdb_reader, pyiceberg_reader
from tidegate.testing.conformance.server import Server
from tidegate.testing.mariadb_server import Flavour

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [
    pytest.mark.spark,
    pytest.mark.mysql,
    pytest.mark.long,
    pytest.mark.timeout(1200),
]

CASES = Path(__file__).parent / "cases" / "mysql"


@pytest.fixture(scope="module", params=["mariadb", "mysql"])
def server(request: pytest.FixtureRequest) -> Iterator[Server]:
    flavour: Flavour = request.param
    with started_server(flavour) as started:
        yield started


@pytest.fixture(scope="module")
def platform(spark_platform: PlatformConfig) -> PlatformConfig:
    """Many tiny tables: more of them side by side than cores, they wait for the catalog."""
    spark = spark_platform.spark.model_copy(update={"table_parallelism": 4})
    return spark_platform.model_copy(update={"spark": spark})


@pytest.fixture(scope="module")
def readers() -> Iterator[dict[str, Reader]]:
    with duckdb_reader() as duckdb:
        yield {"pyiceberg": pyiceberg_reader, "duckdb": duckdb}


@pytest.fixture(scope="module")
def cases() -> list[Case]:
    return load_cases(CASES)


def test_there_are_as_many_cases_as_the_documentation_says(cases: list[Case]) -> None:
    assert len(cases) >= 300


@pytest.mark.parametrize("path", PATHS)
def test_the_lake_holds_what_the_source_holds(
    spark: SparkSession,
    platform: PlatformConfig,
    server: Server,
    readers: dict[str, Reader],
    cases: list[Case],
    path: str,
) -> None:
    report = runner.run(spark, platform, server, cases, readers, paths=[path])
    told = "\n".join(f"{f.case} ({f.reader}): {f.why}" for f in report.failures)
    assert not report.failures, told
    assert report.checks > len(report.cases)
