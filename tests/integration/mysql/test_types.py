"""Exact types: the log and the sweep's own query print the same text. No JVM.

A sweep's values go through the same cast as the log's, or are native where JDBC is exact; so what
is compared here is all that the source's side decides (I6).
"""

from __future__ import annotations

from decimal import Decimal

import pytest

from tests.support.mysql import MysqlDatabase
from tidegate.connectors.mysql import capture, discover, types
from tidegate.connectors.mysql.connection import connect, query
from tidegate.names import TableId

pytestmark = pytest.mark.mysql

CASES: list[tuple[str, tuple[str, ...], tuple[str, ...]]] = [
    ("tinyint", ("-128", "127"), ("-128", "127")),
    ("tinyint unsigned", ("0", "255"), ("0", "255")),
    ("tinyint(1)", ("1", "-1"), ("1", "-1")),
    ("smallint", ("-32768", "32767"), ("-32768", "32767")),
    ("smallint unsigned", ("65535",), ("65535",)),
    ("mediumint", ("-8388608", "8388607", "-1"), ("-8388608", "8388607", "-1")),
    ("mediumint unsigned", ("16777215",), ("16777215",)),
    ("int", ("-2147483648", "2147483647"), ("-2147483648", "2147483647")),
    ("int unsigned", ("4294967295",), ("4294967295",)),
    ("int(6) zerofill", ("42",), ("42",)),
    ("bigint", ("-9223372036854775808",), ("-9223372036854775808",)),
    ("bigint unsigned", ("18446744073709551615",), ("18446744073709551615",)),
    ("bool", ("true", "false"), ("1", "0")),
    ("decimal(1,0)", ("-9", "0", "9"), ("-9", "0", "9")),
    ("decimal(12,3)", ("-0.001", "123456789.123", "0"), ("-0.001", "123456789.123", "0.000")),
    ("decimal(3,3)", ("0.123", "-0.999"), ("0.123", "-0.999")),
    ("decimal(9,0)", ("999999999", "-1"), ("999999999", "-1")),
    ("decimal(10,9)", ("1.000000001",), ("1.000000001",)),
    ("decimal(38,10)", (f"-{'9' * 28}.{'1' * 10}",), (f"-{'9' * 28}.{'1' * 10}",)),
    (
        "decimal(65,30)",
        (f"{'9' * 35}.{'3' * 30}", "-1"),
        (f"{'9' * 35}.{'3' * 30}", f"-1.{'0' * 30}"),
    ),
    ("decimal(65,0)", (f"-{'8' * 65}",), (f"-{'8' * 65}",)),
    ("decimal(20,4) unsigned", ("0.0001",), ("0.0001",)),
    ("year", ("2024", "1901", "2155", "'0000'"), ("2024", "1901", "2155", "0")),
    (
        "date",
        ("'2024-02-29'", "'0001-01-01'", "'9999-12-31'"),
        ("2024-02-29", "0001-01-01", "9999-12-31"),
    ),
    (
        "date",
        ("'0000-00-00'", "'2024-00-15'", "'2024-05-00'"),
        ("0000-00-00", "2024-00-15", "2024-05-00"),
    ),
    (
        "datetime",
        ("'2024-02-29 23:59:59'", "'0000-00-00'"),
        ("2024-02-29 23:59:59", "0000-00-00 00:00:00"),
    ),
    ("datetime(1)", ("'2024-01-01 00:00:00.9'",), ("2024-01-01 00:00:00.9",)),
    ("datetime(2)", ("'2024-01-01 00:00:00.09'",), ("2024-01-01 00:00:00.09",)),
    ("datetime(3)", ("'2024-01-01 00:00:00.009'",), ("2024-01-01 00:00:00.009",)),
    ("datetime(4)", ("'1000-01-01 12:00:00.0009'",), ("1000-01-01 12:00:00.0009",)),
    ("datetime(5)", ("'9999-12-31 23:59:59.99999'",), ("9999-12-31 23:59:59.99999",)),
    ("datetime(6)", ("'2024-01-01 00:00:00.000001'",), ("2024-01-01 00:00:00.000001",)),
    (
        "timestamp NULL",
        ("'2024-01-02 03:04:05'", "'0000-00-00'"),
        ("2024-01-02 01:04:05+00", "0000-00-00 00:00:00+00"),
    ),
    ("timestamp(6) NULL", ("'1970-01-01 02:00:01.5'",), ("1970-01-01 00:00:01.500000+00",)),
    ("timestamp(3) NULL", ("'2038-01-19 05:14:07.999'",), ("2038-01-19 03:14:07.999+00",)),
    (
        "time",
        ("'838:59:59'", "'-838:59:59'", "'00:00:00'"),
        ("838:59:59", "-838:59:59", "00:00:00"),
    ),
    ("time(2)", ("'-12:34:56.78'", "'-00:00:00.01'"), ("-12:34:56.78", "-00:00:00.01")),
    ("time(3)", ("'100:00:00.001'", "'-100:00:00.001'"), ("100:00:00.001", "-100:00:00.001")),
    (
        "time(6)",
        ("'-00:00:01.000001'", "'23:59:59.999999'"),
        ("-00:00:01.000001", "23:59:59.999999"),
    ),
    ("char(5)", ("'ab'", "''", "'a  '"), ("ab", "", "a")),
    ("char(255)", ("repeat('é', 255)",), ("é" * 255,)),
    ("varchar(10)", ("'a  '", "''", "'日本'", "'😀'"), ("a  ", "", "日本", "😀")),
    ("varchar(400)", ("repeat('x', 400)", "'\\0a'"), ("x" * 400, "\0a")),
    ("varchar(10) character set latin1", ("'ü€'", "X'81'"), ("ü€", "\x81")),
    ("varchar(10) character set cp1251", ("'Привет'",), ("Привет",)),
    ("char(4) character set ucs2", ("'äß'",), ("äß",)),
    ("varchar(4) character set utf16", ("'😀a'",), ("😀a",)),
    ("varchar(4) character set utf32", ("'😀a'",), ("😀a",)),
    ("varchar(10) collate utf8mb4_bin", ("'B'",), ("B",)),
    ("varchar(10) collate utf8mb4_uca1400_ai_ci", ("'É'",), ("É",)),
    ("varchar(10) character set utf8mb3", ("'é'",), ("é",)),
    ("tinytext", ("'t'",), ("t",)),
    ("text", ("repeat('t', 60000)",), ("t" * 60000,)),
    ("text character set latin1", ("'é'",), ("é",)),
    ("mediumtext", ("repeat('m', 70000)",), ("m" * 70000,)),
    ("longtext", ("'l'", "''"), ("l", "")),
    ("json", ("'{\"a\": [1, null]}'",), ('{"a": [1, null]}',)),
    (
        "binary(4)",
        ("X'0100'", "X'00000000'", "X'ffffffff'"),
        ("\\x01000000", "\\x00000000", "\\xffffffff"),
    ),
    ("varbinary(10)", ("X'0100'", "''"), ("\\x0100", "\\x")),
    ("varbinary(300)", ("repeat(X'00', 300)",), ("\\x" + "00" * 300,)),
    ("tinyblob", ("X'ff'",), ("\\xff",)),
    ("blob", ("X'00ff'", "''"), ("\\x00ff", "\\x")),
    ("mediumblob", ("X'01'",), ("\\x01",)),
    ("longblob", ("X'02'",), ("\\x02",)),
    ("bit(1)", ("b'1'", "b'0'"), ("t", "f")),
    ("bit(12)", ("b'101010101010'",), ("2730",)),
    ("bit(64)", ("b'" + "1" * 64 + "'",), ("18446744073709551615",)),
    ("enum('a','b''c','é')", ("'a'", "'b''c'", "'é'", "'nope'"), ("a", "b'c", "é", "")),
    ("set('x','y','z')", ("'x,z'", "''", "'y'"), ("x,z", "", "y")),
    ("set(" + ",".join(f"'v{n}'" for n in range(64)) + ")", ("'v0,v63'",), ("v0,v63",)),
    ("enum(" + ",".join(f"'e{n}'" for n in range(300)) + ")", ("'e0'", "'e299'"), ("e0", "e299")),
    ("point", ("point(1, 2)",), ("\\x000000000101000000000000000000f03f0000000000000040",)),
    (
        "geometry",
        ("st_geomfromtext('POINT(1 2)', 4326)",),
        ("\\xe61000000101000000000000000000f03f0000000000000040",),
    ),
]
FLOATS = [
    (
        "float",
        ("0.1", "16777217", "-1e-38", "3.4028235e38"),
        ("0.1", "1.6777216e+7", "-1e-38", "3.4028235e+38"),
    ),
    (
        "double",
        ("0.1", "1e300", "-5e-324", "123456789.123456789"),
        ("0.1", "1e+300", "-5e-324", "1.2345678912345679e+8"),
    ),
]


