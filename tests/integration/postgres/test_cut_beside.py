"""A cut beside transactions that run: what its rows lack is exactly what the log adds (§7.2)."""

from __future__ import annotations

import random
import threading
import uuid
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import psycopg
import pytest

from tests.integration.postgres.test_handover import ITEMS, Rows, at_cut, replay
from tests.support.pace import PACE
from tests.support.postgres import SourceDatabase, fresh_database
from tidegate.config.pipeline import PipelineConfig
from tidegate.config.platform import PlatformConfig
from tidegate.connectors.cut import BesideCut
from tidegate.connectors.postgres import publication
from tidegate.connectors.postgres.connector import PostgresConnector
from tidegate.envelope.position import Position
from tidegate.envelope.visible import NUMBERS, Visible
from tidegate.errors import HeldError
from tidegate.jobs.capture import run_capture
from tidegate.jobs.deploy import deploy
from tidegate.lake.catalog import open_catalog
from tidegate.lake.change_log import ChangeLog
from tidegate.lake.late_commits import unseen_from
from tidegate.names import TableId
from tidegate.testing.postgres_server import PostgresServer, running

pytestmark = pytest.mark.postgres

LATE = TableId("public", "late")
IMPATIENT = PlatformConfig.model_validate({"sweep": {"cut_timeout_seconds": 0.1}})


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresServer]:
    """With a standby that never answers: whoever asks for it waits at COMMIT. Nobody else does."""
    config = {
        "synchronous_standby_names": "nobody",
        "synchronous_commit": "local",
        "max_prepared_transactions": "10",
    }
    with running(16, config=config) as made:
        yield made


@pytest.fixture
def db(server: PostgresServer) -> Iterator[SourceDatabase]:
    yield from fresh_database(server)


@pytest.fixture
def settings(platform: PlatformConfig) -> PlatformConfig:
    return platform.model_copy(update={"sweep": IMPATIENT.sweep})


@pytest.fixture
def pipeline(db: SourceDatabase, platform: PlatformConfig) -> PipelineConfig:
    db.sql(
        "CREATE TABLE items (id int PRIMARY KEY, n int)",
        "INSERT INTO items SELECT g, 0 FROM generate_series(1, 200) g",
    )
    made = db.pipeline("public.items")
    deploy(made, platform)
    return made


def cut_now(
    db: SourceDatabase,
    pipeline: PipelineConfig,
    settings: PlatformConfig,
    *more: TableId,
) -> tuple[Position, Visible, Rows]:
    head = ChangeLog(open_catalog(settings, pipeline), pipeline).head().captured_through
    with PostgresConnector(pipeline, settings).cut_beside((ITEMS, *more), head=head) as cut:
        assert isinstance(cut, BesideCut)
        return cut.position, cut.visible, at_cut(db, cut)


def completed(
    rows: Rows, position: Position, visible: Visible, settings: PlatformConfig, of: PipelineConfig
) -> Rows:
    """``rows`` and what the log adds."""
    log = ChangeLog(open_catalog(settings, of), of).table()
    after = unseen_from(log, visible, position, str(ITEMS))
    return replay(rows, log.scan().to_arrow().to_pylist(), after, visible.holds)


def write(db: SourceDatabase, stop: threading.Event, seed: int) -> None:
    """Transactions of a few statements, with savepoints, in one step and in two, asynchronous."""
    chance = random.Random(seed)
    with db.connect() as connection:
        connection.execute(f"SET synchronous_commit = {chance.choice(('off', 'local'))}")
        while not stop.wait(PACE):
            connection.execute("BEGIN")
            try:
                for _ in range(chance.randint(1, 4)):
                    key = chance.randint(1, 300)
                    connection.execute("SAVEPOINT s")
                    connection.execute(
                        chance.choice(
                            (
                                f"UPDATE items SET n = n + 1 WHERE id = {key}",
                                f"DELETE FROM items WHERE id = {key}",
                                f"INSERT INTO items VALUES ({key}, 0) ON CONFLICT DO NOTHING",
                            )
                        )
                    )
                    if chance.random() < 0.2:
                        connection.execute("ROLLBACK TO s")
                finish(connection, chance)
            except psycopg.errors.DeadlockDetected:
                connection.execute("ROLLBACK")


