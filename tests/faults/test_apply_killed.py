"""An apply that is killed at every durable step; the next one goes on, nothing lost or doubled."""

from __future__ import annotations

from typing import Any

import pytest

from tests.faults.scenario import Scenario
from tidegate.lake import positions

DOOR = "apply_changes.py"


@pytest.mark.parametrize(
    "point",
    ["apply.after_lease", "apply.before_commit:2", "apply.after_commit", "apply.after_publish:3"],
)
def test_killed_and_run_again_the_lake_is_the_source(point: str, scenario: Scenario) -> None:
    scenario.stir()
    scenario.capture()
    before = {name: readers_see(scenario, name) for name in scenario.tables}
    killed = scenario.kill(DOOR, point)
    for name, gate in scenario.gate.states(scenario.tables).items():
        assert gate.lease is not None, f"{name}: the dead still hold their tables"
    if not point.startswith("apply.after_publish"):  # rows and position come together or not at all
        assert {name: readers_see(scenario, name) for name in scenario.tables} == before
    scenario.prove()
    killed.leaves_nothing()


def readers_see(scenario: Scenario, name: str) -> tuple[Any, ...]:
    table = scenario.table(name)
    return table.current_snapshot(), positions.applied(table), table.scan().count()
