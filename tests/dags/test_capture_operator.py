"""The capture operator's frame: lines as they come, secrets by file, an end that is one."""

from __future__ import annotations

import json
import re
import signal
from pathlib import Path

import psutil
import pytest

from tests.dags.conftest import Airflow, PipelineFile

CANARY = "canary-3d77"
DEADLINE_SECONDS = 60.0

DAG_FILE = """
from airflow.sdk import DAG
from tidegate.airflow.operators.capture import TidegateCaptureOperator


class Probe(TidegateCaptureOperator):
    module = "tests.dags.jobs.read_until"


with DAG("probe", schedule=None):
    Probe(task_id="capture", pipeline_file={pipeline!r}, platform_file={platform!r}, retries=0)
"""


@pytest.fixture
def probe(airflow: Airflow, pipeline_file: PipelineFile, platform_file: Path) -> Airflow:
    """The secret comes from the environment here, not from a connection."""
    pipeline = pipeline_file("shop")
    (airflow.dags / "probe.py").write_text(
        DAG_FILE.format(pipeline=str(pipeline), platform=str(platform_file))
    )
    return airflow


def test_the_result_is_the_xcom_and_no_secret_is_left(probe: Airflow) -> None:
    run = probe.run("probe", TIDEGATE_TEST_PASSWORD=CANARY, **probe.lineage)
    assert run.tasks == {"capture": "success"}, run.output
    events = probe.events("probe.capture")
    assert {"START", "COMPLETE"} <= set(events), run.output
    ended = events["COMPLETE"]
    assert [(one["namespace"], one["name"]) for one in ended["inputs"]] == [
        ("postgres://localhost:5432", f"shop.public.{table}") for table in ("customers", "orders")
    ]
    (log,) = ended["outputs"]
    assert (log["namespace"], log["name"]) == ("x-iceberg://lake", "tidegate_shop.change_log")
    facet = ended["run"]["facets"]["tidegate"]
    assert (facet["pipeline"], facet["through"]) == ("shop", "e/1")
    assert CANARY not in json.dumps(events)
    stored = probe.everything_stored().replace('\\"', '"')
    assert '"through": "e/1"' in stored
    assert f'"secret_length": {len(CANARY)}' in stored
    assert CANARY not in run.output + stored


def test_a_missing_variable_fails_at_once_and_is_named(probe: Airflow) -> None:
    run = probe.run("probe")
    assert run.tasks == {"capture": "failed"}
    assert "TIDEGATE_TEST_PASSWORD is not set" in run.output


def test_ending_the_task_ends_capture(probe: Airflow) -> None:
    environment = {"TIDEGATE_TEST_PASSWORD": CANARY, "TIDEGATE_TEST_WAIT": "1"}
    with probe.start("probe", **environment) as task:
        assert task.stdout is not None
        job = None
        said = []
        for line in task.stdout:  # its lines arrive while it runs
            said.append(line)
            if job is None and (found := re.search(r"ready .*done=(\d+)", line)):
                job = psutil.Process(int(found.group(1)))
                task.send_signal(signal.SIGTERM)
        assert job is not None, "".join(said)
        gone, _ = psutil.wait_procs([job], timeout=DEADLINE_SECONDS)
        assert gone
    assert "Ended capture" in "".join(said)
