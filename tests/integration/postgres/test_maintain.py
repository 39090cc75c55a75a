"""Maintenance and rollback of a real pipeline: rows and positions are what they were."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from tests.support.stack import Stack
from tidegate import faults
from tidegate.errors import ConfigError, DataError
from tidegate.jobs.apply import run_apply
from tidegate.jobs.capture import run_capture
from tidegate.jobs.maintain import MaintainResult, run_maintain
from tidegate.jobs.rollback import run_rollback
from tidegate.lake import positions, upkeep
from tidegate.lake.audit_trail import AuditTrail
from tidegate.lake.catalog import open_catalog
from tidegate.lake.change_log import ChangeLog
from tidegate.lake.gate import GateState
from tidegate.spark import upkeep as spark_upkeep
from tidegate.spark.publish import spark_name

pytestmark = [pytest.mark.spark, pytest.mark.postgres]

TABLE = "public.items"
EAGER = {
    "compaction_interval_seconds": 0,
    "compaction_file_threshold": 3,
    "delete_file_threshold": 1,
    "expire_snapshots_interval_seconds": 0,
    "expire_snapshots_older_than_seconds": 0,
    "retain_last": 1,
    "manifest_threshold": 2,
}
LAZY: dict[str, Any] = {}


@pytest.fixture
def items(source_db: Any, stack: Callable[..., Stack]) -> Callable[..., Stack]:
    """A table that was swept and then changed by a few applies."""

    def make(maintenance: dict[str, Any], applies: int = 2, **lake: Any) -> Stack:
        source_db.sql(
            "CREATE TABLE items (id int PRIMARY KEY, v text)",
            "INSERT INTO items SELECT g, 'v' || g FROM generate_series(1, 300) g",
        )
        made = stack(TABLE, lake={"maintenance": maintenance, **lake})
        made.swept()
        for number in range(applies):
            change(made, number)
        return made

    return make


def change(made: Stack, number: int) -> None:
    made.db.sql(
        f"UPDATE items SET v = 'round {number}' WHERE id % 50 = {number}",
        f"DELETE FROM items WHERE id = {number + 100}",
        f"INSERT INTO items VALUES ({1000 + number}, 'new')",
    )
    apply(made)


def apply(made: Stack) -> None:
    run_capture(made.pipeline, made.platform)
    result = run_apply(made.spark, made.pipeline, made.platform, run=f"apply{time.monotonic_ns()}")
    assert [table.error for table in result.tables] == [None]


def maintain(made: Stack, **options: Any) -> MaintainResult:
    result = run_maintain(made.spark, made.pipeline, made.platform, **options)
    assert [table.error for table in result.tables] == [None]
    return result


def source_rows(made: Stack) -> list[tuple[Any, ...]]:
    return sorted(map(tuple, made.db.rows("SELECT id, v FROM items")), key=repr)


@pytest.mark.parametrize("format_version", [2, 3])
def test_positions_and_rows_survive_everything(
    items: Callable[..., Stack], format_version: int
) -> None:
    made = items(EAGER, format_version=format_version)
    before = positions.applied(made.table(TABLE))
    captured = ChangeLog(made.catalog, made.pipeline).head().captured_through
    result = maintain(made, force=True)
    (table,) = result.tables
    assert table.status == "maintained"
    assert table.done == upkeep.STEPS
    assert table.work.compacted.rewritten_files > 1
    assert table.work.files_expired > 0
    after = made.table(TABLE)
    assert positions.applied(after) == before
    assert ChangeLog(made.catalog, made.pipeline).head().captured_through == captured
    assert len(after.metadata.snapshots) == 1
    assert upkeep.count_files(after).delete_files == 0
    assert made.lake(TABLE, "id", "v") == source_rows(made)
    change(made, 5)
    assert made.lake(TABLE, "id", "v") == source_rows(made)


def test_a_compaction_of_many_commits_does_not_trip_over_itself(
    items: Callable[..., Stack], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Groups of files are rewritten side by side and committed one by one: each commit makes the
    others try again, and they must not give up."""
    monkeypatch.setattr(spark_upkeep, "MIN_FILE_BYTES", 1)
    eager = EAGER | {"compaction_max_rows_per_batch": 10}
    made = items(eager, applies=1, partition_by=["bucket(24, id)"])
    made.db.sql("UPDATE items SET v = v || '!'")
    apply(made)
    (table,) = maintain(made, force=True, tables=[TABLE]).tables
    assert table.work.compacted.rewritten_files >= 24
    assert made.lake(TABLE, "id", "v") == source_rows(made)


def test_neither_does_the_change_logs_nor_over_a_capture(stack: Callable[..., Stack]) -> None:
    names = [f"t{number}" for number in range(12)]  # of several buckets
    made = stack(*(f"public.{name}" for name in names), deployed=False)
    for name in names:
        made.db.sql(f"CREATE TABLE {name} (id int PRIMARY KEY)")
    made.deploy()
    for row in range(4):
        made.db.sql(*(f"INSERT INTO {name} VALUES ({row})" for name in names))
        run_capture(made.pipeline, made.platform)
    log = ChangeLog(open_catalog(made.platform, made.pipeline), made.pipeline)
    through = log.head().captured_through
    done = spark_upkeep.compact(made.spark, log.identifier, rows_per_batch=1000)
    assert done.rewritten_files > 2 * done.added_files > 4
    assert log.head().captured_through == through
    assert len(log.table().scan().to_arrow()) == 4 * len(names)


