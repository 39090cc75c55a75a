"""Maintenance and rollback that are killed: no row, no position and no needed change is lost."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from tests.faults.scenario import Scenario
from tidegate.config.platform import RetentionConfig
from tidegate.jobs.maintain import run_maintain
from tidegate.jobs.rollback import run_rollback
from tidegate.lake import positions
from tidegate.lake.change_log import ChangeLog

DOOR = "maintain_tables.py"
ACCOUNTS = "public.accounts"


@pytest.mark.parametrize(
    "point",
    [
        "maintain.after_compact",
        "maintain.after_stamp:2",
        "maintain.after_expire:3",
        "maintain.after_retention",
        "maintain.after_log_compact",
    ],
)
def test_killed_and_run_again_the_lake_is_the_source(point: str, scenario: Scenario) -> None:
    _expire_at_once(scenario)
    for _ in range(2):  # something to compact and to expire
        scenario.stir()
        scenario.capture()
        scenario.apply()
    before = {name: positions.applied(scenario.table(name)) for name in scenario.tables}
    killed = scenario.kill(DOOR, point, "--force")
    for name in scenario.tables:
        assert positions.applied(scenario.table(name)) == before[name]  # I1
    result = run_maintain(scenario.spark, scenario.pipeline, scenario.platform, force=True)
    assert {table.status for table in result.tables} == {"maintained"}
    scenario.prove()
    killed.leaves_nothing()


def _expire_at_once(scenario: Scenario) -> None:
    """Whatever may go, goes; from here on the log is checked from its oldest event."""
    scenario.trimmed = True
    lake = scenario.pipeline.lake
    eager = lake.maintenance.model_copy(
        update={"expire_snapshots_older_than_seconds": 0.0, "retain_last": 1}
    )
    sink = scenario.pipeline.sinks[0]
    sink = sink.model_copy(update={"iceberg": lake.model_copy(update={"maintenance": eager})})
    scenario.pipeline = scenario.pipeline.model_copy(update={"sinks": (sink,)})
    scenario.platform = scenario.platform.model_copy(
        update={"retention": RetentionConfig(change_log_seconds=0.0)}
    )


def test_a_killed_rollback_is_done_and_the_log_is_replayed(scenario: Scenario) -> None:
    scenario.stir()
    scenario.capture()
    scenario.apply()
    back_to = scenario.table(ACCOUNTS).current_snapshot()
    assert back_to is not None
    stands_at = positions.applied(scenario.table(ACCOUNTS))
    for _ in range(2):
        scenario.stir()
        scenario.capture()
        scenario.apply()
    arguments = ("--tables", ACCOUNTS, "--snapshot-id", str(back_to.snapshot_id))
    killed = scenario.kill("rollback_table.py", "rollback.after_commit", *arguments)
    table = scenario.table(ACCOUNTS)
    assert table.current_snapshot() == back_to
    assert positions.applied(table) == stands_at
    again = run_rollback(
        scenario.spark, scenario.pipeline, scenario.platform, ACCOUNTS, back_to.snapshot_id
    )
    assert again.status == "unchanged"
    scenario.prove()
    killed.leaves_nothing()


def test_files_of_killed_captures_are_removed_once_they_are_old(scenario: Scenario) -> None:
    """Live files of the same age stay."""
    scenario.stir()
    scenario.kill_capture("capture.after_files")
    log = ChangeLog(scenario.catalog, scenario.pipeline).table()
    folder = Path(log.location().removeprefix("file://"))
    live = {
        Path(entry.data_file.file_path.removeprefix("file://"))
        for snapshot in log.metadata.snapshots  # older ones hold what was trimmed since
        for manifest in snapshot.manifests(log.io)
        for entry in manifest.fetch_manifest_entry(log.io)
    }
    strays = set(folder.rglob("*.parquet")) - live
    assert strays
    long_ago = time.time() - 30 * 86_400
    for file in folder.rglob("*"):
        os.utime(file, (long_ago, long_ago))
    result = run_maintain(scenario.spark, scenario.pipeline, scenario.platform, force=True)
    assert result.change_log.orphans_removed >= len(strays)
    assert not [file for file in strays if file.exists()]
    scenario.prove()
