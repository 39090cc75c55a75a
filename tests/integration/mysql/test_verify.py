"""Verify and reload of a source whose connections cannot share a snapshot."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from tests.support.mysql import MysqlDatabase
from tests.support.stack import Stack
from tidegate.config.verify import Extent
from tidegate.connectors.mysql import capture
from tidegate.connectors.mysql.held import HeldCut, open_held
from tidegate.connectors.selecting import Checksum
from tidegate.errors import RetriableError, TidegateError
from tidegate.jobs.reload import run_reload
from tidegate.jobs.verdict import TableVerdict
from tidegate.jobs.verify import run_verify
from tidegate.names import TableId
from tidegate.schema.keyspace import BUCKETS, bucket_arcs
from tidegate.spark.publish import spark_name

pytestmark = [pytest.mark.spark, pytest.mark.mysql]

# Every kind of text that both sides must print alike, in several collations.
PLAIN = """
CREATE TABLE things (id int PRIMARY KEY, small tinyint unsigned, big bigint unsigned,
  amount decimal(38,10), day date, at datetime(6), whole datetime, instant timestamp(3) NULL,
  ok bit(1), bits bit(9), note varchar(60) COLLATE utf8mb4_bin, old varchar(20) CHARSET latin1,
  code char(5), kind enum('a','b'), tags set('x','y'), raw varbinary(9), lasted time(2), y year)
"""
ROWS = """
INSERT INTO things SELECT seq, seq % 256, 18446744073709551615 - seq, seq * 0.0000000037,
  '2024-02-29' + INTERVAL seq DAY, '2024-02-29 23:59:59.9' + INTERVAL seq MICROSECOND,
  '1999-12-31 00:00:00', '2024-03-31 02:30:00.120', seq % 2, seq % 512, concat('é😀 ~', seq),
  'café', 'ab', 'b', 'x,y', unhex(hex(seq)), '-838:59:58.5', 1970 + seq % 100
FROM seq_1_to_400
"""
EMPTY_ROW = "INSERT INTO things (id) VALUES (-7)"


def test_both_servers_sum_up_alike(mysql_db: MysqlDatabase, mysql8_db: MysqlDatabase) -> None:
    """What the lake prints is compared with MariaDB's text; MySQL 8 has to print the same."""
    mysql_db.sql(PLAIN, ROWS, EMPTY_ROW)
    rows = mysql_db.rows("SELECT * FROM things")
    marks = ", ".join(["%s"] * len(rows[0]))
    with mysql8_db.server.connect(mysql8_db.name) as connection, connection.cursor() as cursor:
        cursor.execute(PLAIN)
        cursor.executemany(f"INSERT INTO things VALUES ({marks})", rows)
    sums = [_sums(db) for db in (mysql_db, mysql8_db)]
    assert sums[0] == sums[1]
    assert sums[0][0].rows == 401
    assert 0 < sums[0][1].rows < 401


def test_tables_of_many_columns_are_summed_up_and_a_failure_stays_with_its_table(
    any_db: MysqlDatabase,
) -> None:
    db = any_db
    columns = ", ".join(f"c{n} {('varchar(9)', 'int', 'decimal(9,2)')[n % 3]}" for n in range(400))
    db.sql(f"CREATE TABLE things (id int PRIMARY KEY, {columns})", "INSERT things (id) VALUES (1)")
    db.sql("CREATE TABLE others (id int PRIMARY KEY)", "INSERT INTO others VALUES (1), (2)")
    settings = db.settings("things", "others")
    things, others = (TableId(db.name, name) for name in ("things", "others"))
    with open_held(settings, (things, others), capture.new_epoch(settings)) as cut:
        schema = cut.schema(things)
        with pytest.raises(TidegateError, match="no_such_column"):
            cut.checksum(things, schema, cut.survey(things, schema).plain, "no_such_column = 1")
        found = cut.checksum(things, schema, cut.survey(things, schema).plain, "true")
        assert found is not None and found.rows == 1
        assert (cut.left_out(things), cut.count(others)) == ({}, 2)


def test_a_snapshot_that_is_lost_says_so(mysql_db: MysqlDatabase) -> None:
    mysql_db.sql("CREATE TABLE things (id int PRIMARY KEY)")
    settings, table = mysql_db.settings("things"), TableId(mysql_db.name, "things")
    head = capture.new_epoch(settings)
    with pytest.raises(RetriableError) as lost, open_held(settings, (table,), head) as cut:
        mysql_db.sql(f"KILL {cut._connection.thread_id()}")
        cut.count(table)
    assert "counting rows" in lost.value.message
    # What goes wrong elsewhere meanwhile is not the source's.
    with pytest.raises(FileNotFoundError), open_held(settings, (table,), head):
        raise FileNotFoundError