def test_only_what_is_due_is_done_and_the_reasons_are_said(items: Callable[..., Stack]) -> None:
    made = items(LAZY, applies=1)
    head = made.table(TABLE).current_snapshot()
    (table,) = maintain(made).tables
    assert table.status == "nothing due"
    assert "due from 10" in table.reasons[upkeep.COMPACT]
    assert made.table(TABLE).current_snapshot() == head
    (planned,) = maintain(made, force=True, dry_run=True).tables
    assert (planned.status, planned.done) == ("planned", upkeep.STEPS)
    assert made.table(TABLE).current_snapshot() == head


@pytest.mark.faults
@pytest.mark.parametrize("point", ["maintain.after_compact", "maintain.after_stamp"])
def test_killed_between_steps_nothing_is_lost(
    items: Callable[..., Stack],
    fault: Callable[[str], None],
    monkeypatch: pytest.MonkeyPatch,
    point: str,
) -> None:
    made = items(EAGER)
    before = positions.applied(made.table(TABLE))
    fault(point)
    with pytest.raises(faults.Fault):
        maintain(made)
    monkeypatch.delenv("TIDEGATE_FAULT")
    assert positions.applied(made.table(TABLE)) == before
    maintain(made, force=True)
    assert positions.applied(made.table(TABLE)) == before
    assert made.lake(TABLE, "id", "v") == source_rows(made)


def test_a_table_being_swept_is_left_alone(
    items: Callable[..., Stack], fault: Callable[[str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    made = items(EAGER, applies=0)
    fault("sweep.after_chunk")
    with pytest.raises(faults.Fault):
        made.sweep(run="died")
    monkeypatch.delenv("TIDEGATE_FAULT")
    (table,) = maintain(made, force=True).tables
    assert table.status == "skipped"
    assert "sweeping" in (table.reason or "")
    assert made.swept().resumed


def test_old_orphans_go_and_young_files_stay(items: Callable[..., Stack]) -> None:
    made = items(EAGER, applies=0)
    data = Path(urlsplit(made.table(TABLE).location()).path) / "data"
    old, young = data / "old.parquet", data / "young.parquet"
    for path in (old, young):
        path.write_bytes(b"left behind")
    week = time.time() - 7 * 86400
    os.utime(old, (week, week))
    (table,) = maintain(made, force=True).tables
    assert table.work.orphans_removed == 1
    assert not old.exists()
    assert young.exists()


def test_rollback_takes_the_position_back_and_the_next_apply_replays(
    items: Callable[..., Stack],
) -> None:
    made = items(LAZY, applies=0)
    first = made.table(TABLE).current_snapshot()
    assert first is not None
    stood = positions.applied(made.table(TABLE))
    change(made, 1)
    change(made, 2)
    plan = run_rollback(
        made.spark, made.pipeline, made.platform, TABLE, first.snapshot_id, dry_run=True
    )
    assert plan.status == "planned"
    result = run_rollback(made.spark, made.pipeline, made.platform, TABLE, first.snapshot_id)
    assert (result.status, result.to_position) == ("rolled back", stood)
    assert positions.applied(made.table(TABLE)) == stood
    assert len(made.lake(TABLE, "id")) == 300
    apply(made)
    assert made.lake(TABLE, "id", "v") == source_rows(made)
    maintain(made, dry_run=True, force=True)
    maintain(made, force=True)
    newest = AuditTrail(open_catalog(made.platform, made.pipeline), made.pipeline).entries(limit=2)
    assert [(e.action, e.outcome) for e in newest] == [("maintain", "done"), ("rollback", "done")]


def test_rollback_to_a_step_of_a_sweep_is_refused_unless_forced(
    items: Callable[..., Stack],
) -> None:
    made = items(LAZY, applies=0)
    chunk = next(i for i in positions.history(made.table(TABLE)) if i.step == "chunk")
    arguments = (made.spark, made.pipeline, made.platform, TABLE, chunk.snapshot_id)
    with pytest.raises(DataError, match="stands at no position"):
        run_rollback(*arguments)
    with pytest.raises(ConfigError, match="does not exist"):
        run_rollback(*arguments[:-1], 42)
    assert run_rollback(*arguments, force=True).held
    assert made.state(TABLE).state is GateState.HELD
    made.swept()
    assert made.state(TABLE).state is GateState.OPEN
    assert made.lake(TABLE, "id", "v") == source_rows(made)


def test_rows_another_program_deleted_are_no_rollback_target(items: Callable[..., Stack]) -> None:
    made = items(LAZY, applies=0)
    made.spark.sql(f"DELETE FROM {spark_name(made.pipeline.targets[0])} WHERE id = 1")
    foreign = made.table(TABLE).current_snapshot()
    assert foreign is not None
    change(made, 1)
    with pytest.raises(DataError, match="another program wrote it"):
        run_rollback(made.spark, made.pipeline, made.platform, TABLE, foreign.snapshot_id)
