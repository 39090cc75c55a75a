"""A capture that is killed at every durable step; what follows holds every event exactly once."""

from __future__ import annotations

import pytest

from tests.faults import comparison
from tests.faults.scenario import Scenario
from tidegate.envelope.position import parse_lsn
from tidegate.lake.change_log import ChangeLog

POINTS = (
    "capture.after_schema",
    "capture.after_files",
    "capture.after_look",
    "capture.after_commit",
    "capture.after_confirm",
)


def confirmed(scenario: Scenario) -> int:
    return parse_lsn(
        scenario.db.value(
            "SELECT confirmed_flush_lsn::text FROM pg_replication_slots"
            f" WHERE slot_name = '{scenario.pipeline.slot_name}'"
        )
    )


def test_killed_at_every_step_and_run_again_the_lake_is_the_source(scenario: Scenario) -> None:
    """One scenario through all of them: capture needs no JVM, the comparison at the end does."""
    for point in POINTS:
        scenario.stir()
        scenario.kill_capture(point)
        head = ChangeLog(scenario.catalog, scenario.pipeline).head()
        assert confirmed(scenario) <= head.captured_through.lsn, point  # I2
        with scenario.writer.resting():
            scenario.capture()
            comparison.check_log(
                scenario.db, scenario.catalog, scenario.pipeline, trimmed=scenario.trimmed
            )
    scenario.prove()


@pytest.mark.parametrize("point", POINTS)
def test_killed_twice_in_a_row_at_the_same_step(point: str, scenario: Scenario) -> None:
    """The second process starts from what the first left, and dies of the same."""
    scenario.stir()
    scenario.kill_capture(point)
    scenario.stir()
    scenario.kill_capture(point)
    with scenario.writer.resting():
        scenario.capture()
        comparison.check_log(
            scenario.db, scenario.catalog, scenario.pipeline, trimmed=scenario.trimmed
        )
    scenario.proven = True  # the log is all that was touched
