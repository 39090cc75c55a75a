"""The Spark operator with a real spark-submit: results, secrets, and an end that is one."""

from __future__ import annotations

import json
import signal
import time
from pathlib import Path

import psutil
import pytest

from tests.dags.conftest import PROJECT, Airflow, PipelineFile

pytestmark = pytest.mark.spark

CANARY = "canary-5c1e"
DEADLINE_SECONDS = 120.0

DAG_FILE = """
from airflow.sdk import DAG
from tidegate.airflow.operators.job import lake_alias
from tidegate.airflow.operators.spark import TidegateSparkOperator

with DAG("probe", schedule=None):
    TidegateSparkOperator(
        task_id="job",
        job={job!r},
        jobs_dir={jobs!r},
        pipeline_file={pipeline!r},
        platform_file={platform!r},
        outlets=[lake_alias("shop")],
        retries=0,
    )
"""


@pytest.fixture
def probe(airflow: Airflow, pipeline_file: PipelineFile, platform_file: Path) -> Airflow:
    """A Dag ``probe`` for each job of tests/dags/jobs, chosen by :func:`choose`."""
    pipeline_file("shop", source="  connection_id: shop_db\n")
    return airflow


def choose(airflow: Airflow, job: str) -> None:
    directory = airflow.dags.parent
    (airflow.dags / "probe.py").write_text(
        DAG_FILE.format(
            job=job,
            jobs=str(PROJECT / "tests" / "dags" / "jobs"),
            pipeline=str(directory / "pipelines" / "shop.yaml"),
            platform=str(directory / "platform.yaml"),
        )
    )


def connection() -> dict[str, str]:
    """The secret lives in an Airflow connection and nowhere else."""
    return {"AIRFLOW_CONN_SHOP_DB": f"postgres://cdc:{CANARY}@db.invalid:5432/shop"}


def alive(pid: int) -> bool:
    """A zombie is dead; so is a process that ends while it is looked at."""
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def wait_until_gone(pids: list[int]) -> None:
    deadline = time.monotonic() + DEADLINE_SECONDS
    while left := [pid for pid in pids if alive(pid)]:
        assert time.monotonic() < deadline, f"still running: {left}"
        time.sleep(0.1)  # polling processes that are not our children


def test_counts_come_back_and_no_secret_is_left_anywhere(probe: Airflow) -> None:
    choose(probe, "count_tables")
    run = probe.run("probe", **connection(), **probe.lineage)
    assert run.tasks == {"job": "success"}, run.output
    ended = probe.events("probe.job")["COMPLETE"]
    assert [one["name"] for one in ended["inputs"]] == [
        "shop.public.customers",
        "shop.public.orders",
    ]
    assert {one["namespace"] for one in ended["inputs"]} == {"postgres://db.invalid:5432"}
    (_, orders) = ended["outputs"]
    assert (orders["namespace"], orders["name"]) == ("x-iceberg://lake", "shop.orders")
    assert orders["facets"]["version"]["datasetVersion"] == "7"
    positions = ended["run"]["facets"]["tidegate"]["positions"]
    assert positions == {"public.customers": "e/2", "public.orders": "e/2"}
    assert CANARY not in json.dumps(ended)
    assert "public.orders: applied, inserted 1000" in run.output
    stored = probe.everything_stored()
    assert '"inserted": 1000' in stored or '\\"inserted\\": 1000' in stored
    assert f'"secret_length": {len(CANARY)}' in stored.replace('\\"', '"')
    assert "x-iceberg://lake/shop/orders" in stored  # one event per changed table
    assert "x-iceberg://lake/shop/customers" in stored
    assert CANARY not in run.output + stored


def test_a_row_value_in_sparks_message_reaches_no_log(probe: Airflow) -> None:
    choose(probe, "quote_value")
    run = probe.run("probe", **connection())
    assert run.tasks == {"job": "failed"}
    assert "CAST_INVALID_INPUT" in run.output
    assert CANARY not in run.output + probe.everything_stored()


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL])
def test_ending_the_task_ends_launcher_jvm_and_driver(
    probe: Airflow, tmp_path: Path, how: signal.Signals
) -> None:
    """SIGTERM is Airflow's way (on_kill); SIGKILL is a worker that ran out of memory."""
    choose(probe, "wait_forever")
    mark = tmp_path / "mark"
    with probe.start("probe", TIDEGATE_TEST_MARK=str(mark), **connection()) as task:
        deadline = time.monotonic() + DEADLINE_SECONDS
        while not mark.exists():
            assert task.poll() is None, task.communicate()[0]
            assert time.monotonic() < deadline
            time.sleep(0.1)  # polling a JVM that is starting
        driver, jvm = map(int, mark.read_text().split())
        family = [child.pid for child in psutil.Process(task.pid).children(recursive=True)]
        assert {driver, jvm} <= set(family)
        task.send_signal(how)
        wait_until_gone(family)
        task.communicate(timeout=DEADLINE_SECONDS)
