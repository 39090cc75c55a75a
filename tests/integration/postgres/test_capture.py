"""Capture against a real server: nothing lost, nothing doubled, nothing released too early."""

from __future__ import annotations

import logging
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support.log_events import Ear
from tests.support.postgres import SourceDatabase
from tidegate.config.pipeline import PipelineConfig
from tidegate.config.platform import PlatformConfig
from tidegate.connectors.registry import open_source
from tidegate.envelope.position import boundary, parse_lsn
from tidegate.errors import FatalError, HeldError, RetriableError
from tidegate.faults import EXIT_STATUS
from tidegate.jobs.capture import run_capture
from tidegate.jobs.deploy import deploy
from tidegate.lake.catalog import open_catalog
from tidegate.lake.change_log import ChangeLog
from tidegate.lake.schema_history import SchemaHistory
from tidegate.observability import events

pytestmark = pytest.mark.postgres

TABLES = ("public.orders", "public.notes")


@pytest.fixture
def taken(any_source_db: SourceDatabase, platform: PlatformConfig) -> PipelineConfig:
    """A deployed pipeline of two small tables."""
    any_source_db.sql(
        "CREATE TABLE orders (id int PRIMARY KEY, amount numeric(10,2), big text)",
        "ALTER TABLE orders ALTER big SET STORAGE EXTERNAL",
        "CREATE TABLE notes (id int PRIMARY KEY, note text)",
    )
    pipeline = any_source_db.pipeline(*TABLES)
    deploy(pipeline, platform)
    return pipeline


def log_of(pipeline: PipelineConfig, platform: PlatformConfig) -> list[dict[str, Any]]:
    table = ChangeLog(open_catalog(platform, pipeline), pipeline).table()
    rows: list[dict[str, Any]] = table.scan().to_arrow().to_pylist()
    return sorted(rows, key=lambda row: row["position"])


