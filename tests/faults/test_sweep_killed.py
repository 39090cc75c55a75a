"""A sweep that is killed at every durable step: resumed or abandoned, readers never see half."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator

import pytest

from tests.faults.scenario import Scenario
from tests.support.faults import until
from tidegate.config.platform import RetryConfig
from tidegate.jobs.abandon import abandon_sweep
from tidegate.jobs.capture import run_capture
from tidegate.lake.gate import GateState
from tidegate.names import sweep_branch

DOOR = "sweep_tables.py"
ACCOUNTS, LINES, FLAGS = "public.accounts", "public.lines", "public.flags"
PRICES, JOURNAL = "public.prices", "public.journal"


@pytest.fixture
def resumable(scenario: Scenario) -> Iterator[Scenario]:
    """No row moves between chunks with values that the log does not repeat. (Where one does, the
    sweep starts over: tests/integration/postgres/test_sweep_resume.py.)"""
    scenario.writer.big_rows_stay = True
    yield scenario
    scenario.writer.big_rows_stay = False


def sweep_again(scenario: Scenario, *tables: str) -> dict[str, str]:
    """The call after a kill; how each table ended."""
    result = scenario.sweep(*tables, run=scenario.name("sweep"))
    assert not result.failed, [table.error for table in result.tables]
    return {table.table: table.status for table in result.tables}


@pytest.mark.parametrize(
    ("point", "tables"),
    [
        ("sweep.after_gate", (LINES, PRICES)),
        ("sweep.after_cut", (FLAGS, JOURNAL)),
        ("sweep.after_branch", (FLAGS,)),
        ("sweep.after_branch", (PRICES,)),
        ("sweep.after_audit", (ACCOUNTS,)),
        ("sweep.after_audit", (JOURNAL,)),
    ],
)
def test_killed_before_it_is_published_the_next_call_sweeps(
    point: str, tables: tuple[str, ...], scenario: Scenario
) -> None:
    before = {name: scenario.table(name).current_snapshot() for name in tables}
    killed = scenario.kill(DOOR, point, "--tables", *tables)
    for name in tables:
        assert scenario.state(name).state is GateState.SWEEPING
        assert scenario.table(name).current_snapshot() == before[name]
    assert set(sweep_again(scenario, *tables).values()) == {"swept"}
    scenario.prove()
    killed.leaves_nothing()


def test_killed_between_chunks_it_goes_on_from_the_next_one(resumable: Scenario) -> None:
    """While it is dead the table's increments wait and the others' flow."""
    scenario = resumable
    scenario.stir()
    scenario.kill(DOOR, "sweep.after_chunk:2", "--tables", ACCOUNTS)
    run = scenario.state(ACCOUNTS).run
    scenario.stir()
    scenario.capture()
    statuses = {table.table: table.status for table in scenario.apply().tables}
    assert statuses.pop(ACCOUNTS) == "waiting"
    assert set(statuses.values()) == {"applied"}
    result = scenario.swept(ACCOUNTS)
    assert result.resumed
    assert scenario.state(ACCOUNTS).state is GateState.OPEN
    assert sweep_branch(str(run)) not in scenario.table(ACCOUNTS).metadata.refs
    scenario.prove()


def test_resumed_while_another_capture_has_the_log_it_waits_its_turn(resumable: Scenario) -> None:
    """A resumed sweep needs the log up to its cut. If it cannot get at it, nothing is given up."""
    scenario = resumable
    scenario.kill(DOOR, "sweep.after_chunk", "--tables", ACCOUNTS)
    usual = scenario.platform
    once = RetryConfig(max_attempts=1)
    slow = usual.capture.model_copy(update={"commit_seconds": 600.0, "idle_commit_seconds": 600.0})
    stop = threading.Event()
    following = threading.Thread(
        target=run_capture,
        args=(scenario.pipeline, usual.model_copy(update={"capture": slow})),
        kwargs={"until": None, "stop": stop},
    )
    following.start()
    try:
        until(lambda: slot_is_taken(scenario), "the other capture reads")
        scenario.platform = usual.model_copy(update={"retry": once})
        (outcome,) = scenario.sweep(ACCOUNTS).tables
        assert outcome.error is not None and outcome.error.code == "capture.slot_active"
        assert scenario.state(ACCOUNTS).state is GateState.SWEEPING
    finally:
        scenario.platform = usual
        stop.set()
        following.join()
    assert scenario.swept(ACCOUNTS).resumed
    scenario.prove()


def slot_is_taken(scenario: Scenario) -> bool:
    return bool(
        scenario.db.value(
            "SELECT active FROM pg_replication_slots"
            f" WHERE slot_name = '{scenario.pipeline.slot_name}'"
        )
    )


@pytest.mark.parametrize("second", ["sweep.after_chunk", "sweep.after_drain"])
def test_killed_again_when_it_was_resumed_its_chunks_are_of_three_cuts(
    second: str, resumable: Scenario
) -> None:
    scenario = resumable
    scenario.kill(DOOR, "sweep.after_chunk", "--tables", ACCOUNTS)
    scenario.stir()
    scenario.kill(DOOR, second, "--tables", ACCOUNTS)
    scenario.stir()
    assert scenario.swept(ACCOUNTS).resumed
    scenario.prove()


@pytest.mark.parametrize("tables", [(JOURNAL, PRICES), (ACCOUNTS, FLAGS)])
def test_killed_after_publication_only_the_gate_is_left(
    tables: tuple[str, str], scenario: Scenario
) -> None:
    killed = scenario.kill(DOOR, "sweep.after_publish", "--tables", *tables)
    first = next(name for name in scenario.tables if name in tables)
    snapshot = scenario.table(first).current_snapshot()
    statuses = sweep_again(scenario, *tables)
    assert statuses.pop(first) == "opened"
    assert set(statuses.values()) == {"swept"}
    assert scenario.table(first).current_snapshot() == snapshot
    scenario.prove()
    killed.leaves_nothing()


def test_killed_between_two_tables_the_first_is_done(scenario: Scenario) -> None:
    scenario.kill(DOOR, "sweep.after_open", "--tables", LINES, FLAGS)
    assert scenario.state(LINES).state is GateState.OPEN
    assert scenario.state(FLAGS).state is GateState.SWEEPING
    assert sweep_again(scenario, FLAGS) == {FLAGS: "swept"}
    scenario.prove()


@pytest.mark.parametrize("point", ["sweep.after_chunk:2", "sweep.after_audit"])
def test_killed_and_abandoned_the_log_goes_on_as_if_it_had_never_been(
    point: str, scenario: Scenario
) -> None:
    before = scenario.table(ACCOUNTS).current_snapshot()
    scenario.kill(DOOR, point, "--tables", ACCOUNTS)
    ended = abandon_sweep(
        scenario.spark,
        scenario.pipeline,
        scenario.platform,
        tables=[ACCOUNTS],
        actor="test",
        reason="its machine is gone",
    )
    assert ended == (ACCOUNTS,)
    assert scenario.table(ACCOUNTS).current_snapshot() == before
    assert list(scenario.table(ACCOUNTS).metadata.refs) == ["main"]
    scenario.prove()


@pytest.mark.parametrize("point", ["sweep.after_branch", "sweep.after_chunk:2"])
def test_a_first_sweep_is_killed(point: str, fresh: Callable[..., Scenario]) -> None:
    scenario = fresh(swept=False)
    scenario.kill(DOOR, point)
    scenario.stir()
    scenario.capture()
    statuses = {table.status for table in scenario.apply().tables}
    assert statuses == {"waiting"}  # every gate is closed, nothing to apply to
    assert set(sweep_again(scenario, *scenario.tables).values()) == {"swept"}
    scenario.prove()
