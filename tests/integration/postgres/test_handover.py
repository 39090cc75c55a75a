"""From cut to log without a gap or an overlap, while the application writes (DESIGN §7.2)."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable
from typing import Any

import psycopg
import pytest

from tests.support.pace import PACE
from tests.support.postgres import SourceDatabase
from tidegate.config.pipeline import PipelineConfig
from tidegate.config.platform import PlatformConfig
from tidegate.connectors.cut import Cut
from tidegate.connectors.postgres.connector import PostgresConnector
from tidegate.envelope.position import Position
from tidegate.jobs.capture import run_capture
from tidegate.jobs.deploy import deploy
from tidegate.lake.catalog import open_catalog
from tidegate.lake.change_log import ChangeLog
from tidegate.names import TableId

pytestmark = pytest.mark.postgres

ITEMS = TableId("public", "items")
Rows = dict[int, int]


@pytest.fixture
def pipeline(any_source_db: SourceDatabase, platform: PlatformConfig) -> PipelineConfig:
    any_source_db.sql(
        "CREATE TABLE items (id int PRIMARY KEY, n int)",
        "INSERT INTO items SELECT g, 0 FROM generate_series(1, 200) g",
    )
    made = any_source_db.pipeline("public.items")
    deploy(made, platform)
    return made


def write(db: SourceDatabase, stop: threading.Event, seed: int) -> None:
    """Transactions of a few statements, some of them rolled back."""
    chance = random.Random(seed)
    with db.connect() as connection:
        while not stop.wait(PACE):
            connection.execute("BEGIN")
            try:
                for _ in range(chance.randint(1, 4)):
                    key = chance.randint(1, 300)
                    connection.execute(
                        chance.choice(
                            (
                                f"UPDATE items SET n = n + 1 WHERE id = {key}",
                                f"DELETE FROM items WHERE id = {key}",
                                f"INSERT INTO items VALUES ({key}, 0) ON CONFLICT DO NOTHING",
                            )
                        )
                    )
                connection.execute(chance.choice(("COMMIT", "COMMIT", "ROLLBACK")))
            except psycopg.errors.DeadlockDetected:
                connection.execute("ROLLBACK")


def at_cut(db: SourceDatabase, cut: Cut) -> Rows:
    with db.connect() as reader, reader.transaction():
        reader.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        reader.execute(f"SET TRANSACTION SNAPSHOT '{cut.snapshot_name}'")
        return dict(reader.execute("SELECT id, n FROM items").fetchall())


def replay(
    rows: Rows,
    log: list[dict[str, Any]],
    after: Position,
    held: Callable[[int], bool] = lambda _: False,
) -> Rows:
    """The log after ``after``, but for transactions that are ``held``, strictly: an insert must be
    new, an update must find its row."""
    rows = dict(rows)
    for change in sorted(log, key=lambda row: row["position"]):
        if change["position"] <= after.place or held(change["tx_id"]):
            continue
        key = int(change["key"][0])
        if change["op"] == "c":
            assert key not in rows, "a change was in the cut and after it"
        else:
            assert key in rows, "a change was neither in the cut nor after it"
            del rows[key]
        if change["op"] != "d":
            rows[int(change["after"][0])] = int(change["after"][1])
    return rows


def test_cut_plus_log_is_the_table_while_writers_go_on(
    any_source_db: SourceDatabase, pipeline: PipelineConfig, platform: PlatformConfig
) -> None:
    db, stop = any_source_db, threading.Event()
    writers = [threading.Thread(target=write, args=(db, stop, seed)) for seed in range(3)]
    source = PostgresConnector(pipeline, platform)
    log = ChangeLog(open_catalog(platform, pipeline), pipeline)
    start = log.head().captured_through
    cuts: list[tuple[Position, Rows]] = []
    for writer in writers:
        writer.start()
    try:
        for _ in range(5):
            with source.cut((ITEMS,), head=start) as cut:
                cuts.append((cut.position, at_cut(db, cut)))
            run_capture(pipeline, platform)
    finally:
        stop.set()
        for writer in writers:
            writer.join()
    run_capture(pipeline, platform)
    now: Rows = dict(db.rows("SELECT id, n FROM items"))
    changes = log.table().scan().to_arrow().to_pylist()
    assert changes
    for position, rows in cuts:
        assert replay(rows, changes, position) == now


def test_a_transaction_open_across_the_cut_is_whole_on_one_side(
    any_source_db: SourceDatabase, pipeline: PipelineConfig, platform: PlatformConfig
) -> None:
    db = any_source_db
    source = PostgresConnector(pipeline, platform)
    log = ChangeLog(open_catalog(platform, pipeline), pipeline)
    start = log.head().captured_through
    seen: list[tuple[Position, Rows]] = []

    def sweep() -> None:
        with source.cut((ITEMS,), head=start) as cut:
            seen.append((cut.position, at_cut(db, cut)))

    with db.connect() as writer:
        writer.execute("BEGIN")
        writer.execute("UPDATE items SET n = 7 WHERE id = 1")
        sweeping = threading.Thread(target=sweep)
        sweeping.start()
        _until_a_cut_waits(db)
        writer.execute("UPDATE items SET n = 7 WHERE id = 2")
        writer.execute("COMMIT")
        sweeping.join()
    run_capture(pipeline, platform)
    ((position, rows),) = seen
    assert rows[1] == rows[2]
    changes = log.table().scan().to_arrow().to_pylist()
    assert replay(rows, changes, position) == dict(db.rows("SELECT id, n FROM items"))


def _until_a_cut_waits(db: SourceDatabase) -> None:
    query = "SELECT count(*) FROM pg_replication_slots WHERE temporary AND database = "
    while not db.value(f"{query}'{db.name}'"):
        threading.Event().wait(0.02)
