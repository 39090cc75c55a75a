"""Writers beside each other: positions stay apart, nobody publishes over another (I1, I4)."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest
from pyspark.sql import SparkSession

from tests.spark.apply.lake_lab import LakeLab, check_upsert
from tests.support.changes import money, number, schema, text
from tidegate.config.platform import PlatformConfig
from tidegate.config.sinks import TableOptions
from tidegate.errors import HeldError
from tidegate.jobs.apply import Status
from tidegate.jobs.apply_plan import Planner, Task
from tidegate.lake.dead_letters import DeadLetters
from tidegate.names import POSITION_PROPERTY
from tidegate.spark import publish
from tidegate.spark.apply import ApplyContext, apply_range
from tidegate.spark.pool import SessionPool
from tidegate.spark.survey import LogRange

pytestmark = pytest.mark.spark

COLUMNS = (number("id", key=0), text("note"), money("price"))


def lab_of(spark: SparkSession, platform: PlatformConfig, *names: str) -> LakeLab:
    lab = LakeLab(spark, platform, {name: TableOptions() for name in names})
    for name in names:
        lab.add(schema(name, *COLUMNS))
    return lab


def tasks(lab: LakeLab) -> tuple[ApplyContext, tuple[Task, ...]]:
    """What an apply would do right now, and a context whose lease is never lost."""
    planner = Planner(lab.spark, lab.catalog, lab.pipeline, lab.platform, lab.gate)
    plan = planner.plan(lab.pipeline.targets, None, gated=False, stamp=False)
    context = ApplyContext(
        catalog=lab.catalog,
        history=lab.history,
        letters=DeadLetters(lab.catalog, lab.pipeline),
        limits=lab.platform.dlq,
        pin=plan.pin,
        run="test",
        token="token",
        check=lambda: None,
    )
    return context, plan.tasks


def run_task(session: SparkSession, context: ApplyContext, task: Task) -> None:
    span = LogRange(task.standing.position, task.until)
    apply_range(
        session, context, task.standing.target, span, task.found, base=task.standing.snapshot_id
    )


def test_four_tables_side_by_side_keep_their_own_positions(
    spark: SparkSession, spark_platform: PlatformConfig
) -> None:
    lab = lab_of(spark, spark_platform, *(f"public.t{n}" for n in range(4)))
    wanted = {}
    for name, model in lab.tables.items():
        model.insert("1", name, "1.00")
        model.commit()
        wanted[name] = lab.clock.position  # each at a place of its own
    lab.capture()
    context, planned = tasks(lab)
    own = [Task(task.standing, wanted[task.standing.target.source], task.found) for task in planned]
    SessionPool(spark, 4).map(lambda session, task: run_task(session, context, task), own)
    assert {name: lab.position(model) for name, model in lab.tables.items()} == wanted
    for model in lab.tables.values():
        check_upsert(lab, model)


def test_two_applies_at_once_apply_everything_once(
    spark: SparkSession, spark_platform: PlatformConfig
) -> None:
    lab = lab_of(spark, spark_platform, "public.one")
    one = lab.tables["public.one"]
    one.insert("1", "a", "1.00")
    one.commit()
    captured = lab.capture()
    together = threading.Barrier(2)

    def apply() -> Status:
        together.wait()
        return lab.apply().tables[0].status

    with ThreadPoolExecutor(2) as threads:
        statuses = sorted(f.result() for f in [threads.submit(apply) for _ in range(2)])
    assert statuses == [Status.APPLIED, Status.UNCHANGED]
    assert lab.snapshots(one) == 2  # the first stamp, and one apply
    assert lab.position(one) == captured
    check_upsert(lab, one)


def test_stale_writer_cannot_publish(spark: SparkSession, spark_platform: PlatformConfig) -> None:
    lab = lab_of(spark, spark_platform, "public.one")
    one = lab.tables["public.one"]
    one.insert("1", "old", None)
    one.commit()
    lab.capture()
    stale, (task,) = tasks(lab)
    overtaken = False

    def someone_else_applies() -> None:
        # The stale writer passed its last check; now it sleeps while another one moves the table.
        nonlocal overtaken
        if overtaken:
            return
        overtaken = True
        one.update(one.find("1"), note="new")
        one.commit()
        lab.capture()
        assert lab.apply().tables[0].status is Status.APPLIED

    context = replace(stale, run="stale", token="stale", check=someone_else_applies)
    with SessionPool(spark, 1).session() as session, pytest.raises(HeldError) as refused:
        run_task(session, context, task)
    assert refused.value.code == "apply.main_moved"
    check_upsert(lab, one)
    assert lab.rows(one) == [("1", "new", None)]


def test_stale_append_cannot_publish_either(
    spark: SparkSession, spark_platform: PlatformConfig
) -> None:
    lab = lab_of(spark, spark_platform, "public.one")
    one = lab.tables["public.one"]
    one.insert("1", "a", None)
    one.commit()
    lab.capture()
    context, (task,) = tasks(lab)
    properties = {POSITION_PROPERTY: str(task.until)}
    publish.stamp(spark, task.standing.target, branch=None, properties=properties)
    with SessionPool(spark, 1).session() as session, pytest.raises(HeldError):
        run_task(session, context, task)
    assert lab.rows(one) == []


def test_lost_lease_stops_before_anything_is_written(
    spark: SparkSession, spark_platform: PlatformConfig
) -> None:
    lab = lab_of(spark, spark_platform, "public.one")
    one = lab.tables["public.one"]
    one.insert("1", "a", None)
    one.commit()
    lab.capture()
    with lab.gate.lease("other", ["public.one"], "apply") as lease:
        lease.release()
        result = lab.apply(lease=lease).tables[0]
    assert result.status is Status.WAITING
    assert result.error is not None and result.error.code == "gate.lease_lost"
    assert (lab.rows(one), lab.snapshots(one)) == ([], 1)
