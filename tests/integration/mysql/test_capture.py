"""The binary log of a real MariaDB: order, resume, transactions, what is refused. No JVM."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.support.mysql import MysqlDatabase, fresh_database
from tidegate.config.platform import PlatformConfig
from tidegate.connectors.changes import ChangeBatch
from tidegate.connectors.mysql import alone, capture
from tidegate.connectors.registry import distance, open_source
from tidegate.control.status import status
from tidegate.envelope.position import Position, lsn_place
from tidegate.errors import FatalError, RetriableError
from tidegate.jobs.deploy import deploy
from tidegate.testing.mariadb_server import MariadbServer, running
from tidegate.transports.embedded import SLOT_ACTIVE

pytestmark = pytest.mark.mysql

ITEMS = "CREATE TABLE items (id int PRIMARY KEY, name varchar(40), wide mediumtext)"


@pytest.fixture
def joined(mysql_db: MysqlDatabase) -> Position:
    mysql_db.sql(ITEMS, "CREATE TABLE other (id int PRIMARY KEY)")
    return capture.new_epoch(mysql_db.settings("items"))


def told(batches: list[ChangeBatch]) -> list[dict[str, object]]:
    return [row for batch in batches for row in batch.rows.to_pylist()]


def short(batches: list[ChangeBatch]) -> list[tuple[object, object, object]]:
    return [(row["op"], row["key"], (row["after"] or [None, None])[1]) for row in told(batches)]


def test_changes_come_in_commit_order_with_old_and_new_rows(
    mysql_db: MysqlDatabase, joined: Position
) -> None:
    with (
        mysql_db.server.connect(mysql_db.name) as one,
        mysql_db.server.connect(mysql_db.name) as two,
    ):
        first, second = one.cursor(), two.cursor()
        first.execute("BEGIN")
        first.execute("INSERT INTO items VALUES (1, 'one', NULL)")
        second.execute("INSERT INTO items VALUES (2, '', '')")
        first.execute("SAVEPOINT s")
        first.execute("INSERT INTO items VALUES (9, 'never', NULL)")
        first.execute("ROLLBACK TO s")
        first.execute("UPDATE items SET name = 'uno', id = 11 WHERE id = 1")
        first.execute("COMMIT")
    mysql_db.sql("INSERT INTO other VALUES (1)", "DELETE FROM items WHERE id = 2")
    batches = mysql_db.changes(joined, "items")
    assert short(batches) == [
        ("c", ["2"], ""),
        ("c", ["1"], "one"),
        ("u", ["1"], "uno"),
        ("d", ["2"], None),
    ]
    rows = told(batches)
    assert rows[2]["before"] == ["1", "one", None]
    assert rows[2]["after"] == ["11", "uno", None]
    assert rows[3]["before"] == ["2", "", ""]
    assert [row["position"] for row in rows] == sorted(str(row["position"]) for row in rows)
    assert rows[1]["tx_id"] == rows[2]["tx_id"] != rows[0]["tx_id"]


def test_a_stream_from_any_boundary_gives_the_same_rows_and_ids(
    mysql_db: MysqlDatabase, joined: Position
) -> None:
    for number in range(20):
        mysql_db.sql(
            f"INSERT INTO items SELECT seq + {number * 100}, 'x', repeat('y', 500) FROM seq_1_to_40"
        )
        if number % 7 == 3:
            mysql_db.sql("FLUSH BINARY LOGS")
    whole = told(mysql_db.changes(joined, "items"))
    assert len(whole) == 800
    small = mysql_db.changes(joined, "items", batch_bytes=8 * 4096)
    assert _timeless(told(small)) == _timeless(whole)
    assert len(small) > 10
    boundaries = [batch.through for batch in small if batch.through is not None]
    for boundary in itertools.islice(boundaries, 0, None, 3):
        again = told(mysql_db.changes(boundary, "items"))
        later = [row for row in whole if str(row["position"]) > boundary.place]
        assert _timeless(again) == _timeless(later)


def _timeless(rows: list[dict[str, object]]) -> list[dict[str, object]]:
    return [{name: v for name, v in row.items() if name != "captured_at"} for row in rows]


def test_a_transaction_larger_than_a_parcel_has_no_boundary_inside(
    mysql_db: MysqlDatabase, joined: Position
) -> None:
    mysql_db.sql("INSERT INTO items SELECT seq, 'x', repeat('y', 2000) FROM seq_1_to_500")
    batches = mysql_db.changes(joined, "items", batch_bytes=8 * 65536)
    inside = [batch for batch in batches if batch.rows.num_rows and batch.through is None]
    assert inside
    assert len(told(batches)) == 500


def test_an_event_longer_than_a_packet_and_a_value_too_large(
    mysql_db: MysqlDatabase, joined: Position
) -> None:
    mysql_db.sql("SET GLOBAL max_allowed_packet = 67108864")
    with mysql_db.server.connect(mysql_db.name) as connection, connection.cursor() as cursor:
        cursor.execute("ALTER TABLE items MODIFY wide longtext")
        cursor.execute("INSERT INTO items VALUES (1, 'big', repeat('z', 17000000))")
        cursor.execute("INSERT INTO items VALUES (2, 'small', 'z')")
    rows = told(mysql_db.changes(joined, "items"))
    assert [len(str(row["after"][2])) for row in rows] == [17000000, 1]  # type: ignore[index]
    rows = told(mysql_db.changes(joined, "items", max_value_bytes=1000))
    assert [row["unchanged"] for row in rows] == [[-3], None]
    assert rows[0]["after"] == ["1", "big", None]


def test_ddl_truncate_xa_and_statements_are_told_apart(
    mysql_db: MysqlDatabase, joined: Position
) -> None:
    mysql_db.sql(
        "INSERT INTO items VALUES (1, 'a', NULL)",
        "ALTER TABLE items ADD COLUMN more int NULL, ADD KEY (name)",
        "TRUNCATE items",
        "INSERT INTO items VALUES (2, 'b', NULL, 5)",
    )
    batches = mysql_db.changes(joined, "items")
    assert [op for op, _, _ in short(batches)] == ["c", "t", "c"]
    assert not [hold for batch in batches for hold in batch.holds]
    schemas = [seen.schema for batch in batches for seen in batch.schemas]
    assert [len(schema.columns) for schema in schemas] == [3, 4]

    def reasons(*statements: str) -> str:
        start = capture.new_epoch(mysql_db.settings("items"))
        mysql_db.sql(*statements)
        found = mysql_db.changes(start, "items")
        assert not told(found)
        return " ".join(hold.reason for batch in found for hold in batch.holds)

    assert "statement" in reasons(
        "SET SESSION binlog_format = STATEMENT", "UPDATE items SET more = 1"
    )
    assert "XA" in reasons(
        "XA START 'x'", "UPDATE items SET more = 2", "XA END 'x'", "XA PREPARE 'x'", "XA COMMIT 'x'"
    )
    assert "renamed" in reasons("RENAME TABLE items TO gone, other TO items")
    assert "dropped" in reasons("DROP TABLE items")


@pytest.fixture(scope="module")
def own_server() -> Iterator[MariadbServer]:
    """For what concerns the whole log."""
    with running(config={"max-binlog-size": "4096"}) as server:
        yield server


def test_one_stream_at_a_time(any_db: MysqlDatabase) -> None:
    any_db.sql("CREATE TABLE t (id int PRIMARY KEY)")
    settings = any_db.settings("t")
    start = capture.new_epoch(settings)
    any_db.sql("INSERT INTO t VALUES (1)")
    other = settings.model_copy(
        update={"slot": "another_pipeline", "server_id": settings.server_id + 1}
    )
    with capture.open_changes(settings, start, "now") as stream:
        with (
            pytest.raises(RetriableError) as busy,
            capture.open_changes(settings, start, "now"),
        ):
            pass
        assert busy.value.code == SLOT_ACTIVE
        ((number,),) = any_db.rows(
            "SELECT id FROM information_schema.processlist WHERE command = 'Sleep'"
            f" AND db = '{any_db.name}'"
        )
        assert f"connection {number}" in busy.value.message
        with capture.open_changes(other, start, "now"):
            pass
        assert sum(batch.rows.num_rows for batch in stream) == 1
    for _ in range(20):  # one after the other, at once
        with capture.open_changes(settings, start, "now") as again:
            assert sum(batch.rows.num_rows for batch in again) == 1


def test_a_quiet_stream_stays_the_only_one(
    mysql_db: MysqlDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(alone, "SILENCE_SECONDS", 2)
    monkeypatch.setattr(alone, "RENEW_SECONDS", 0.5)
    mysql_db.sql("CREATE TABLE t (id int PRIMARY KEY)")
    settings = mysql_db.settings("t")
    start = capture.new_epoch(settings)
    with capture.open_changes(settings, start, None) as stream:
        quiet = itertools.islice(stream, 5)  # each wakes after a second
        assert not any(batch.rows.num_rows for batch in quiet)
        with pytest.raises(RetriableError), capture.open_changes(settings, start, "now"):
            pass


def test_a_purged_a_reset_and_another_log_are_told_apart(own_server: MariadbServer) -> None:
    own_server.execute("CREATE DATABASE shop")
    db = MysqlDatabase(own_server, "shop")
    db.sql(ITEMS)
    start = capture.new_epoch(db.settings("items"))
    db.sql("INSERT INTO items VALUES (1, 'a', NULL)")
    late = db.changes(start, "items")[-1].through
    assert late is not None
    own_server.restart()
    db.sql("INSERT INTO items VALUES (2, 'b', NULL)")
    assert len(told(db.changes(late, "items"))) == 1  # a restart is no reason

    db.sql("FLUSH BINARY LOGS", "FLUSH BINARY LOGS")
    name = own_server.execute("SHOW MASTER STATUS")[0][0]
    db.sql(f"PURGE BINARY LOGS TO '{name}'")
    assert _refusal(db, start) == "capture.log_purged"

    db.sql("RESET MASTER")
    assert _refusal(db, late.__class__(late.epoch, "0000000900000004.0000000000")) == (
        "capture.log_reset"
    )
    assert _refusal(db, start) == "capture.log_reset"  # the same file number, born later
    other = Position(start.epoch.replace("-0-11_", "-0-12_"), start.place)
    assert _refusal(db, other) == "source.other_system"


def _refusal(db: MysqlDatabase, after: Position) -> str:
    with pytest.raises(FatalError) as refused:
        db.changes(after, "items")
    assert "recover" in refused.value.hint
    return refused.value.code


def test_a_server_that_restarts_breaks_the_stream_retriably(own_server: MariadbServer) -> None:
    from tidegate.errors import RetriableError

    own_server.execute("CREATE DATABASE IF NOT EXISTS shop2")
    db = MysqlDatabase(own_server, "shop2")
    db.sql(ITEMS)
    start = capture.new_epoch(db.settings("items"))
    with capture.open_changes(db.settings("items"), start, None) as stream:
        batches = iter(stream)
        next(batches)
        own_server.restart()
        with pytest.raises(RetriableError):
            list(itertools.islice(batches, 5))


def test_a_first_deploy_begins_the_log_whose_expiry_is_watched(
    own_server: MariadbServer, tmp_path: Path
) -> None:
    own_server.execute("SET GLOBAL binlog_expire_logs_seconds = 7200")
    platform = PlatformConfig.model_validate({"lake": {"home": str(tmp_path)}})
    with fresh_database(own_server) as db:
        db.sql("CREATE TABLE t (id int PRIMARY KEY)")
        first, second = (deploy(db.pipeline("t"), platform) for _ in range(2))
        seen = status(db.pipeline("t"), platform)
    assert (first.status, first.actions) == ("deployed", ("change log ready",))
    assert (second.status, second.start) == ("unchanged", first.start)
    assert seen.source is not None
    assert (seen.source.by_time, seen.source.expiry_seconds) == (True, 7200.0)
    assert seen.source.retained_bytes is None
    assert seen.guard is not None
    assert {f.check for f in seen.guard.findings} >= {"time left", "capture"}
    assert "slot" not in " ".join(f.says for f in seen.guard.findings)


def test_distances_over_several_files_are_what_was_written(
    any_db: MysqlDatabase, tmp_path: Path
) -> None:
    """Numbers of two files lie 4 GiB apart."""
    platform = PlatformConfig.model_validate({"lake": {"home": str(tmp_path)}})
    any_db.sql("CREATE TABLE t (id int PRIMARY KEY)")
    pipeline = any_db.pipeline("t")
    deploy(pipeline, platform)
    any_db.sql("FLUSH BINARY LOGS", "INSERT INTO t VALUES (1)", "FLUSH BINARY LOGS")
    behind = status(pipeline, platform).capture_lag_bytes
    assert behind is not None and 100 < behind < 20_000
    tell = distance(pipeline.source.source_type)
    seen = open_source(pipeline, platform).status(None)
    ahead = replace(seen.current, place=lsn_place(seen.current.lsn + (1 << 32), 0))
    assert tell(seen.current, ahead) is None, "without the sizes of files nothing is told"
    assert tell(ahead, seen.current, seen) == 0


def test_labels_are_those_a_row_was_written_under(any_db: MysqlDatabase) -> None:
    any_db.sql("CREATE TABLE t (id int PRIMARY KEY, e enum('a','b'), s set('x','y'))")
    start = capture.new_epoch(any_db.settings("t"))
    any_db.sql(
        "INSERT INTO t VALUES (1, 'b', 'x,y')",
        "ALTER TABLE t MODIFY e enum('c','b','a'), MODIFY s set('z','y','x')",
        "INSERT INTO t VALUES (2, 'b', 'x,y')",
        "UPDATE t SET e = 'a', s = 'z' WHERE id = 1",
    )
    batches = any_db.changes(start, "t")
    assert [row["after"] for row in told(batches)] == [
        ["1", "b", "x,y"],
        ["2", "b", "y,x"],
        ["1", "a", "z"],
    ]
    # Taking a label away would change rows without a word: the table is swept to be sure.
    assert [hold.table for batch in batches for hold in batch.holds] == [f"{any_db.name}.t"]