def _sums(db: MysqlDatabase) -> list[Checksum]:
    settings, table = db.settings("things"), TableId(db.name, "things")
    head = capture.new_epoch(settings)
    with open_held(settings, (table,), head) as cut:
        schema = cut.schema(table)
        plain = cut.survey(table, schema).plain
        some = cut.keys_sql(schema, bucket_arcs(range(BUCKETS // 2)))
        found = [cut.checksum(table, schema, plain, where) for where in ("true", str(some))]
    assert None not in found
    return found  # type: ignore[return-value]


@pytest.fixture
def made(mysql_db: MysqlDatabase, mysql_stack: Callable[..., Stack]) -> Stack:
    mysql_db.sql(PLAIN, ROWS, EMPTY_ROW)
    stack = mysql_stack("things")
    stack.swept()
    return stack


def verdict(made: Stack, **options: Any) -> TableVerdict:
    (found,) = run_verify(made.spark, made.pipeline, made.platform, **options).tables
    assert found.error is None, found.error
    return found


def spoil(made: Stack, *statements: str) -> None:
    for statement in statements:
        name = spark_name(made.pipeline.targets[0].identifier)
        made.spark.sql(statement.format(things=name))


def test_equal_sums_are_enough(made: Stack, monkeypatch: pytest.MonkeyPatch) -> None:
    made.db.sql(
        "UPDATE things SET amount = -amount, note = '' WHERE id % 10 = 1",
        "DELETE FROM things WHERE id % 11 = 0",
        "UPDATE things SET id = id + 10000 WHERE id = 5",
    )

    def fetch(*_: Any) -> None:
        raise AssertionError("rows were read")

    monkeypatch.setattr(HeldCut, "fetch", fetch)
    found = verdict(made)
    assert (found.status, found.coverage) == ("equal", 100)
    assert found.source_rows == found.lake_rows == 401 - 36
    assert verdict(made, extent=Extent(0.1)).status == "equal"


def test_what_differs_is_named_and_mended(made: Stack) -> None:
    spoil(
        made,
        "UPDATE {things} SET amount = amount + 0.0000000001 WHERE id = 3",
        "UPDATE {things} SET note = concat(note, ' ') WHERE id = 4",
        "DELETE FROM {things} WHERE id = 5",
        "INSERT INTO {things} (id, note) VALUES (777, 'extra')",
    )
    found = verdict(made)
    assert found.status == "different"
    named = {(d.kind, d.key["id"], d.columns) for d in found.first}
    assert named == {
        ("different", "3", ("amount",)),
        ("different", "4", ("note",)),
        ("missing", "5", ()),
        ("extra", "777", ()),
    }
    mended = verdict(made, repair=True)
    assert (mended.status, mended.repaired) == ("repaired", 4)
    assert verdict(made).status == "equal"


def test_floats_and_zero_dates_are_compared_row_by_row(
    mysql_db: MysqlDatabase, mysql_stack: Callable[..., Stack]
) -> None:
    mysql_db.sql(
        "SET sql_mode = ''",
        "CREATE TABLE things (id varchar(20) PRIMARY KEY, ratio float, far double, day date)",
        "INSERT INTO things SELECT concat('k', seq), seq / 7, seq / 3e300, '0000-00-00'"
        " FROM seq_1_to_50",
    )
    stack = mysql_stack("things")
    stack.swept()
    assert verdict(stack).status == "equal"
    spoil(stack, "UPDATE {things} SET far = far * 2 WHERE id = 'k7'")
    found = verdict(stack, repair=True)
    assert (found.status, found.repaired) == ("repaired", 1)
    assert verdict(stack).status == "equal"


def test_the_rows_of_an_interval_are_loaded_again(
    mysql_db: MysqlDatabase, mysql_stack: Callable[..., Stack]
) -> None:
    mysql_db.sql(
        "CREATE TABLE things (id int PRIMARY KEY, at datetime(3), note text)",
        "INSERT INTO things SELECT seq, '2024-05-01' + INTERVAL seq HOUR, 'right' FROM seq_1_to_60",
    )
    time_column = {"tables": {f"{mysql_db.name}.things": {"reload": {"time_column": "at"}}}}
    stack = mysql_stack("things", lake=time_column)
    stack.swept()
    spoil(stack, "UPDATE {things} SET note = 'wrong'")
    start, end = (datetime(2024, 5, day, tzinfo=UTC) for day in (2, 3))
    found, *_ = run_reload(stack.spark, stack.pipeline, stack.platform, start=start, end=end).tables
    assert (found.status, found.repaired) == ("repaired", 24)
    table = f"{mysql_db.name}.things"
    assert len(stack.lake(table, "id", where="note = 'right'")) == 24
