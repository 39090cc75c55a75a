"""Every kind of DDL, at every moment, under every policy: what ``ddl_matrix.yaml`` says of it.

All cases of a moment are tables of one pipeline, which is run once; each case is judged by itself
(``-k retype``, ``-k during_sweep``). A moment takes many minutes, so all of it is ``long``:
``make test-integration ARGS="-k ddl_matrix"``.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.support.ddl_matrix import BYSTANDER, MOMENTS, Case, Matrix, Seen, cases, differences
from tests.support.postgres import fresh_database
from tests.support.stack import SMALL_CHUNKS, Stack
from tidegate.config.platform import PlatformConfig
from tidegate.testing.postgres_server import PostgresServer

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.postgres, pytest.mark.spark, pytest.mark.long]

CASES = sorted(
    cases(Path(__file__).with_name("ddl_matrix.yaml")), key=lambda case: MOMENTS.index(case.moment)
)
IMPATIENT = SMALL_CHUNKS.model_copy(update={"lock_timeout_seconds": 0.2})
"""A sweep's reads give way to waiting DDL at once."""


@pytest.fixture(scope="module")
def seen(
    request: pytest.FixtureRequest,
    postgres: PostgresServer,
    spark: SparkSession,
    spark_platform: PlatformConfig,
) -> Iterator[dict[str, Seen]]:
    """What became of every case of a moment."""
    own = [case for case in CASES if case.moment == request.param]
    with contextmanager(fresh_database)(postgres) as database:
        tables = {f"public.{case.table}": case.options for case in own}
        lake = {"tables": {name: options for name, options in tables.items() if options}}
        pipeline = database.pipeline(
            f"public.{BYSTANDER}",
            *tables,
            sinks=[{"sink_id": "lake", "sink_type": "iceberg", "iceberg": lake}],
        )
        side_by_side = spark_platform.spark.model_copy(update={"table_parallelism": 4})
        platform = spark_platform.model_copy(update={"sweep": IMPATIENT, "spark": side_by_side})
        yield Matrix(Stack(database, spark, platform, pipeline), own).run()


@pytest.mark.parametrize(
    ("case", "seen"),
    [pytest.param(case, case.moment, id=case.id) for case in CASES],
    indirect=["seen"],
)
def test_the_lake_ends_as_the_matrix_says(case: Case, seen: dict[str, Seen]) -> None:
    assert differences(case, seen[case.id]) == []
