"""Every kind of DDL, at every moment, under every policy: what ``ddl_matrix.yaml`` says of it.

All chosen cases of a moment are tables of one pipeline, which is run once; each is judged by itself
(``-k retype``, ``-k during_sweep``). A whole moment takes many minutes, so most are ``long``
(``make test-integration ARGS="-k ddl_matrix"``); :data:`BRIEF` runs always.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
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

pytestmark = [pytest.mark.postgres, pytest.mark.spark]

CASES = sorted(
    cases(Path(__file__).with_name("ddl_matrix.yaml")), key=lambda case: MOMENTS.index(case.moment)
)
BRIEF = {
    "add_nullable-evolve-mid_batch",
    "add_volatile_default-approve-mid_batch",
    "drop-evolve-mid_batch",
    "rename-evolve-mid_batch",
    "rename_cycle-approve-mid_batch",
    "partition_truncated-hold-mid_batch",
    "partition_vacuumed-evolve-mid_batch",
    "identity_round-evolve-mid_batch",
    "widen_int-evolve-mid_batch",
    "widen_real-evolve-mid_batch",
    "retype-cast-mid_batch",
    "table_recreated-hold-mid_batch",
}
"""One of each outcome: evolved, approved, cast, held."""
assert {case.id for case in CASES} >= BRIEF
IMPATIENT = SMALL_CHUNKS.model_copy(update={"lock_timeout_seconds": 0.2})
"""A sweep's reads give way to waiting DDL at once."""


@pytest.fixture(scope="module")
def seen(
    request: pytest.FixtureRequest,
    postgres: PostgresServer,
    spark: SparkSession,
    spark_platform: PlatformConfig,
) -> Iterator[Callable[[str], dict[str, Seen]]]:
    """What became of every chosen case of a moment. (A fixture with parameters would be made anew
    for every case.)"""
    items = [item for item in request.session.items if item.path == request.path]
    chosen: list[Case] = [item.callspec.params["case"] for item in items]  # type: ignore[attr-defined]
    side_by_side = spark_platform.spark.model_copy(update={"table_parallelism": 4})
    platform = spark_platform.model_copy(update={"sweep": IMPATIENT, "spark": side_by_side})
    with ExitStack() as databases:

        @functools.cache
        def of(moment: str) -> dict[str, Seen]:
            own = [case for case in chosen if case.moment == moment]
            database = databases.enter_context(contextmanager(fresh_database)(postgres))
            tables = {f"public.{case.table}": case.options for case in own}
            lake = {"tables": {name: options for name, options in tables.items() if options}}
            pipeline = database.pipeline(
                f"public.{BYSTANDER}",
                *tables,
                sinks=[{"sink_id": "lake", "sink_type": "iceberg", "iceberg": lake}],
            )
            return Matrix(Stack(database, spark, platform, pipeline), own).run()

        yield of


@pytest.mark.parametrize(
    "case",
    [
        pytest.param(case, id=case.id, marks=() if case.id in BRIEF else pytest.mark.long)
        for case in CASES
    ],
)
def test_the_lake_ends_as_the_matrix_says(
    case: Case, seen: Callable[[str], dict[str, Seen]]
) -> None:
    assert differences(case, seen(case.moment)[case.id]) == []
