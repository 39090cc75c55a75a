"""The catalog's file is locked by somebody else: for a while, and for longer than anyone waits."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING

import pytest

from tests.faults.scenario import Scenario
from tidegate import faults
from tidegate.errors import Decision, RetriableError
from tidegate.jobs.apply import run_apply
from tidegate.lake import catalog as lake_catalog
from tidegate.lake import positions
from tidegate.lake.change_log import ChangeLog

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

BUSY_SECONDS = 1.0


class Locked:
    """An exclusive lock on the catalog, as another program's long transaction holds it."""

    def __init__(self, scenario: Scenario) -> None:
        place = lake_catalog.resolve(scenario.platform, scenario.pipeline)
        self._connection = sqlite3.connect(
            str(place.uri), isolation_level=None, check_same_thread=False
        )

    def take(self) -> None:
        self._connection.execute("PRAGMA busy_timeout = 60000")
        self._connection.execute("BEGIN EXCLUSIVE")

    def give_back(self) -> None:
        if self._connection.in_transaction:
            self._connection.execute("ROLLBACK")

    def close(self) -> None:
        self.give_back()
        self._connection.close()


@contextmanager
def locked_from(point: str, lock: Locked, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The lock is taken when the job gets to ``point``."""
    reached = threading.Lock()
    taken: list[str] = []

    def take(name: str) -> None:
        with reached:
            if name == point and not taken:
                taken.append(name)
                lock.take()

    with monkeypatch.context() as patch:
        patch.setattr(faults, "point", take)
        yield
    assert taken, f"{point} was not reached"


@pytest.fixture
def short_wait(monkeypatch: pytest.MonkeyPatch, scenario: Scenario) -> SparkSession:
    """Both engines give up after a second instead of a minute."""
    monkeypatch.setattr(lake_catalog, "BUSY_SECONDS", BUSY_SECONDS)
    session = scenario.spark.newSession()
    for key, value in scenario.spark.conf.getAll.items():
        if key.startswith("spark.sql.catalog."):
            session.conf.set(key, value)
    session.conf.set("spark.sql.catalog.lake.jdbc.busy_timeout", str(int(BUSY_SECONDS * 1000)))
    return session


def test_capture_and_apply_wait_for_a_lock_that_passes(scenario: Scenario) -> None:
    scenario.stir()
    scenario.proven = False
    with closing(Locked(scenario)) as lock:
        for job in (scenario.capture, scenario.apply):
            lock.take()
            work = threading.Thread(target=job)
            work.start()
            work.join(2.0)
            assert work.is_alive()  # it waits
            lock.give_back()
            work.join(120.0)
            assert not work.is_alive()
    scenario.prove()


def test_capture_gives_up_on_a_lock_that_stays_and_the_next_one_is_right(
    scenario: Scenario, short_wait: SparkSession
) -> None:
    scenario.stir()
    scenario.proven = False
    once = scenario.platform.retry.model_copy(update={"max_attempts": 1})
    usual = scenario.platform
    before = ChangeLog(scenario.catalog, scenario.pipeline).head()
    with closing(Locked(scenario)) as lock:
        lock.take()
        scenario.platform = usual.model_copy(update={"retry": once})
        with pytest.raises(RetriableError) as caught:
            scenario.capture()
    scenario.platform = usual
    assert caught.value.code == "lake.catalog_locked"
    assert ChangeLog(scenario.catalog, scenario.pipeline).head() == before
    scenario.prove()


@pytest.mark.parametrize("point", ["apply.before_commit", "apply.after_commit"])
def test_apply_gives_up_on_a_lock_that_stays_and_the_next_one_is_right(
    point: str, scenario: Scenario, short_wait: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Locked right before the merge's commit, and right before its publication."""
    scenario.stir()
    scenario.capture()
    scenario.proven = False
    table = "public.accounts"
    before = positions.applied(scenario.table(table))
    with closing(Locked(scenario)) as lock:
        with locked_from(point, lock, monkeypatch):
            result = run_outcome(scenario, short_wait, table)
        lock.give_back()
    assert result.decision is Decision.RETRY, result
    assert positions.applied(scenario.table(table)) == before
    scenario.prove()


def run_outcome(scenario: Scenario, session: SparkSession, table: str) -> RetriableError:
    """The error a locked apply ends with: of the table, or of the whole run."""
    try:
        result = run_apply(
            session, scenario.pipeline, scenario.platform, tables=[table], run=scenario.name("a")
        )
    except RetriableError as error:
        return error
    (outcome,) = result.tables
    assert outcome.error is not None, outcome
    return outcome.error  # type: ignore[return-value]