def finish(connection: Any, chance: random.Random) -> None:
    if chance.random() < 0.3:
        name = uuid.uuid4().hex
        connection.execute(f"PREPARE TRANSACTION '{name}'")
        how = chance.choice(("COMMIT", "COMMIT", "ROLLBACK"))
        connection.execute(f"{how} PREPARED '{name}'")
    else:
        connection.execute(chance.choice(("COMMIT", "COMMIT", "ROLLBACK")))


def test_rows_and_log_are_the_table_while_writers_go_on(
    db: SourceDatabase, pipeline: PipelineConfig, settings: PlatformConfig
) -> None:
    stop = threading.Event()
    writers = [threading.Thread(target=write, args=(db, stop, seed)) for seed in range(3)]
    cuts = []
    with ExitStack() as stack:
        long = stack.enter_context(db.connect())
        long.execute("BEGIN")
        long.execute("INSERT INTO items VALUES (1000, 1)")
        other = stack.enter_context(db.connect())
        other.execute("BEGIN")
        other.execute("INSERT INTO items VALUES (1001, 1)")
        other.execute("PREPARE TRANSACTION 'waits'")
        for writer in writers:
            writer.start()
        try:
            for _ in range(5):
                cuts.append(cut_now(db, pipeline, settings))
                run_capture(pipeline, settings)
        finally:
            stop.set()
            for writer in writers:
                writer.join()
        long.execute("COMMIT")
        other.execute("COMMIT PREPARED 'waits'")
    run_capture(pipeline, settings)
    now: Rows = dict(db.rows("SELECT id, n FROM items"))
    assert {1000, 1001} <= now.keys()
    for position, visible, rows in cuts:
        assert visible.through > position and len(visible.running) >= 2
        assert not {1000, 1001} & rows.keys()
        assert completed(rows, position, visible, settings, pipeline) == now


def test_a_commit_that_is_in_the_log_and_not_yet_seen_is_not_lost(
    db: SourceDatabase, pipeline: PipelineConfig, settings: PlatformConfig
) -> None:
    """Its place lies before the cut's: the position alone would leave it out."""
    with db.connect() as writer:
        writer.execute("SET synchronous_commit = on")
        pid = writer.info.backend_pid

        def commit() -> None:
            writer.execute("INSERT INTO items VALUES (1000, 1)")

        committing = threading.Thread(target=commit)
        committing.start()
        try:
            waits = f"SELECT wait_event = 'SyncRep' FROM pg_stat_activity WHERE pid = {pid}"
            while not db.value(waits):
                threading.Event().wait(0.02)
            run_capture(pipeline, settings)
            captured = ChangeLog(open_catalog(settings, pipeline), pipeline).head()
            position, visible, rows = cut_now(db, pipeline, settings)
            assert 1000 not in rows and captured.captured_through <= position
        finally:
            db.sql(f"SELECT pg_cancel_backend({pid})")  # only the wait ends: it is committed
            committing.join()
    run_capture(pipeline, settings)
    now: Rows = dict(db.rows("SELECT id, n FROM items"))
    assert 1000 in now
    log = ChangeLog(open_catalog(settings, pipeline), pipeline).table()
    assert unseen_from(log, visible, position, str(ITEMS)) < position
    assert completed(rows, position, visible, settings, pipeline) == now


