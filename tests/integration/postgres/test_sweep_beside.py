"""A sweep beside transactions that run waits for none, and nothing is lost or doubled."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable
from typing import Any

import pytest

from tests.support.pace import PACE
from tests.support.stack import SMALL_CHUNKS, Stack
from tidegate import faults
from tidegate.config.platform import SweepConfig
from tidegate.errors import HeldError
from tidegate.jobs.apply import run_apply
from tidegate.jobs.capture import run_capture
from tidegate.lake.gate import GateState

pytestmark = [pytest.mark.spark, pytest.mark.postgres]

DOCS = "public.docs"
TWINS = "public.twins"
IMPATIENT = SMALL_CHUNKS.model_copy(update={"cut_timeout_seconds": 0.2})
ROWS = 200


@pytest.fixture
def docs(source_db: Any, stack: Callable[..., Stack]) -> Callable[..., Stack]:
    """Rows whose bodies are sent only when they change."""

    def make(**lake: Any) -> Stack:
        source_db.sql(
            "CREATE TABLE docs (id int PRIMARY KEY, n int, body text)",
            "ALTER TABLE docs ALTER body SET STORAGE EXTERNAL",
            "INSERT INTO docs SELECT g, 0, repeat(md5(g::text), 100)"
            f" FROM generate_series(1, {ROWS}) g",
        )
        return impatient(stack(DOCS, lake=lake))

    return make


def impatient(made: Stack, sweep: SweepConfig = IMPATIENT) -> Stack:
    """From here on: the slot, too, is waited for as long as a cut."""
    made.platform = made.platform.model_copy(update={"sweep": sweep})
    return made


def write(made: Stack, stop: threading.Event) -> None:
    """Rows move to other keys and back, without their bodies; two swap theirs."""
    chance = random.Random(7)
    with made.db.connect() as connection:
        while not stop.wait(PACE):
            one, two = chance.sample(range(11, ROWS), 2)
            with connection.transaction():
                connection.execute(f"UPDATE docs SET id = -1 WHERE id = {one}")
                connection.execute(f"UPDATE docs SET id = {one}, n = n + 1 WHERE id = {two}")
                connection.execute(f"UPDATE docs SET id = {two} WHERE id = -1")


def test_a_sweep_beside_a_transaction_and_writers_is_exact(
    docs: Callable[..., Stack], fault: Callable[[str], None]
) -> None:
    made, stop = docs(), threading.Event()
    writer = threading.Thread(target=write, args=(made, stop))
    with made.db.connect() as long:
        long.execute("BEGIN")
        long.execute("UPDATE docs SET id = -id - 1000 WHERE id <= 3")
        long.execute("UPDATE docs SET n = 100 WHERE id = 4")
        writer.start()
        try:
            fault("sweep.after_drain")
            with pytest.raises(faults.Fault):
                made.sweep()
            assert made.state(DOCS).state is GateState.SWEEPING
            swept = made.swept()
        finally:
            stop.set()
            writer.join()
        assert swept.rows == ROWS and swept.position is not None
        assert made.state(DOCS).state is GateState.OPEN
        lake = {row[0]: row[1] for row in made.lake(DOCS, "id", "n")}
        assert {1, 2, 3} <= lake.keys() and lake[4] == 0
        applied(made)
        assert made.lake(DOCS) == source(made), "all but what is still open"
        long.execute("DELETE FROM docs WHERE id = 5")
        long.execute("COMMIT")
    applied(made)
    assert made.lake(DOCS) == source(made)


def test_where_the_rows_alone_do_not_make_the_table_the_sweep_waits(
    docs: Callable[..., Stack],
) -> None:
    made = docs(write_mode="append")
    with made.db.connect() as long:
        long.execute("BEGIN")
        long.execute("DELETE FROM docs WHERE id = 5")
        with pytest.raises(HeldError) as held:
            made.sweep()
        assert held.value.code == "sweep.cut_held_back"
        assert f"pid {long.info.backend_pid}" in held.value.message
        long.execute("ROLLBACK")
    made = impatient(made, SMALL_CHUNKS)  # a cut may take a moment
    assert made.swept().rows == ROWS


def applied(made: Stack) -> None:
    run_capture(made.pipeline, made.platform)
    (table,) = run_apply(made.spark, made.pipeline, made.platform, run="apply").tables
    assert table.error is None, table.error


def source(made: Stack) -> list[tuple[Any, ...]]:
    return sorted(made.db.rows("SELECT id, n, body FROM docs"), key=repr)


def test_of_equal_rows_none_is_lost_and_none_comes_twice(
    source_db: Any, stack: Callable[..., Stack], fault: Callable[[str], None]
) -> None:
    """Without a key a change that is applied twice is two rows."""
    source_db.sql(
        "CREATE TABLE twins (n int, v text)",
        "ALTER TABLE twins REPLICA IDENTITY FULL",
        "INSERT INTO twins SELECT g % 3, 'v' FROM generate_series(1, 300) g",
    )
    made, stop = impatient(stack(TWINS)), threading.Event()
    one = "ctid = (SELECT ctid FROM twins WHERE n < 3 LIMIT 1 FOR UPDATE SKIP LOCKED)"

    def turn() -> None:
        with made.db.connect() as connection:
            while not stop.wait(PACE):
                connection.execute(f"UPDATE twins SET n = (n + 1) % 3 WHERE {one}")
                connection.execute(f"DELETE FROM twins WHERE {one}")
                connection.execute("INSERT INTO twins VALUES (1, 'v'), (1, 'v')")

    writer = threading.Thread(target=turn)
    with made.db.connect() as long:
        long.execute("BEGIN")
        long.execute(f"UPDATE twins SET n = 7 WHERE {one}")
        long.execute(f"DELETE FROM twins WHERE {one}")
        long.execute("INSERT INTO twins VALUES (2, 'v'), (2, 'v')")
        writer.start()
        try:
            fault("sweep.after_drain")
            with pytest.raises(faults.Fault):
                made.sweep()
            made.swept()
        finally:
            stop.set()
            writer.join()
        long.execute("COMMIT")
    applied(made)
    assert made.lake(TWINS) == sorted(source_db.rows("SELECT n, v FROM twins"), key=repr)
