"""Maintenance and rollback that are killed: no row, no position and no needed change is lost."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import pytest

from tests.faults.scenario import Scenario
from tidegate.config.platform import RetentionConfig
from tidegate.jobs.maintain import run_maintain
from tidegate.jobs.rollback import run_rollback
from tidegate.lake import positions
from tidegate.lake.change_log import ChangeLog

DOOR = "maintain_tables.py"
ACCOUNTS = "public.accounts"
LONG_AGO = 30 * 86_400.0


@pytest.fixture
def old(scenario: Scenario) -> Scenario:
    """A scenario with something to compact, and in which whatever may go, goes at once."""
    scenario.trimmed = True  # from here on the log is checked from its oldest event
    scenario.pipeline = _eager(scenario)
    scenario.platform = scenario.platform.model_copy(
        update={"retention": RetentionConfig(change_log_seconds=0.0)}
    )
    for _ in range(2):
        scenario.stir()
        scenario.capture()
        scenario.apply()
    return scenario


def _eager(scenario: Scenario) -> Any:
    lake = scenario.pipeline.lake
    eager = lake.maintenance.model_copy(
        update={"expire_snapshots_older_than_seconds": 0.0, "retain_last": 1}
    )
    sink = scenario.pipeline.sinks[0]
    sink = sink.model_copy(update={"iceberg": lake.model_copy(update={"maintenance": eager})})
    return scenario.pipeline.model_copy(update={"sinks": (sink,)})


def stands(scenario: Scenario) -> dict[str, Any]:
    return {name: positions.applied(scenario.table(name)) for name in scenario.tables}


def test_upkeep_of_tables_is_killed_at_every_step(old: Scenario) -> None:
    before = stands(old)
    for point in ("maintain.after_compact", "maintain.after_stamp:2", "maintain.after_expire:3"):
        old.kill(DOOR, point, "--force", "--tables", *old.tables)
        assert stands(old) == before  # I1
    result = run_maintain(
        old.spark, old.pipeline, old.platform, tables=list(old.tables), force=True
    )
    assert {table.status for table in result.tables} == {"maintained"}
    old.prove()


def test_upkeep_of_the_log_is_killed_at_every_step(old: Scenario) -> None:
    """What killed captures left goes when it is old; live files of the same age stay."""
    old.stir()
    old.kill_capture("capture.after_files")
    log = ChangeLog(old.catalog, old.pipeline).table()
    folder = Path(log.location().removeprefix("file://"))
    live = {Path(task.file.file_path.removeprefix("file://")) for task in log.scan().plan_files()}
    strays = set(folder.rglob("*.parquet")) - live
    assert strays
    then = time.time() - LONG_AGO
    for file in folder.rglob("*"):
        os.utime(file, (then, then))
    before = ChangeLog(old.catalog, old.pipeline).head().captured_through
    for point in ("maintain.after_retention", "maintain.after_log_compact"):
        old.kill(DOOR, point, "--force")
        assert ChangeLog(old.catalog, old.pipeline).head().captured_through == before  # I1
    result = run_maintain(old.spark, old.pipeline, old.platform, force=True)
    assert result.change_log.orphans_removed >= len(strays)
    assert not [file for file in strays if file.exists()]
    old.prove()


def test_a_killed_rollback_is_done_and_the_log_is_replayed(scenario: Scenario) -> None:
    scenario.stir()
    scenario.capture()
    scenario.apply(tables=[ACCOUNTS])
    back_to = scenario.table(ACCOUNTS).current_snapshot()
    assert back_to is not None
    stood_at = positions.applied(scenario.table(ACCOUNTS))
    scenario.stir()
    scenario.capture()
    scenario.apply(tables=[ACCOUNTS])
    arguments = ("--tables", ACCOUNTS, "--snapshot-id", str(back_to.snapshot_id))
    killed = scenario.kill("rollback_table.py", "rollback.after_commit", *arguments)
    table = scenario.table(ACCOUNTS)
    assert (table.current_snapshot(), positions.applied(table)) == (back_to, stood_at)
    again = run_rollback(
        scenario.spark, scenario.pipeline, scenario.platform, ACCOUNTS, back_to.snapshot_id
    )
    assert again.status == "unchanged"
    scenario.prove()
    killed.leaves_nothing()
