"""A whole pipeline from a real MariaDB into a real lake."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest

from tests.support.mysql import MysqlDatabase
from tests.support.pace import PACE
from tests.support.stack import Stack
from tidegate.jobs.apply import run_apply
from tidegate.jobs.capture import run_capture
from tidegate.jobs.verify import run_verify
from tidegate.lake.gate import GateState

pytestmark = [pytest.mark.spark, pytest.mark.mysql]

ORDERS = """
CREATE TABLE orders (id bigint AUTO_INCREMENT PRIMARY KEY, customer int unsigned NOT NULL,
  amount decimal(12,2), note varchar(200), big bigint unsigned, ratio float, flag bit(1),
  day date, placed datetime(6), seen timestamp(3) NULL, raw varbinary(20), status
  enum('new','paid') NOT NULL DEFAULT 'new')
"""
COLUMNS = ("id", "customer", "amount", "note", "big", "day", "placed", "raw", "status")


def fill(db: MysqlDatabase, rows: int) -> None:
    db.sql(
        "INSERT INTO orders (customer, amount, note, big, ratio, flag, day, placed, seen, raw)"
        " SELECT seq % 7, seq * 1.25, concat('order ', seq), 18446744073709551615 - seq, 0.1,"
        " seq % 2, '2024-02-29', '2024-05-01 12:00:00.123456', '2024-05-01 12:00:00.123',"
        f" X'00ff00' FROM seq_1_to_{rows}"
    )


def source(db: MysqlDatabase) -> list[tuple[Any, ...]]:
    return sorted(db.rows(f"SELECT {', '.join(COLUMNS)} FROM orders"), key=repr)


def lake(made: Stack) -> list[tuple[Any, ...]]:
    return made.lake(f"{made.db.name}.orders", *COLUMNS)


def test_rows_that_change_during_a_sweep_arrive_once_and_right(
    mysql_db: MysqlDatabase, mysql_stack: Callable[..., Stack]
) -> None:
    mysql_db.sql(ORDERS)
    fill(mysql_db, 3000)
    made = mysql_stack("orders")
    done = threading.Event()

    def write() -> None:
        with mysql_db.server.connect(mysql_db.name) as connection, connection.cursor() as cursor:
            number = 0
            while not done.wait(PACE):
                number += 1
                key = number * 37 % 3000 + 1
                cursor.execute("UPDATE orders SET note = %s WHERE id = %s", (f"n{number}", key))
                cursor.execute("DELETE FROM orders WHERE id = %s", (number * 101 % 3000 + 1,))
                cursor.execute("INSERT INTO orders (customer, note) VALUES (1, 'late')")

    writer = threading.Thread(target=write)
    writer.start()
    try:
        swept = made.swept()
    finally:
        done.set()
        writer.join()
    assert swept.status == "swept"
    assert swept.chunks > 1
    assert set(swept.checks) >= {"row_count", "keys_unique", "key_sum(id)"}
    table = f"{mysql_db.name}.orders"
    assert made.state(table).state is GateState.OPEN
    run_capture(made.pipeline, made.platform)
    applied = run_apply(made.spark, made.pipeline, made.platform, run="a1")
    assert [t.status for t in applied.tables] == ["applied"]
    assert lake(made) == source(mysql_db)


def test_truncate_flows_and_a_rewriting_alter_holds_until_the_sweep(
    mysql_db: MysqlDatabase, mysql_stack: Callable[..., Stack]
) -> None:
    mysql_db.sql(ORDERS)
    fill(mysql_db, 50)
    made = mysql_stack("orders")
    table = f"{mysql_db.name}.orders"
    made.swept()
    mysql_db.sql(
        "TRUNCATE TABLE orders",
        "SET sql_mode = ''",
        "INSERT INTO orders (customer, note, day) VALUES (1, 'after', '0000-00-00')",
    )
    run_capture(made.pipeline, made.platform)
    run_apply(made.spark, made.pipeline, made.platform, run="a1")
    assert made.lake(table, "note", "day") == [("after", None)]
    mysql_db.sql(
        "ALTER TABLE orders ADD COLUMN extra int NOT NULL DEFAULT 4",
        "UPDATE orders SET note = 'later'",
    )
    run_capture(made.pipeline, made.platform)
    held = made.state(table)
    assert held.state is GateState.HELD
    assert "sweep" in str(held.reason)
    made.swept()
    assert made.state(table).state is GateState.OPEN
    assert made.lake(table, "note", "extra") == [("later", 4)]
    verified = run_verify(made.spark, made.pipeline, made.platform, run="v1")
    assert [verdict.status for verdict in verified.tables] == ["equal"]


def test_changes_that_no_row_tells_hold_when_they_are_applied(
    mysql_db: MysqlDatabase, mysql_stack: Callable[..., Stack]
) -> None:
    mysql_db.sql(
        "CREATE TABLE swapped (id int PRIMARY KEY, a int)",
        "INSERT INTO swapped VALUES (1, 10)",
        "CREATE TABLE quiet (id int PRIMARY KEY, a int)",
        "INSERT INTO quiet VALUES (1, 10)",
    )
    made = mysql_stack("swapped", "quiet")
    made.sweep()
    mysql_db.sql("INSERT INTO swapped VALUES (2, 20)", "INSERT INTO quiet VALUES (2, 20)")
    run_capture(made.pipeline, made.platform)
    applied = run_apply(made.spark, made.pipeline, made.platform, run="a1")
    assert [t.status for t in applied.tables] == ["applied", "applied"]
    mysql_db.sql(
        "ALTER TABLE swapped DROP COLUMN a, ADD COLUMN a int",  # no row of it follows
        "SET SESSION sql_log_bin = 0",
        "ALTER TABLE quiet ADD COLUMN b int NOT NULL DEFAULT 5",
        "SET SESSION sql_log_bin = 1",
        "INSERT INTO quiet VALUES (3, 30, 6)",
    )
    run_capture(made.pipeline, made.platform)
    run_apply(made.spark, made.pipeline, made.platform, run="a2")
    swapped, quiet = (made.state(f"{mysql_db.name}.{name}") for name in ("swapped", "quiet"))
    assert (swapped.state, quiet.state) == (GateState.HELD, GateState.HELD)
    assert "a was dropped and another column" in str(swapped.reason)
    assert "no statement" in str(quiet.reason)
    made.sweep()
    assert made.lake(f"{mysql_db.name}.quiet", "id", "b") == [(1, 5), (2, 5), (3, 6)]