def brief(rows: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
    return [(row["table"], row["op"], row["key"], row["after"]) for row in rows]


def test_changes_arrive_in_commit_order_whatever_order_they_were_written_in(
    any_source_db: SourceDatabase, taken: PipelineConfig, platform: PlatformConfig
) -> None:
    with any_source_db.connect() as first, any_source_db.connect() as second:
        first.execute("BEGIN")
        first.execute("INSERT INTO orders VALUES (1, 1.5, 'a')")
        second.execute("BEGIN")
        second.execute("INSERT INTO notes VALUES (1, 'second began later, committed first')")
        second.execute("COMMIT")
        first.execute("UPDATE orders SET amount = 2.5")
        first.execute("COMMIT")
    result = run_capture(taken, platform)
    rows = log_of(taken, platform)
    assert [(row["table"], row["op"]) for row in rows] == [
        ("public.notes", "c"),
        ("public.orders", "c"),
        ("public.orders", "u"),
    ]
    assert (result.rows, result.transactions) == (3, 2)


def test_toast_key_change_truncate_and_null_are_told_apart(
    any_source_db: SourceDatabase, taken: PipelineConfig, platform: PlatformConfig
) -> None:
    any_source_db.sql(
        "INSERT INTO orders VALUES (1, NULL, repeat('x', 9000)), (2, 0, '')",
        "UPDATE orders SET amount = 9 WHERE id = 1",
        "UPDATE orders SET id = 3 WHERE id = 1",
        "DELETE FROM orders WHERE id = 2",
        "TRUNCATE orders, notes",
        "INSERT INTO orders VALUES (4, 4, NULL)",
    )
    run_capture(taken, platform)
    rows = log_of(taken, platform)
    assert brief(rows) == [
        ("public.orders", "c", ["1"], ["1", None, "x" * 9000]),
        ("public.orders", "c", ["2"], ["2", "0.00", ""]),
        ("public.orders", "u", ["1"], ["1", "9.00", None]),
        ("public.orders", "u", ["1"], ["3", "9.00", None]),
        ("public.orders", "d", ["2"], None),
        *[(row["table"], "t", None, None) for row in rows if row["op"] == "t"],
        ("public.orders", "c", ["4"], ["4", "4.00", None]),
    ]
    assert [row["unchanged"] for row in rows[2:4]] == [[2], [2]]
    assert {row["table"] for row in rows if row["op"] == "t"} == set(TABLES)


def test_a_stream_that_was_closed_has_let_go_of_its_slot(
    any_source_db: SourceDatabase, taken: PipelineConfig, platform: PlatformConfig
) -> None:
    source = open_source(taken, platform)
    with any_source_db.connect() as sql:
        for number in range(20):
            sql.execute("INSERT INTO notes VALUES (%s, 'one more')", (number,))
            after = ChangeLog(open_catalog(platform, taken), taken).head().captured_through
            with source.changes(after, until="now") as stream:
                assert sum(batch.rows.num_rows for batch in stream) == number + 1
            active = sql.execute("SELECT active FROM pg_replication_slots").fetchall()
            assert active == [(False,)]
    source.close()


def test_a_hundred_thousand_transactions_of_one_row_arrive_each_once_in_order(
    source_db: SourceDatabase, platform: PlatformConfig
) -> None:
    count = 100_000
    source_db.sql("CREATE TABLE notes (id int PRIMARY KEY, note text)")
    pipeline = source_db.pipeline("public.notes")
    deploy(pipeline, platform)
    source_db.sql(
        "SET synchronous_commit = off",
        f"DO $$ BEGIN FOR i IN 1..{count} LOOP INSERT INTO notes VALUES (i, 'n'); COMMIT;"
        " END LOOP; END $$",
        "SET synchronous_commit = on",
        "INSERT INTO notes VALUES (0, 'the last: flushes all before it')",
    )
    result = run_capture(pipeline, platform)
    assert (result.rows, result.transactions) == (count + 1, count + 1)
    log = ChangeLog(open_catalog(platform, pipeline), pipeline).table()
    rows = log.scan(selected_fields=("position", "key", "event_id")).to_arrow()
    in_order = rows.sort_by("position")["key"].to_pylist()
    assert in_order == [*([str(i)] for i in range(1, count + 1)), ["0"]]
    assert len(set(rows["event_id"].to_pylist())) == count + 1


def test_rolled_back_work_never_arrives(
    any_source_db: SourceDatabase, taken: PipelineConfig, platform: PlatformConfig
) -> None:
    with any_source_db.connect() as connection:
        connection.execute("BEGIN")
        connection.execute("INSERT INTO notes VALUES (1, 'kept')")
        connection.execute("SAVEPOINT s")
        connection.execute("INSERT INTO notes VALUES (2, 'not kept')")
        connection.execute("ROLLBACK TO s")
        connection.execute("COMMIT")
        connection.execute("BEGIN")
        connection.execute("INSERT INTO notes VALUES (3, 'not kept either')")
        connection.execute("ROLLBACK")
    run_capture(taken, platform)
    assert [row["after"][0] for row in log_of(taken, platform)] == ["1"]


def test_a_transaction_open_across_deploy_arrives_whole(
    source_db: SourceDatabase, platform: PlatformConfig
) -> None:
    source_db.sql("CREATE TABLE orders (id int PRIMARY KEY)")
    pipeline = source_db.pipeline("public.orders")
    with source_db.connect() as connection:
        connection.execute("BEGIN")
        connection.execute("INSERT INTO orders VALUES (1)")
        waiting = threading.Thread(target=deploy, args=(pipeline, platform))
        waiting.start()
        _until_a_slot_waits(source_db)
        connection.execute("INSERT INTO orders VALUES (2)")
        connection.execute("COMMIT")
        waiting.join()
    source_db.sql("INSERT INTO orders VALUES (3)")
    run_capture(pipeline, platform)
    seen = {row["key"][0] for row in log_of(pipeline, platform)}
    # Before the slot's consistent point: all of it is the first sweep's; after it: all is logged.
    assert seen in ({"3"}, {"1", "2", "3"})


def _until_a_slot_waits(source_db: SourceDatabase) -> None:
    # Slot creation waits for the open transaction; meanwhile the slot is there and active.
    while not source_db.value(
        "SELECT count(*) FROM pg_replication_slots WHERE active_pid IS NOT NULL"
        f" AND database = '{source_db.name}'"
    ):
        threading.Event().wait(0.02)


def test_ddl_within_a_batch_gives_each_row_its_own_schema(
    any_source_db: SourceDatabase, taken: PipelineConfig, platform: PlatformConfig, said: Ear
) -> None:
    any_source_db.sql(
        "INSERT INTO notes VALUES (1, 'old')",
        "ALTER TABLE notes ADD COLUMN extra boolean",
        "INSERT INTO notes VALUES (2, 'new', true)",
    )
    run_capture(taken, platform)
    old, new = log_of(taken, platform)
    history = SchemaHistory(open_catalog(platform, taken), taken)
    assert [c.name for c in history.get(old["schema_id"]).columns] == ["id", "note"]
    assert [c.name for c in history.get(new["schema_id"]).columns] == ["id", "note", "extra"]
    assert new["after"] == ["2", "new", "t"]
    (changed,) = said.of(events.SCHEMA_VERSION_CHANGED)
    assert changed.fields["subject"] == "cdc.public.notes-value" and changed.fields["compatible"]
    assert (changed.fields["previous_version"], changed.fields["new_version"]) == (1, 2)
    any_source_db.sql(
        "ALTER TABLE notes ALTER note TYPE int USING 7", "INSERT INTO notes VALUES (3, 3, true)"
    )
    run_capture(taken, platform)
    retyped = said.of(events.SCHEMA_VERSION_CHANGED)[-1]
    assert (retyped.level, retyped.fields["compatible"]) == (logging.WARNING, False)


def test_a_quiet_run_commits_nothing_and_an_idle_interval_releases_wal(
    any_source_db: SourceDatabase, taken: PipelineConfig, platform: PlatformConfig
) -> None:
    log = ChangeLog(open_catalog(platform, taken), taken)
    run_capture(taken, platform)
    before = log.head()
    assert run_capture(taken, platform).commits == 0
    assert log.head() == before
    # Work elsewhere in the cluster moves the WAL although no captured table changes.
    any_source_db.sql("CREATE TABLE elsewhere AS SELECT generate_series(1, 20000)")
    hurried = platform.model_copy(
        update={"capture": platform.capture.model_copy(update={"idle_commit_seconds": 0.0})}
    )
    result = run_capture(taken, hurried)
    assert result.rows == 0
    assert result.commits >= 1
    assert confirmed(any_source_db) == log.head().captured_through.lsn > before.captured_through.lsn


def test_a_position_that_was_asked_for_is_noted_even_on_a_quiet_source(
    source_db: SourceDatabase, platform: PlatformConfig
) -> None:
    source_db.sql("CREATE TABLE orders (id int PRIMARY KEY)")
    pipeline = source_db.pipeline("public.orders")
    deploy(pipeline, platform)
    epoch = ChangeLog(open_catalog(platform, pipeline), pipeline).head().captured_through.epoch
    source_db.sql("CREATE TABLE elsewhere AS SELECT generate_series(1, 1000)")
    wanted = boundary(epoch, parse_lsn(source_db.value("SELECT pg_current_wal_flush_lsn()::text")))
    assert run_capture(pipeline, platform, until=wanted).through >= wanted


def confirmed(source_db: SourceDatabase) -> int:
    return parse_lsn(
        source_db.value(
            "SELECT confirmed_flush_lsn::text FROM pg_replication_slots"
            f" WHERE slot_name = 'tidegate_{source_db.name}'"
        )
    )


def test_a_transaction_larger_than_every_buffer_is_one_commit(
    source_db: SourceDatabase, platform: PlatformConfig
) -> None:
    source_db.sql("CREATE TABLE orders (id int PRIMARY KEY, note text)")
    pipeline = source_db.pipeline("public.orders")
    small = platform.model_copy(
        update={
            "capture": platform.capture.model_copy(
                update={"max_batch_bytes": 65536, "commit_bytes": 65536}
            )
        }
    )
    deploy(pipeline, small)
    source_db.sql("INSERT INTO orders SELECT i, repeat('x', 50) FROM generate_series(1, 50000) i")
    result = run_capture(pipeline, small)
    assert (result.rows, result.commits) == (50000, 1)
    rows = log_of(pipeline, small)
    assert len({row["event_id"] for row in rows}) == 50000
    assert [row["key"] for row in rows] == [[str(i)] for i in range(1, 50001)]


@pytest.mark.parametrize(
    "fault",
    [
        "capture.after_schema",
        "capture.after_files",
        "capture.after_look",
        "capture.after_commit",
        "capture.after_confirm",
    ],
)
def test_killed_anywhere_and_run_again_the_log_is_the_same(
    fault: str, source_db: SourceDatabase, platform: PlatformConfig, tmp_path: Path
) -> None:
    source_db.sql("CREATE TABLE orders (id int PRIMARY KEY)")
    pipeline = source_db.pipeline("public.orders")
    deploy(pipeline, platform)
    source_db.sql("INSERT INTO orders SELECT generate_series(1, 100)")
    killed = capture_process(pipeline, platform, tmp_path, TIDEGATE_FAULT=fault)
    assert killed.wait() == EXIT_STATUS
    log = ChangeLog(open_catalog(platform, pipeline), pipeline)
    assert confirmed(source_db) <= log.head().captured_through.lsn  # I2
    source_db.sql("INSERT INTO orders SELECT generate_series(101, 150)")
    run_capture(pipeline, platform)
    assert [row["key"] for row in log_of(pipeline, platform)] == [[str(i)] for i in range(1, 151)]


def capture_process(
    pipeline: PipelineConfig, platform: PlatformConfig, folder: Path, **environment: str
) -> subprocess.Popen[bytes]:
    """Capture as Airflow starts it: a process with files."""
    document = pipeline.model_dump(mode="json", exclude_defaults=True)
    document["source"]["password"] = pipeline.source.password.get_secret_value()
    pipeline_file, platform_file = folder / "pipeline.yaml", folder / "platform.yaml"
    pipeline_file.write_text(yaml.safe_dump(document))
    platform_file.write_text(
        yaml.safe_dump(platform.model_dump(mode="json", exclude_defaults=True))
    )
    command = [sys.executable, "-m", "tidegate.jobs.capture", "--run", "test"]
    command += ["--pipeline", str(pipeline_file), "--platform", str(platform_file)]
    return subprocess.Popen(
        [*command, "--result", str(folder / "result.json")], env={**os.environ, **environment}
    )


def test_the_server_restarts_in_mid_capture(
    source_db: SourceDatabase, platform: PlatformConfig
) -> None:
    source_db.sql("CREATE TABLE orders (id int PRIMARY KEY)")
    pipeline = source_db.pipeline("public.orders")
    eager = platform.model_copy(
        update={
            "retry": platform.retry.model_copy(
                update={"initial_wait_seconds": 0.2, "max_attempts": 50}
            ),
            "capture": platform.capture.model_copy(update={"commit_seconds": 0.1}),
        }
    )
    deploy(pipeline, eager)
    stop, results = threading.Event(), list[Any]()
    follow = threading.Thread(
        target=lambda: results.append(run_capture(pipeline, eager, until=None, stop=stop))
    )
    follow.start()
    log = ChangeLog(open_catalog(eager, pipeline), pipeline)
    try:
        source_db.sql("INSERT INTO orders SELECT generate_series(1, 500)")
        _until_captured(log, source_db)
        source_db.server.restart(signal.SIGQUIT)
        source_db.sql("INSERT INTO orders SELECT generate_series(501, 900)")
        _until_captured(log, source_db)
    finally:
        stop.set()
        follow.join()
    assert results and results[0].rows == 900
    assert [row["key"] for row in log_of(pipeline, eager)] == [[str(i)] for i in range(1, 901)]


def _until_captured(log: ChangeLog, source_db: SourceDatabase) -> None:
    target = source_db.value("SELECT count(*) FROM orders")
    while sum(file.file.record_count for file in log.table().scan().plan_files()) < target:
        threading.Event().wait(0.05)


def test_a_slot_advanced_by_somebody_else_is_refused_with_the_way_back(
    any_source_db: SourceDatabase, taken: PipelineConfig, platform: PlatformConfig
) -> None:
    any_source_db.sql(
        "INSERT INTO notes VALUES (1, 'lost')",
        f"SELECT pg_replication_slot_advance('{taken.slot_name}', pg_current_wal_lsn())",
    )
    with pytest.raises(FatalError) as caught:
        run_capture(taken, platform)
    assert caught.value.code == "capture.slot_ahead"
    assert all(table in caught.value.hint for table in TABLES)


def test_a_dropped_slot_is_refused_with_the_way_back(
    any_source_db: SourceDatabase, taken: PipelineConfig, platform: PlatformConfig
) -> None:
    any_source_db.sql(f"SELECT pg_drop_replication_slot('{taken.slot_name}')")
    with pytest.raises(FatalError) as caught:
        run_capture(taken, platform)
    assert caught.value.code == "capture.slot_missing"
    assert "sweep" in caught.value.hint


def test_a_slot_of_the_same_name_made_anew_is_refused(
    any_source_db: SourceDatabase, taken: PipelineConfig, platform: PlatformConfig
) -> None:
    any_source_db.sql(
        f"SELECT pg_drop_replication_slot('{taken.slot_name}')",
        "INSERT INTO notes VALUES (1, 'between')",
        f"SELECT pg_create_logical_replication_slot('{taken.slot_name}', 'pgoutput')",
    )
    with pytest.raises(FatalError) as caught:
        run_capture(taken, platform)
    assert caught.value.code == "capture.slot_ahead"


def test_two_captures_at_once_do_not_double_anything(
    source_db: SourceDatabase, platform: PlatformConfig
) -> None:
    source_db.sql("CREATE TABLE orders (id int PRIMARY KEY)")
    pipeline = source_db.pipeline("public.orders")
    deploy(pipeline, platform)
    source_db.sql("INSERT INTO orders SELECT generate_series(1, 20000)")
    outcomes: list[Any] = []

    def one() -> None:
        try:
            outcomes.append(run_capture(pipeline, platform))
        except (HeldError, RetriableError, FatalError) as error:
            outcomes.append(error)

    threads = [threading.Thread(target=one) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    run_capture(pipeline, platform)
    assert len(outcomes) == 2
    keys = [row["key"] for row in log_of(pipeline, platform)]
    assert keys == [[str(i)] for i in range(1, 20001)]
