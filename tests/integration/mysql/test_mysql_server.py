"""The same connector on a real MySQL 8, whose log and locks differ. No JVM."""

from __future__ import annotations

import pytest

from tests.integration.mysql.test_types import CASES, table_of
from tests.support.mysql import MysqlDatabase
from tidegate.config.platform import PlatformConfig
from tidegate.connectors.mysql import capture, sweep, types
from tidegate.connectors.mysql.connection import connect, query
from tidegate.connectors.mysql.connector import MysqlConnector
from tidegate.names import TableId

pytestmark = pytest.mark.mysql

ONLY_MARIADB = ("uca1400", "json", "4326")
"""Cases whose type is MariaDB's own, is refused by validate here, or is stored otherwise."""


@pytest.fixture
def shop(mysql8_db: MysqlDatabase) -> MysqlDatabase:
    return mysql8_db


def test_validate_capture_and_cut_agree(shop: MysqlDatabase) -> None:
    shop.sql("CREATE TABLE items (id bigint PRIMARY KEY, note varchar(20))")
    source = MysqlConnector(shop.pipeline("items"), PlatformConfig())
    assert source.open().system.startswith("MySQL 8")
    assert source.validate().problems == ()
    start, table = capture.new_epoch(shop.settings("items")), TableId(shop.name, "items")
    shop.sql("INSERT INTO items VALUES (1, 'a'), (2, 'b'), (3, 'c')")
    with sweep.open_cut(shop.settings("items"), (table,), start) as cut:
        schema = cut.schema(table)
        assert len(cut.chunks(table, schema, 1)) == 3
        shop.sql("DELETE FROM items WHERE id = 2")
        settled = cut.settle(table, schema)
    assert (settled.survey.rows, settled.survey.keys["id"].total) == (2, 4)
    batches = shop.changes(start, "items")
    rows = [row for batch in batches for row in batch.rows.to_pylist()]
    assert [(row["op"], row["key"]) for row in rows] == [
        ("c", ["1"]),
        ("c", ["2"]),
        ("c", ["3"]),
        ("d", ["2"]),
    ]
    assert [cut.position.place < row["position"] for row in rows] == [False] * 3 + [True]
    assert batches[-1].schemas[-1].schema.schema_id == schema.schema_id


def test_bits_are_a_key_like_any_number(shop: MysqlDatabase) -> None:
    shop.sql(
        "CREATE TABLE flags (k bit(12) PRIMARY KEY)",
        "INSERT INTO flags VALUES (b'101010101010'), (0), (5)",
    )
    start, table = capture.new_epoch(shop.settings("flags")), TableId(shop.name, "flags")
    source = MysqlConnector(shop.pipeline("flags"), PlatformConfig())
    with source.cut((table,), head=start) as cut:
        facts = cut.settle(table, cut.schema(table)).survey.keys["k"]
    assert (facts.total, facts.low, facts.high) == (0b101010101010 + 5, 0, 0b101010101010)
    with source.hold((table,), head=start) as held:
        assert held.span(table, held.schema(table).columns[0]) == (0, 0b101010101010)


def test_values_are_the_same_on_both_paths(shop: MysqlDatabase) -> None:
    cases = [case for case in CASES if not any(word in str(case) for word in ONLY_MARIADB)]
    start = capture.new_epoch(shop.settings("cases"))
    shop.sql(*table_of(cases))
    batches = shop.changes(start, "cases")
    rows = [row["after"] for batch in batches for row in batch.rows.to_pylist()]
    schema = batches[-1].schemas[-1].schema
    for at, (type_, values, expected) in enumerate(cases, start=1):
        found = tuple(row[at] for row in rows)
        assert found == expected + (None,) * (len(rows) - len(values)), type_
    connection = connect(shop.settings("cases"))
    try:
        texts = ", ".join(types.text_expression(column) for column in schema.columns)
        swept = query(connection, f"SELECT {texts} FROM cases ORDER BY id")
    finally:
        connection.close()
    for at, (type_, _, _) in enumerate(cases, start=1):
        assert [row[at] for row in swept] == [row[at] for row in rows], type_


def test_xa_and_statements_hold(shop: MysqlDatabase) -> None:
    shop.sql("CREATE TABLE held (id int PRIMARY KEY)")
    start = capture.new_epoch(shop.settings("held"))
    shop.sql(
        "XA START 'x'",
        "INSERT INTO held VALUES (1)",
        "XA END 'x'",
        "XA PREPARE 'x'",
        "XA COMMIT 'x'",
    )
    (hold,) = [hold for batch in shop.changes(start, "held") for hold in batch.holds]
    assert "XA" in hold.reason
