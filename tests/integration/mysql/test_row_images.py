"""Rows that were logged in part: what cannot be known holds the table, and is never guessed."""

from __future__ import annotations

import pytest

from tests.support.mysql import MysqlDatabase
from tidegate.connectors.mysql import capture
from tidegate.connectors.mysql.row_images import NOT_SENT

pytestmark = pytest.mark.mysql

MINIMAL = "SET SESSION binlog_row_image = 'MINIMAL'"


def told(db: MysqlDatabase, *statements: str) -> list[str]:
    """Why the table ``t`` is held after ``statements``."""
    start = capture.new_epoch(db.settings("t"))
    db.sql(*statements)
    return [hold.reason for batch in db.changes(start, "t") for hold in batch.holds]


def test_a_virtual_column_that_mariadb_does_not_send_holds(mysql_db: MysqlDatabase) -> None:
    mysql_db.sql("CREATE TABLE t (id int PRIMARY KEY, a int, v int AS (a * 3) VIRTUAL)")
    assert told(mysql_db, "INSERT INTO t (id, a) VALUES (1, 1)") == []
    assert told(mysql_db, MINIMAL, "UPDATE t SET a = 2") == [NOT_SENT]


def test_a_default_that_is_not_a_constant_holds(mysql_db: MysqlDatabase) -> None:
    mysql_db.sql(
        "CREATE TABLE t (id int PRIMARY KEY, a int DEFAULT 5, d date DEFAULT '2024-01-01')"
    )
    assert told(mysql_db, MINIMAL, "INSERT INTO t (id, d) VALUES (1, '2024-05-05')") == []
    assert told(mysql_db, MINIMAL, "INSERT INTO t (id) VALUES (2)") == [NOT_SENT]
