"""Fixtures of the fault tests: one Spark session here, job processes to kill, one scenario."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.faults.scenario import Scenario, build
from tests.support.faults import SparkJobs
from tests.support.postgres import SourceDatabase
from tidegate.config.platform import GateConfig, PlatformConfig, SweepConfig
from tidegate.testing.postgres_server import PostgresServer

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CHUNKS = SweepConfig(chunk_rows=1000, parallelism=1, fetch_size=500)
"""The largest table is swept in three commits."""
GATE = GateConfig(lease_seconds=30.0, wait_seconds=60.0)

_names = itertools.count(1)

Build = Callable[..., Scenario]


BRIEF = (
    "test_apply_killed.py::test_killed_and_run_again_the_lake_is_the_source[apply.after_lease]",
    "test_apply_killed.py::test_killed_and_run_again_the_lake_is_the_source[apply.before_commit:2]",
    "test_apply_killed.py::test_killed_and_run_again_the_lake_is_the_source[apply.after_commit]",
    "test_apply_killed.py::test_killed_and_run_again_the_lake_is_the_source[apply.after_publish]",
    "test_capture_killed.py::test_killed_at_every_step_and_run_again_the_lake_is_the_source",
    "test_maintenance_killed.py::test_killed_and_run_again_the_lake_is_the_source"
    "[maintain.after_compact]",
    "test_maintenance_killed.py::test_killed_and_run_again_the_lake_is_the_source"
    "[maintain.after_stamp:2]",
    "test_mysql_killed.py::test_a_capture_killed_at_every_step_holds_every_event_once",
)
"""What a run of everything takes; the rest is ``long`` (half an hour): ``make test-faults``."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents:
            item.add_marker(pytest.mark.faults)
            if not item.nodeid.endswith(BRIEF):
                item.add_marker(pytest.mark.long)


@pytest.fixture(scope="session")
def fault_platform(spark_platform: PlatformConfig) -> PlatformConfig:
    return spark_platform.model_copy(update={"sweep": CHUNKS, "gate": GATE})


@pytest.fixture(scope="session")
def jobs(
    fault_platform: PlatformConfig, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[SparkJobs]:
    """Processes to be killed."""
    made = SparkJobs(tmp_path_factory.mktemp("jobs"), fault_platform)
    yield made
    made.end()


@contextmanager
def _scenario(
    server: PostgresServer,
    spark: SparkSession,
    platform: PlatformConfig,
    jobs: SparkJobs,
    folder: Path,
    swept: bool,
) -> Iterator[Scenario]:
    db = SourceDatabase(server, server.create_database(f"faults{next(_names)}"))
    try:
        made = build(db, spark, platform, jobs, folder, swept=swept)
        try:
            yield made
        finally:
            made.writer.stop()
    finally:
        db.drop()


@pytest.fixture(scope="session")
def builder(
    postgres: PostgresServer,
    spark: SparkSession,
    fault_platform: PlatformConfig,
    jobs: SparkJobs,
    tmp_path_factory: pytest.TempPathFactory,
) -> Callable[..., object]:
    def make(*, platform: PlatformConfig = fault_platform, swept: bool = True) -> object:
        folder = tmp_path_factory.mktemp("scenario")
        return _scenario(postgres, spark, platform, jobs, folder, swept)

    return make


@pytest.fixture(scope="session")
def shelf(builder: Callable[..., object]) -> Iterator[Build]:
    """The scenario that tests share; a test that did not prove it equal leaves a new one behind."""
    held = ExitStack()
    current: list[Scenario] = []

    def take() -> Scenario:
        if not current or not current[0].proven:
            held.close()
            current[:] = [held.enter_context(builder())]  # type: ignore[arg-type]
        return current[0]

    with held:
        yield take


@pytest.fixture
def scenario(shelf: Build) -> Scenario:
    """A swept pipeline, its writer active; positions, rows and log were right a moment ago."""
    return shelf()


@pytest.fixture
def fresh(builder: Callable[..., object]) -> Iterator[Build]:
    """Makes scenarios of this test's own: ``fresh(swept=False)``."""
    with ExitStack() as held:
        yield lambda **options: held.enter_context(builder(**options))  # type: ignore[arg-type]
