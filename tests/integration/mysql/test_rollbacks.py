"""Transactions that a server logs although they, or parts of them, were rolled back. No JVM."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.mysql import MysqlDatabase
from tests.support.mysql_replay import Replay, source_rows
from tidegate.connectors.mysql import capture

pytestmark = pytest.mark.mysql

ITEMS = "CREATE TABLE items (id int PRIMARY KEY, v int, wide text)"
FIRST = "INSERT INTO items VALUES (1, 1, NULL), (2, 2, NULL)"
TEMPORARY = "CREATE TEMPORARY TABLE {} (i int)"
"""Makes MariaDB log what follows, rolled back or not."""


def followed(db: MysqlDatabase, *statements: str, **options: int) -> Replay:
    """``statements`` in one session, captured."""
    db.sql(ITEMS, FIRST)
    start = capture.new_epoch(db.settings("items"))
    replay = Replay(db, "items")
    db.sql(*statements)
    replay.take(db.changes(start, "items", **options))
    return replay


def right(replay: Replay) -> bool:
    return not replay.held and replay.is_right()


def test_a_transaction_that_was_rolled_back_changes_nothing(any_db: MysqlDatabase) -> None:
    replay = followed(
        any_db,
        "BEGIN",
        "UPDATE items SET v = 99 WHERE id = 1",
        "INSERT INTO items VALUES (3, 3, NULL)",
        TEMPORARY.format("x"),
        "DELETE FROM items WHERE id = 2",
        "ROLLBACK",
        "INSERT INTO items VALUES (4, 4, NULL)",
    )
    assert right(replay)
    assert [row["id"] for row in replay.rows()] == ["1", "2", "4"]


def test_savepoints_are_gone_back_to(any_db: MysqlDatabase) -> None:
    replay = followed(
        any_db,
        "BEGIN",
        "INSERT INTO items VALUES (3, 3, NULL)",
        "SAVEPOINT a",
        "UPDATE items SET v = 5",
        "SAVEPOINT `B``b`",
        TEMPORARY.format("x"),
        "INSERT INTO items VALUES (6, 6, NULL)",
        "ROLLBACK TO `b``B`",
        "INSERT INTO items VALUES (7, 7, NULL)",
        "ROLLBACK TO A",
        "INSERT INTO items VALUES (8, 8, NULL)",
        "RELEASE SAVEPOINT a",
        "COMMIT",
    )
    assert right(replay)
    assert [row["id"] for row in replay.rows()] == ["1", "2", "3", "8"]


@pytest.mark.parametrize("end", ["ROLLBACK", "COMMIT"])
def test_what_was_rolled_back_is_known_before_its_end_is_read(
    any_db: MysqlDatabase, end: str
) -> None:
    """A transaction of many parcels, each of which is handed on when it is read."""

    def many(first: int) -> str:
        rows = (f"({first + n}, {n}, repeat('w', 900))" for n in range(60))
        return f"INSERT INTO items VALUES {', '.join(rows)}"

    replay = followed(
        any_db,
        "INSERT INTO items VALUES (5, 5, NULL)",
        "BEGIN",
        many(1000),
        "SAVEPOINT s",
        many(2000),
        TEMPORARY.format("x"),
        many(3000),
        "ROLLBACK TO s",
        many(4000),
        end,
        "INSERT INTO items VALUES (6, 6, NULL)",
        batch_bytes=8 * 4096,
    )
    assert right(replay)
    assert len(replay.rows()) == (4 if end == "ROLLBACK" else 124)


def test_a_savepoint_that_was_set_twice_is_doubtful(mysql_db: MysqlDatabase) -> None:
    """A stored function may have set the second, and to it the first does not exist."""
    replay = followed(
        mysql_db,
        "BEGIN",
        "INSERT INTO items VALUES (5, 5, NULL)",
        "SAVEPOINT s",
        "INSERT INTO items VALUES (3, 3, NULL)",
        "SAVEPOINT s",
        TEMPORARY.format("x"),
        "INSERT INTO items VALUES (4, 4, NULL)",
        "ROLLBACK TO s",
        "COMMIT",
    )
    assert "rolled back in part" in " ".join(replay.held)
    assert replay.rows() == Replay(mysql_db, "items").rows()


def test_rows_of_tables_without_transactions_have_happened(any_db: MysqlDatabase) -> None:
    """Both servers log them in groups of their own; the table is held all the same."""
    any_db.sql("CREATE TABLE plain (id int PRIMARY KEY, v int) ENGINE=MyISAM")
    any_db.sql("INSERT INTO plain VALUES (1, 1)")
    start = capture.new_epoch(any_db.settings("plain"))
    replay = Replay(any_db, "plain")
    mixed = [
        "BEGIN",
        "INSERT INTO items VALUES (3, 3, NULL)",
        "INSERT INTO plain VALUES (2, 2)",
        "UPDATE items, plain SET items.v = 7, plain.v = 7 WHERE items.id = plain.id",
        "INSERT INTO items VALUES (4, 4, NULL)",
        "ROLLBACK",
    ]
    if any_db.server.flavour == "mysql":  # it refuses to mix them where it writes GTIDs
        mixed = ["INSERT INTO plain VALUES (2, 2)", "UPDATE plain SET v = 7 WHERE id = 1"]
    items = followed(any_db, *mixed)
    replay.take(any_db.changes(start, "plain"))
    assert right(items)
    assert replay.rows() == source_rows(any_db, "plain")
    assert "not InnoDB" in replay.held[0]
    assert [row["v"] for row in replay.rows()].count("7") == (2 if len(mixed) > 2 else 1)


def test_a_load_of_a_file_that_is_logged_as_a_statement_holds(
    any_db: MysqlDatabase, tmp_path: Path
) -> None:
    path = tmp_path / "rows.txt"
    path.write_text("9\t9\t9\n")
    any_db.sql(ITEMS, "SET GLOBAL local_infile = 1")
    start = capture.new_epoch(any_db.settings("items"))
    with any_db.server.connect(any_db.name, local_infile=True) as session:
        session.cursor().execute("SET SESSION binlog_format = STATEMENT")
        session.cursor().execute(f"LOAD DATA LOCAL INFILE '{path}' INTO TABLE items")
    held = [hold for batch in any_db.changes(start, "items") for hold in batch.holds]
    assert held
    assert "statement" in held[0].reason
