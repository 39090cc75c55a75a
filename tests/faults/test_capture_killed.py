"""A capture that is killed at every durable step; what follows holds every event exactly once."""

from __future__ import annotations

import pytest

from tests.faults import comparison
from tests.faults.scenario import Scenario
from tidegate.envelope.position import parse_lsn
from tidegate.lake.change_log import ChangeLog


def confirmed(scenario: Scenario) -> int:
    return parse_lsn(
        scenario.db.value(
            "SELECT confirmed_flush_lsn::text FROM pg_replication_slots"
            f" WHERE slot_name = '{scenario.pipeline.slot_name}'"
        )
    )


@pytest.mark.parametrize(
    "points",
    [
        ("capture.after_schema", "capture.after_files"),
        ("capture.after_commit", "capture.after_confirm"),
    ],
)
def test_killed_and_run_again_the_lake_is_the_source(
    points: tuple[str, str], scenario: Scenario
) -> None:
    """Twice at each step: the second process starts from what the first left, and dies of it."""
    for point in (points[0], *points, points[1]):
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
