"""Captures, applies and sweeps of a MariaDB source, killed at every durable step and run again."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from typing import TYPE_CHECKING

import pytest

from tests.faults.mysql_source import MysqlScenario, Writer, check_log, create
from tests.support.faults import SparkJobs
from tests.support.mysql import MysqlDatabase, fresh_database
from tidegate.config.platform import PlatformConfig
from tidegate.lake.gate import GateState
from tidegate.testing.mariadb_server import MariadbServer

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.mysql


@pytest.fixture(scope="module")
def shared(
    mariadb: MariadbServer,
    spark: SparkSession,
    fault_platform: PlatformConfig,
    jobs: SparkJobs,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[MysqlScenario]:
    """A swept pipeline under a writer."""
    with ExitStack() as stack:
        db = stack.enter_context(fresh_database(mariadb))
        create(db)
        sinks = [{"sink_id": "lake", "sink_type": "iceberg"}]
        writer = Writer(db, seed=7)
        made = MysqlScenario(
            db,  # type: ignore[arg-type]
            spark,
            fault_platform,
            db.pipeline("accounts", "lines", sinks=sinks),
            folder=tmp_path_factory.mktemp("mysql"),
            jobs=jobs,
            writer=writer,
        )
        made.deploy()
        assert not made.sweep().failed
        writer.start()
        stack.callback(writer.stop)
        yield made


@pytest.fixture
def scenario(shared: MysqlScenario) -> MysqlScenario:
    shared.writer.check()
    return shared


def database(scenario: MysqlScenario) -> MysqlDatabase:
    assert isinstance(scenario.db, MysqlDatabase)
    return scenario.db


def test_a_capture_killed_at_every_step_holds_every_event_once(scenario: MysqlScenario) -> None:
    for point in (
        "capture.after_files",
        "capture.after_look",
        "capture.after_commit",
        "capture.after_confirm",
        "capture.after_schema",
    ):
        if point == "capture.after_schema":
            database(scenario).sql("ALTER TABLE accounts ADD COLUMN more int NULL")
        scenario.stir()
        scenario.kill_capture(point)
        with scenario.writer.resting():
            scenario.capture()
            check_log(database(scenario), scenario.catalog, scenario.pipeline)
    scenario.prove()


@pytest.mark.parametrize(
    "point",
    ["apply.after_lease", "apply.before_commit:2", "apply.after_commit", "apply.after_publish"],
)
def test_an_apply_killed_and_run_again(point: str, scenario: MysqlScenario) -> None:
    scenario.stir()
    scenario.capture()
    killed = scenario.kill("apply_changes.py", point)
    scenario.prove()
    killed.leaves_nothing()


@pytest.mark.parametrize(
    ("point", "status"),
    [
        ("sweep.after_gate", "swept"),
        ("sweep.after_cut", "swept"),
        ("sweep.after_branch", "swept"),
        ("sweep.after_chunk:2", "swept"),
        ("sweep.after_drain", "swept"),
        ("sweep.after_audit", "swept"),
        ("sweep.after_publish", "opened"),
    ],
)
def test_a_sweep_killed_and_run_again(point: str, status: str, scenario: MysqlScenario) -> None:
    table = f"{database(scenario).name}.accounts"
    scenario.stir()
    killed = scenario.kill("sweep_tables.py", point, "--tables", table)
    assert scenario.state(table).state is GateState.SWEEPING
    scenario.stir()
    assert scenario.swept(table).status == status
    scenario.prove()
    killed.leaves_nothing()