def table_of(cases: list[tuple[str, tuple[str, ...], tuple[str, ...]]]) -> list[str]:
    columns = ", ".join(f"c{n} {type_}" for n, (type_, _, _) in enumerate(cases))
    statements = ["SET time_zone = '+02:00', sql_mode = ''"]
    statements.append(f"CREATE TABLE cases (id int PRIMARY KEY, {columns})")
    most = max(len(values) for _, values, _ in cases)
    for row in range(most):
        chosen = (values[row] if row < len(values) else "NULL" for _, values, _ in cases)
        statements.append(f"INSERT INTO cases VALUES ({row}, {', '.join(chosen)})")
    return [*statements, f"INSERT INTO cases (id) VALUES ({most})"]


def test_the_log_prints_every_value_exactly_and_a_sweep_selects_the_same(
    mysql_db: MysqlDatabase,
) -> None:
    settings = mysql_db.settings("cases")
    start = capture.new_epoch(settings)
    mysql_db.sql(*table_of(CASES))
    batches = mysql_db.changes(start, "cases")
    rows = [row["after"] for batch in batches for row in batch.rows.to_pylist()]
    schema = batches[-1].schemas[-1].schema
    for at, (type_, values, expected) in enumerate(CASES, start=1):
        found = tuple(row[at] for row in rows)
        assert found == expected + (None,) * (len(rows) - len(values)), type_
    connection = connect(settings)
    try:
        live = discover.discover(connection, TableId(mysql_db.name, "cases"))
        assert [c.source_type for c in live.columns] == [c.source_type for c in schema.columns]
        assert live.schema_id == schema.schema_id  # one description, from the catalog or the log
        texts = ", ".join(types.text_expression(column) for column in live.columns)
        swept = query(connection, f"SELECT {texts} FROM cases ORDER BY id")
    finally:
        connection.close()
    for at, (type_, _, _) in enumerate(CASES, start=1):
        assert [row[at] for row in swept] == [row[at] for row in rows], type_


def test_floats_are_the_same_bits_on_both_paths(mysql_db: MysqlDatabase) -> None:
    settings = mysql_db.settings("cases")
    start = capture.new_epoch(settings)
    mysql_db.sql(*table_of(FLOATS))
    batches = mysql_db.changes(start, "cases")
    rows = [row["after"] for batch in batches for row in batch.rows.to_pylist()][:-1]
    for at, (_, _, expected) in enumerate(FLOATS, start=1):
        assert [Decimal(row[at]) for row in rows] == [Decimal(text) for text in expected]
    connection = connect(settings)
    try:
        live = discover.discover(connection, TableId(mysql_db.name, "cases"))
        chosen = ", ".join(types.select_expression(column) for column in live.columns)
        swept = query(connection, f"SELECT {chosen} FROM cases ORDER BY id")[:-1]
    finally:
        connection.close()
    import numpy as np

    assert [np.float32(row[1]) for row in swept] == [np.float32(row[1]) for row in rows]
    assert [row[2] for row in swept] == [float(row[2]) for row in rows]
