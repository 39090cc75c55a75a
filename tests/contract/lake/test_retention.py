"""Change-log retention: floors, trimming, and what must survive both."""

from __future__ import annotations

import os
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pytest
from pyiceberg.catalog import Catalog

from tests.support.lake import log_rows
from tidegate import faults
from tidegate.config.pipeline import PipelineConfig
from tidegate.config.platform import PlatformConfig
from tidegate.config.source import SnapshotMode
from tidegate.envelope.position import Position, boundary
from tidegate.lake import commits
from tidegate.lake.change_log import ChangeLog
from tidegate.lake.gate import Gate
from tidegate.lake.retention import floors, trim
from tidegate.names import POSITION_PROPERTY, STEP_PROPERTY, TableId

ORDERS, CUSTOMERS = "public.orders", "public.customers"
OLD = datetime.now(UTC) - timedelta(days=30)
NOW = datetime.now(UTC) + timedelta(hours=1)
LAKE_SCHEMA = pa.schema([("n", pa.int64())])


def at(lsn: int, epoch: str = "e1") -> Position:
    return boundary(epoch, lsn)


@pytest.fixture
def log(catalog: Catalog, pipeline: PipelineConfig) -> ChangeLog:
    log = ChangeLog(catalog, pipeline)
    log.create(at(1))
    return log


@pytest.fixture
def gate(catalog: Catalog, pipeline: PipelineConfig, platform: PlatformConfig) -> Gate:
    return Gate(catalog, pipeline, platform.gate)


def write(log: ChangeLog, lsns: range, table: str = ORDERS, captured_at: datetime = OLD) -> None:
    writer = log.writer()
    epoch = writer.through.epoch
    writer.write(log_rows(lsns, table, epoch, captured_at))
    writer.commit(at(lsns.stop, epoch))


def lake_table(catalog: Catalog, pipeline: PipelineConfig, source: str, *applied: Position) -> None:
    identifier = pipeline.target(TableId.parse(source)).identifier
    catalog.create_namespace_if_not_exists(identifier[0])
    table = catalog.create_table(identifier, LAKE_SCHEMA)
    for position in applied:
        facts = {POSITION_PROPERTY: str(position), STEP_PROPERTY: "apply"}
        commits.append_files(table, (), facts, commits.head_id(table))


def left(log: ChangeLog) -> list[int]:
    return sorted(log.table().scan().to_arrow()["tx_id"].to_pylist())


def data_files(log: ChangeLog) -> int:
    where = Path(log.table().location().removeprefix("file://"))
    return len(list(where.rglob("*.parquet")))


def test_the_floor_is_the_lowest_rollback_target(
    catalog: Catalog, pipeline: PipelineConfig, log: ChangeLog, gate: Gate
) -> None:
    lake_table(catalog, pipeline, ORDERS, at(20), at(50))
    log.commit_idle(at(90))
    assert floors(catalog, pipeline, gate) == {CUSTOMERS: at(90), ORDERS: at(20)}


def test_a_running_sweep_keeps_what_was_captured_since_it_began(
    catalog: Catalog, pipeline: PipelineConfig, log: ChangeLog, gate: Gate
) -> None:
    log.commit_idle(at(30))
    gate.begin_sweep("r1", [CUSTOMERS], "me")
    log.commit_idle(at(90))
    assert floors(catalog, pipeline, gate)[CUSTOMERS] == at(30)
    gate.end_sweep("r1", [CUSTOMERS], "published")
    assert floors(catalog, pipeline, gate)[CUSTOMERS] == at(90)


def test_a_table_that_is_never_swept_keeps_the_whole_log(
    catalog: Catalog, pipeline: PipelineConfig, log: ChangeLog, gate: Gate
) -> None:
    source = pipeline.source.model_copy(update={"snapshot_mode": SnapshotMode.NEVER})
    never = pipeline.model_copy(update={"source": source})
    assert floors(catalog, never, gate)[ORDERS] == at(0)


def test_a_table_that_stands_in_an_old_epoch_keeps_both_epochs(
    catalog: Catalog, pipeline: PipelineConfig, log: ChangeLog, gate: Gate
) -> None:
    write(log, range(2, 5))
    lake_table(catalog, pipeline, ORDERS, at(3))
    log.begin_epoch(at(1, "e2"))
    write(log, range(2, 5))
    found = floors(catalog, pipeline, gate)
    assert found[ORDERS] == at(3)
    assert trim(log, found, NOW).files == 0
    assert trim(log, {**found, ORDERS: at(2, "e2")}, NOW).files == 1
    assert left(log) == [2, 3, 4]