def test_transactions_older_than_the_publication_are_waited_for(
    db: SourceDatabase, pipeline: PipelineConfig, settings: PlatformConfig
) -> None:
    """What they wrote before their table was published is never sent."""
    db.sql("CREATE TABLE late (id int PRIMARY KEY)")
    both = db.pipeline("public.items", "public.late")
    with db.connect() as writer:
        writer.execute("BEGIN")
        writer.execute("INSERT INTO late VALUES (1)")
        deploy(both, settings)
        with pytest.raises(HeldError) as held:
            cut_now(db, both, settings, LATE)
        assert held.value.code == "sweep.cut_held_back"
        assert f"SELECT pg_terminate_backend({writer.info.backend_pid})" in str(held.value)
        writer.execute("COMMIT")
        writer.execute("BEGIN")
        writer.execute("INSERT INTO late VALUES (2)")
        cut_now(db, both, settings, LATE)
        # Somebody else takes it out and in again: since when it is published, nobody knows.
        name = both.publication_name
        db.sql(f"ALTER PUBLICATION {name} DROP TABLE ONLY late")
        db.sql(f"ALTER PUBLICATION {name} ADD TABLE ONLY late")
        with pytest.raises(HeldError):
            cut_now(db, both, settings, LATE)
        cut_now(db, both, settings)  # the other table is what it was


def test_deploy_notes_since_when_its_tables_are_published(
    db: SourceDatabase, pipeline: PipelineConfig, settings: PlatformConfig
) -> None:
    def settled() -> int | None:
        with db.connect() as connection:
            found = publication.find(connection, pipeline.publication_name)
        assert found is not None and found.owner()
        return found.settled()

    first = settled()
    assert first is not None
    assert deploy(pipeline, settings).status == "unchanged"
    assert settled() == first
    db.sql("CREATE TABLE more (id int PRIMARY KEY)")
    deploy(db.pipeline("public.items", "public.more"), settings)
    later = settled()
    assert later is not None and later > first


@pytest.mark.parametrize("xmax", [1000, 5, NUMBERS - 3])
def test_numbers_of_transactions_go_round(xmax: int) -> None:
    running = frozenset({(xmax - 4) % NUMBERS})
    visible = Visible(xmax, running, Position("e", "0"))
    for away in (-1, -3, -5, -1000, -(2**31) + 1):
        assert visible.holds((xmax + away) % NUMBERS)
    for away in (-4, 0, 1, 1000, 2**31 - 1):
        assert not visible.holds((xmax + away) % NUMBERS)
    unseen = visible.unseen_ranges()
    for away in (0, 1, 1000, 2**31 - 1):
        assert any(low <= (xmax + away) % NUMBERS < end for low, end in unseen)
    for away in (-1, -1000, 2**31):
        assert not any(low <= (xmax + away) % NUMBERS < end for low, end in unseen)


def test_a_role_without_superuser_cuts_beside_and_names_who_runs(
    db: SourceDatabase, platform: PlatformConfig, settings: PlatformConfig
) -> None:
    owner, role = f"{db.name}_owner", f"{db.name}_cdc"
    db.sql(
        f"CREATE ROLE {owner} NOLOGIN",
        f"CREATE ROLE {role} LOGIN REPLICATION PASSWORD 'least' IN ROLE {owner}",
        f"GRANT CREATE ON DATABASE {db.name} TO {role}",
        "CREATE TABLE items (id int PRIMARY KEY, n int)",
        f"ALTER TABLE items OWNER TO {owner}",
    )
    mine = db.pipeline("public.items", username=role, password="least")
    deploy(mine, platform)
    with db.connect() as writer:
        writer.execute("BEGIN")
        writer.execute("INSERT INTO items VALUES (1, 1)")
        (number,) = writer.execute("SELECT pg_current_xact_id()::text").fetchone()
        _, visible, rows = cut_now(db, mine, settings)
        assert rows == {} and not visible.holds(int(number) % NUMBERS)
        source = PostgresConnector(mine, settings)
        head = ChangeLog(open_catalog(settings, mine), mine).head().captured_through
        with pytest.raises(HeldError) as held, source.cut((ITEMS,), head=head):
            pass
        assert f"pid {writer.info.backend_pid} " in held.value.message
