"""The gate sensor against a real journal: it holds no worker, and lets through what is open."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from airflow.sdk.exceptions import AirflowSkipException, TaskDeferred

from tests.dags.conftest import Airflow, PipelineFile
from tidegate.airflow.sensors.gate import TableGateSensor
from tidegate.airflow.triggers.gate import TableGateTrigger
from tidegate.config.loader import load_pipeline, load_platform
from tidegate.control.running import stop
from tidegate.lake.catalog import open_catalog
from tidegate.lake.gate import Gate

CANARY = "canary-91b0"
TABLE = "public.orders"


@pytest.fixture
def files(
    pipeline_file: PipelineFile, platform_file: Path, monkeypatch: pytest.MonkeyPatch
) -> dict[str, str]:
    monkeypatch.setenv("TIDEGATE_TEST_PASSWORD", CANARY)
    return {"pipeline_file": str(pipeline_file("shop")), "platform_file": str(platform_file)}


@pytest.fixture
def gate(files: dict[str, str]) -> Iterator[Gate]:
    pipeline = load_pipeline(files["pipeline_file"])
    platform = load_platform(files["platform_file"])
    catalog = open_catalog(platform, pipeline)
    yield Gate(catalog, pipeline, platform.gate)
    catalog.close()


def sensor(files: dict[str, str], wait_seconds: float = 60.0) -> TableGateSensor:
    return TableGateSensor(task_id="gate", table=TABLE, wait_seconds=wait_seconds, **files)


def deferred(files: dict[str, str], wait_seconds: float = 60.0) -> TableGateTrigger:
    """What a closed gate leaves for the triggerer, after the way through its database."""
    with pytest.raises(TaskDeferred) as caught:
        sensor(files, wait_seconds).execute({})
    path, kwargs = caught.value.trigger.serialize()
    assert path == "tidegate.airflow.triggers.gate.TableGateTrigger"
    assert CANARY not in repr(kwargs)
    return TableGateTrigger(**{**kwargs, "poll_seconds": 0.05})


async def first_event(trigger: TableGateTrigger) -> Any:
    async for event in trigger.run():
        return event.payload


def test_an_open_gate_needs_no_triggerer(files: dict[str, str], gate: Gate) -> None:
    assert sensor(files).execute({}) == TABLE


def test_other_tables_gates_do_not_matter(files: dict[str, str], gate: Gate) -> None:
    gate.hold(["public.customers"], "looking into it", "ann")
    assert sensor(files).execute({}) == TABLE


def test_a_closed_gate_defers_and_fires_when_it_opens(files: dict[str, str], gate: Gate) -> None:
    gate.begin_sweep("r1", [TABLE], "ann")

    async def scenario() -> Any:
        waiting = asyncio.create_task(first_event(deferred(files)))
        done, _ = await asyncio.wait({waiting}, timeout=0.5)
        assert not done, "fired while the sweep was under way"
        await asyncio.to_thread(gate.end_sweep, "r1", [TABLE], "published")
        return await asyncio.wait_for(waiting, 30)

    event = asyncio.run(scenario())
    assert event["open"]
    assert sensor(files).execute_complete({}, event) == TABLE


def test_a_gate_that_stays_closed_skips_with_the_reason(files: dict[str, str], gate: Gate) -> None:
    gate.hold([TABLE], "duplicate keys", "ann")
    event = asyncio.run(first_event(deferred(files, wait_seconds=0.1)))
    assert not event["open"]
    with pytest.raises(AirflowSkipException, match=r"held \(.*by ann, duplicate keys\)"):
        sensor(files, 0.1).execute_complete({}, event)


def test_a_stopped_pipeline_is_not_waited_for(files: dict[str, str], gate: Gate) -> None:
    gate.hold([TABLE], "duplicate keys", "ann")
    waiting = deferred(files)
    pipeline = load_pipeline(files["pipeline_file"])
    stop(pipeline, load_platform(files["platform_file"]), reason="moving house")
    event = asyncio.run(first_event(waiting))
    assert event["stopped"] and not event["open"]
    with pytest.raises(AirflowSkipException, match="moving house"):
        sensor(files).execute_complete({}, event)
    with pytest.raises(AirflowSkipException, match="moving house"):
        sensor(files).execute({})


DAG_FILE = """
from airflow.sdk import DAG, task, task_group
from tidegate.airflow.sensors.gate import TableGateSensor

FILES = {files!r}

with DAG("probe", schedule=None):
    @task
    def closed():
        return ["public.orders", "public.customers"]

    @task
    def apply(table):
        print("applied", table)

    @task_group
    def held(table):
        gate = TableGateSensor(
            task_id="gate", table=table, wait_seconds=3, poll_seconds=0.2,
            map_index_template="{{{{ task.table }}}}", **FILES,
        )
        gate >> apply(table)

    held.expand(table=closed())
"""


def test_each_table_waits_for_its_own_gate_only(
    airflow: Airflow, files: dict[str, str], gate: Gate
) -> None:
    gate.begin_sweep("r1", ["public.orders"], "ann")
    gate.hold(["public.customers"], "looking into it", "ann")
    (airflow.dags / "probe.py").write_text(DAG_FILE.format(files=files))
    with airflow.start("probe") as process:
        assert process.stdout is not None
        said = []
        for line in process.stdout:
            said.append(line)
            if "public.orders: sweeping" in line:
                gate.end_sweep("r1", ["public.orders"], "published")
    output = "".join(said)
    assert '"held.gate[0]": "success"' in output, output
    assert '"held.apply[0]": "success"' in output
    assert '"held.gate[1]": "skipped"' in output
    assert '"held.apply[1]": "skipped"' in output
    assert CANARY not in output + airflow.everything_stored()