def test_only_files_wholly_below_their_floor_and_old_enough_go(log: ChangeLog) -> None:
    write(log, range(10, 20))
    write(log, range(20, 30))
    write(log, range(30, 40), captured_at=datetime.now(UTC))
    kept = trim(log, {ORDERS: at(25)}, NOW - timedelta(days=2))
    assert (kept.files, kept.rows) == (1, 10)
    assert left(log) == list(range(20, 40))
    assert trim(log, {ORDERS: at(99)}, OLD - timedelta(days=1)).files == 0


def test_a_lagging_table_keeps_only_files_that_may_hold_its_rows(log: ChangeLog) -> None:
    write(log, range(10, 20), ORDERS)
    write(log, range(20, 30), CUSTOMERS)
    trim(log, {ORDERS: at(1), CUSTOMERS: at(99)}, NOW)
    assert left(log) == list(range(10, 20))


def test_rows_of_a_removed_table_go_when_they_are_old(log: ChangeLog) -> None:
    write(log, range(10, 20), "public.gone")
    assert trim(log, {ORDERS: at(1)}, NOW).rows == 10


def test_captured_through_survives_trimming_and_expiry_and_files_vanish(log: ChangeLog) -> None:
    for start in (10, 20, 30):
        write(log, range(start, start + 10))
    assert data_files(log) == 3
    result = trim(log, {ORDERS: at(30)}, NOW, expire_before=NOW)
    assert result.files == 2
    assert result.expired_snapshots == 4
    assert data_files(log) == 1
    assert len(log.table().metadata.snapshots) == 1
    assert log.head().captured_through == at(40)
    assert left(log) == list(range(30, 40))
    write(log, range(40, 50))
    assert log.head().captured_through == at(50)


def test_young_snapshots_stay_readable_for_an_apply_that_pinned_one(log: ChangeLog) -> None:
    write(log, range(10, 20))
    pinned = log.head().snapshot_id
    trim(log, {ORDERS: at(99)}, NOW)
    assert left(log) == []
    assert log.table().scan(snapshot_id=pinned).to_arrow().num_rows == 10


def test_a_rewritten_head_is_stamped_before_its_ancestors_expire(log: ChangeLog) -> None:
    write(log, range(10, 20))
    table = log.table()
    commits.append_files(table, (), {"engine-name": "spark"}, commits.head_id(table))
    trim(log, {ORDERS: at(1)}, NOW, expire_before=NOW)
    assert log.head().captured_through == at(20)
    assert left(log) == list(range(10, 20))


def test_a_capture_that_commits_meanwhile_is_not_disturbed(log: ChangeLog) -> None:
    write(log, range(10, 20))
    writer = log.writer()
    writer.write(log_rows(range(20, 30), captured_at=OLD))
    trim(log, {ORDERS: at(20)}, NOW)
    assert writer.commit(at(30)).captured_through == at(30)
    assert left(log) == list(range(20, 30))


KILLED = """
import sys
from datetime import UTC, datetime, timedelta
from tidegate.config.pipeline import PipelineConfig
from tidegate.config.platform import PlatformConfig
from tidegate.config.source import SourceConfig
from tidegate.envelope.position import boundary
from tidegate.lake.catalog import open_catalog
from tidegate.lake.change_log import ChangeLog
from tidegate.lake.retention import trim

platform = PlatformConfig.model_validate_json(sys.argv[1])
source = SourceConfig(database="shop", password="unused")
pipeline = PipelineConfig(pipeline_id="shop", source=source)
log = ChangeLog(open_catalog(platform), pipeline)
now = datetime.now(UTC) + timedelta(seconds=5)
trim(log, {"public.orders": boundary("e1", 20)}, now, expire_before=now)
"""


def test_a_trim_killed_before_its_expiry_is_finished_by_the_next(
    log: ChangeLog, platform: PlatformConfig
) -> None:
    write(log, range(10, 20))
    write(log, range(20, 30))
    killed = subprocess.run(
        [sys.executable, "-c", KILLED, platform.model_dump_json()],
        env={
            **os.environ,
            "PYTHONPATH": "include",
            "TIDEGATE_FAULT": "maintain.after_retention",
        },
        check=False,
    )
    assert killed.returncode == faults.EXIT_STATUS
    assert left(log) == list(range(20, 30))
    assert log.head().captured_through == at(30)
    assert data_files(log) == 2
    trim(log, {ORDERS: at(20)}, NOW, expire_before=NOW)
    assert data_files(log) == 1
    assert left(log) == list(range(20, 30))
