"""What the source does in the middle of a sweep: long transactions, TRUNCATE, a restart."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable
from typing import Any

from tests.faults.scenario import Scenario
from tests.support.faults import until
from tidegate.errors import Decision
from tidegate.lake.gate import GateState

ACCOUNTS = "public.accounts"
Hook = Callable[[], None]


class Sweeping:
    """A sweep in a thread, so that the test can act while it runs."""

    def __init__(self, scenario: Scenario, *tables: str, at_chunk: Hook | None = None) -> None:
        self._hook = at_chunk
        self.outcome: list[Any] = []
        options = {"progress": self._progress} if at_chunk else {}

        def sweep() -> None:
            try:
                self.outcome.append(scenario.sweep(*tables, **options))
            except BaseException as error:  # noqa: BLE001 - the test looks at it
                self.outcome.append(error)

        self.thread = threading.Thread(target=sweep, name="sweep")
        self.thread.start()

    def _progress(self, stage: str, *numbers: Any, **facts: Any) -> None:
        """Chunks are done: act once, before the next ones are read."""
        if stage == f"sweep {ACCOUNTS}" and self._hook is not None:
            hook, self._hook = self._hook, None
            hook()

    def result(self, seconds: float = 240.0) -> Any:
        self.thread.join(seconds)
        assert not self.thread.is_alive(), "the sweep hangs"
        (outcome,) = self.outcome
        return outcome


def _cut_waits(scenario: Scenario) -> bool:
    """Whether a temporary slot is being made: it waits for transactions that are open."""
    return bool(
        scenario.db.value(
            "SELECT count(*) FROM pg_replication_slots WHERE temporary AND active_pid IS NOT NULL"
            f" AND database = '{scenario.db.name}'"
        )
    )


def test_transactions_open_across_the_cut_are_in_the_lake_once(scenario: Scenario) -> None:
    """One is open before the cut is asked for, another begins while it waits and outlasts it."""
    scenario.proven = False
    with scenario.db.connect() as first, scenario.db.connect() as second:
        first.execute("BEGIN")
        first.execute("INSERT INTO accounts VALUES (-1, 'before the cut', 1, NULL, now(), '{}')")
        first.execute("UPDATE accounts SET balance = 0 WHERE id BETWEEN 4000 AND 4100")
        sweeping = Sweeping(scenario, ACCOUNTS, "public.journal")
        try:
            until(lambda: _cut_waits(scenario), "the cut waits for the open transaction")
            second.execute("BEGIN")
            second.execute(
                "INSERT INTO accounts VALUES (-2, 'during', 2, repeat('n', 9000), now(), '{}')"
            )
            second.execute("INSERT INTO journal VALUES (-2, 'during the cut', true)")
            first.execute("UPDATE accounts SET name = 'after all' WHERE id = -1")
            first.execute("COMMIT")
            second.execute("DELETE FROM journal WHERE id = 5")
        finally:
            first.execute("COMMIT")
            second.execute("COMMIT")
            result = sweeping.result()
    assert {table.status for table in result.tables} == {"swept"}
    scenario.prove()


def test_a_truncate_that_waits_for_the_sweep_does_not_stop_it(scenario: Scenario) -> None:
    """TRUNCATE queues behind the sweep's lock; the sweep's next reads queue behind TRUNCATE.

    Neither may wait for the other for ever: the application's own queries wait behind both (I11).
    """
    scenario.proven = False
    done = threading.Event()

    def truncate() -> None:
        with scenario.db.connect() as connection:
            connection.execute("TRUNCATE accounts")
        done.set()

    truncating = threading.Thread(target=truncate)

    def at_chunk() -> None:
        truncating.start()
        until(lambda: _waits(scenario, "TRUNCATE accounts"), "TRUNCATE waits")

    usual = scenario.platform
    hurried = usual.sweep.model_copy(update={"lock_timeout_seconds": 3.0})
    scenario.platform = usual.model_copy(update={"sweep": hurried})
    sweeping = Sweeping(scenario, ACCOUNTS, at_chunk=at_chunk)
    try:
        (outcome,) = sweeping.result(60.0).tables
    finally:
        scenario.platform = usual
        _end(scenario, "TRUNCATE accounts", unless=done)
        truncating.join()
        sweeping.thread.join()
    assert done.is_set(), "TRUNCATE had to be ended"
    if outcome.error is not None:
        assert outcome.error.decision is Decision.RETRY, outcome.error
        assert scenario.state(ACCOUNTS).state is GateState.SWEEPING
        scenario.swept(ACCOUNTS)
    scenario.prove()


def _waits(scenario: Scenario, query: str) -> bool:
    return bool(
        scenario.db.value(
            "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
            f" AND query = '{query}' AND datname = '{scenario.db.name}'"
        )
    )


def _end(scenario: Scenario, query: str, *, unless: threading.Event) -> None:
    if not unless.wait(10.0):
        scenario.db.sql(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            f" WHERE query = '{query}' AND datname = '{scenario.db.name}'"
        )


def test_the_server_restarts_in_mid_sweep(scenario: Scenario) -> None:
    scenario.proven = False
    sweeping = Sweeping(
        scenario, ACCOUNTS, at_chunk=lambda: scenario.db.server.restart(signal.SIGQUIT)
    )
    (outcome,) = sweeping.result().tables
    assert outcome.error is not None and outcome.error.decision is Decision.RETRY, outcome.error
    assert scenario.state(ACCOUNTS).state is GateState.SWEEPING
    assert scenario.swept(ACCOUNTS).resumed
    scenario.prove()
