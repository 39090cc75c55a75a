"""An apply that is killed at every durable step; the next one goes on, nothing lost or doubled."""

from __future__ import annotations

import pytest

from tests.faults.scenario import Scenario
from tidegate.lake import positions
from tidegate.names import TableId

DOOR = "apply_changes.py"


@pytest.mark.parametrize(
    "point",
    [
        "apply.after_lease",
        "apply.before_commit:2",
        "apply.after_commit",
        "apply.after_publish",
        "apply.after_publish:4",
    ],
)
def test_killed_and_run_again_the_lake_is_the_source(point: str, scenario: Scenario) -> None:
    scenario.stir()
    scenario.capture()
    killed = scenario.kill(DOOR, point)
    leases = [gate.lease for gate in scenario.gate.states(scenario.tables).values()]
    assert all(lease is not None for lease in leases)  # the dead still hold their tables
    scenario.prove()
    killed.leaves_nothing()


def test_rows_and_position_are_published_together(scenario: Scenario) -> None:
    """Killed between the commit on the branch and its publication, readers see neither."""
    scenario.stir()
    scenario.capture()
    before = {name: _main(scenario, name) for name in scenario.tables}
    scenario.kill(DOOR, "apply.after_commit")
    for name in scenario.tables:
        table = scenario.table(name)
        assert (positions.applied(table), table.scan().count()) == before[name]
    scenario.prove()


def _main(scenario: Scenario, name: str) -> tuple[positions.Position | None, int]:
    target = scenario.pipeline.target(TableId.parse(name))
    table = scenario.catalog.load_table(target.identifier)
    return positions.applied(table), table.scan().count()
