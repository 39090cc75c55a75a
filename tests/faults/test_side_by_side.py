"""Writers of the same tables at the same time: one after the other, and never a stale one."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.faults.scenario import Scenario
from tidegate.config.platform import GateConfig
from tidegate.errors import ExitCode
from tidegate.jobs.abandon import abandon_sweep
from tidegate.lake import positions
from tidegate.lake.gate import GateState

ACCOUNTS = "public.accounts"
SHORT = GateConfig(lease_seconds=4.0, wait_seconds=120.0)


@pytest.fixture
def impatient(scenario: Scenario) -> Iterator[Scenario]:
    """A scenario in which a writer that is silent for four seconds counts as dead."""
    usual = scenario.platform
    scenario.platform = usual.model_copy(update={"gate": SHORT})
    yield scenario
    scenario.platform = usual


def test_two_applies_started_at_once_do_not_double_anything(scenario: Scenario) -> None:
    scenario.stir()
    scenario.capture()
    scenario.proven = False
    files = scenario.files
    one = scenario.jobs.run("apply_changes.py", files, "one")
    two = scenario.jobs.run("apply_changes.py", files, "two")
    assert (one.wait(), two.wait()) == (ExitCode.OK, ExitCode.OK), one.said() + two.said()
    statuses = [
        {table["table"]: table["status"] for table in process.result().tables}
        for process in (one, two)
    ]
    for name in scenario.tables:
        # Whoever came second found the table where the first had left it.
        assert sorted(each[name] for each in statuses) in (["applied", "unchanged"],), statuses
    scenario.prove()


def test_tables_applied_side_by_side_keep_their_own_positions(scenario: Scenario) -> None:
    """Each table's newest snapshot carries the position its own rows stand at."""
    scenario.stir()
    scenario.capture()
    goals = {}
    for name in scenario.tables[:2]:  # these stop half-way; the others go on to the end
        half = scenario.apply(tables=[name])
        goals[name] = half.tables[0].to_position
    scenario.stir()
    scenario.capture()
    result = scenario.apply(tables=scenario.tables[2:])
    goals |= {table.table: table.to_position for table in result.tables}
    assert {n: positions.applied(scenario.table(n)) for n in scenario.tables} == goals
    assert len(set(goals.values())) > 1
    scenario.prove()


def test_an_apply_that_wakes_after_it_was_taken_over_publishes_nothing(
    impatient: Scenario,
) -> None:
    impatient.stir()
    impatient.capture()
    sleeper = impatient.halt("apply_changes.py", "apply.after_commit")
    impatient.stir()
    with impatient.writer.resting():
        impatient.drain()  # waits for the lease to run out, then does the same work and more
        heads = {name: impatient.table(name).current_snapshot() for name in impatient.tables}
        sleeper.wake()
        assert sleeper.wait() == ExitCode.OK, sleeper.said()
        for name in impatient.tables:
            assert impatient.table(name).current_snapshot() == heads[name], name
        assert "applied" not in {table["status"] for table in sleeper.result().tables}
    impatient.prove()


def test_a_sweep_that_wakes_after_it_was_abandoned_publishes_nothing(scenario: Scenario) -> None:
    sleeper = scenario.halt("sweep_tables.py", "sweep.after_audit", "--tables", ACCOUNTS)
    abandon_sweep(
        scenario.spark,
        scenario.pipeline,
        scenario.platform,
        tables=[ACCOUNTS],
        actor="test",
        reason="it hangs",
    )
    assert scenario.state(ACCOUNTS).state is GateState.OPEN
    scenario.stir()
    with scenario.writer.resting():
        scenario.drain()
        head = scenario.table(ACCOUNTS).current_snapshot()
        sleeper.wake()
        sleeper.wait()
        (outcome,) = sleeper.result().tables
        assert outcome["status"] in ("held", "failed"), outcome
        assert scenario.table(ACCOUNTS).current_snapshot() == head
        assert scenario.state(ACCOUNTS).state is GateState.OPEN
    scenario.prove()
