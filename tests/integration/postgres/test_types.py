"""The sweep selects exactly what the log sends, for every type (I6)."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.postgres import SourceDatabase
from tidegate.config.platform import PlatformConfig
from tidegate.connectors.postgres.connector import PostgresConnector
from tidegate.connectors.postgres.types import native, select_expression
from tidegate.envelope.position import Position
from tidegate.jobs.capture import run_capture
from tidegate.jobs.deploy import deploy
from tidegate.lake.catalog import open_catalog
from tidegate.lake.change_log import ChangeLog
from tidegate.lake.schema_history import SchemaHistory
from tidegate.schema.types import Kind

pytestmark = pytest.mark.postgres

# name, declared type, lake type, values as SQL
COLUMNS: list[tuple[str, str, str, list[str]]] = [
    ("b", "boolean", "boolean", ["true", "false"]),
    ("i2", "smallint", "int", ["-32768", "32767"]),
    ("i4", "integer", "int", ["-2147483648", "0"]),
    ("i8", "bigint", "long", ["-9223372036854775808", "9223372036854775807"]),
    ("f4", "real", "float", ["'NaN'", "1.1", "'-Infinity'"]),
    ("f8", "double precision", "double", ["0.1", "'Infinity'", "1e-300"]),
    ("n", "numeric(12,2)", "decimal(12,2)", ["1.50", "'NaN'", "-9999999999.99"]),
    ("n38", "numeric(38,10)", "decimal(38,10)", ["1234567890123456789012345678.0123456789"]),
    ("n0", "numeric", "string", ["1.500", "'NaN'", "'Infinity'", "1e100"]),
    ("n39", "numeric(39,0)", "string", ["999"]),
    ("neg", "numeric(5,-3)", "string", ["12345678"]),
    ("odd", "numeric(3,5)", "string", ["0.00123"]),
    ("d", "date", "date", ["'2024-02-29'", "'infinity'", "'0044-03-15 BC'", "'20240-01-01'"]),
    ("ts", "timestamp", "timestamp", ["'2024-02-29 12:00:00.123456'", "'-infinity'"]),
    ("ts3", "timestamp(3)", "timestamp", ["'2024-02-29 12:00:00.123456'"]),
    ("tz", "timestamptz", "timestamptz", ["'2024-02-29 12:00+05:30'", "'0044-03-15 BC'"]),
    ("by", "bytea", "binary", [r"'\x00ff'", "''"]),
    ("t", "text", "string", ["'plain'", "''", "E'line\\nbreak'", r"'\back'", "'ünï'"]),
    ("vc", "varchar(10)", "string", ["'short '"]),
    ("c", "char(6)", "string", ["'ab'"]),
    ("c1", '"char"', "string", ["'x'"]),
    ("nm", "name", "string", ["'someone'"]),
    ("js", "json", "string", ["""'{"a":  1, "a": 2}'"""]),
    ("jb", "jsonb", "string", ["""'{"b": [1, null], "a": "x"}'"""]),
    ("u", "uuid", "string", ["'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'"]),
    ("tm", "time", "string", ["'24:00:00'", "'01:02:03.5'"]),
    ("tmz", "timetz", "string", ["'01:02:03+02'"]),
    ("iv", "interval", "string", ["'1 year 2 mons -3 days 04:05:06.7'"]),
    ("ip", "inet", "string", ["'10.0.0.1'", "'10.0.0.0/8'"]),
    ("ci", "cidr", "string", ["'10.0.0.0/8'"]),
    ("mac", "macaddr", "string", ["'08:00:2b:01:02:03'"]),
    ("mo", "money", "string", ["'1234.50'"]),
    ("pt", "point", "string", ["'(1,2.5)'"]),
    ("rg", "int4range", "string", ["'[1,5)'", "'empty'"]),
    ("mr", "int4multirange", "string", ["'{[1,3),[5,7)}'"]),
    ("bits", "bit varying(8)", "string", ["B'1010'"]),
    ("tsv", "tsvector", "string", ["'a fat cat'"]),
    ("xp", "oid", "string", ["4294967295"]),
    ("rc", "regclass", "string", ["'pg_class'::regclass"]),
    ("en", "mood", "string", ["'sad'"]),
    ("co", "pair", "string", ["ROW(1, 'a \"q\"')", "ROW(NULL, NULL)"]),
    ("dm", "price", "decimal(10,3)", ["1.5"]),
    ("dd", "discount", "decimal(10,3)", ["0.25"]),
    ("dt", "email", "string", ["'a@b'"]),
    ("ai", "integer[]", "list<int>", ["'{1,NULL,3}'", "'{}'"]),
    ("an", "numeric(6,2)[]", "list<decimal(6,2)>", ["'{1.5,NULL}'"]),
    ("at", "text[]", "list<string>", ["""'{"a,b","c\\"d",NULL,"NULL"}'"""]),
    ("ats", "timestamptz[]", "list<timestamptz>", ["'{2024-01-01 00:00+00}'"]),
    ("a2", "integer[][]", "string", ["'{{1,2},{3,4}}'"]),
    ("ae", "mood[]", "list<string>", ["'{sad,happy}'"]),
    ("ab", "box[]", "string", ["'{(1,1),(0,0);(2,2),(1,1)}'"]),
    ("da", "numbers", "list<int>", ["'{1,2}'"]),
    ("iv2", "int2vector", "string", ["'1 2 3'"]),
]


@pytest.fixture
def wide(any_source_db: SourceDatabase) -> SourceDatabase:
    """One table with every type; a row of first values, one per further value, one of NULLs."""
    declared = ", ".join(f"{name} {type_}" for name, type_, _, _ in COLUMNS)
    any_source_db.sql(
        "CREATE TYPE mood AS ENUM ('sad', 'happy')",
        "CREATE TYPE pair AS (a int, b text)",
        "CREATE DOMAIN price AS numeric(10,3)",
        "CREATE DOMAIN discount AS price CHECK (VALUE < 1)",
        "CREATE DOMAIN email AS varchar(30)",
        "CREATE DOMAIN numbers AS int[]",
        f"CREATE TABLE wide (id int PRIMARY KEY, {declared})",
    )
    return any_source_db


def insert(db: SourceDatabase) -> None:
    names = ", ".join(name for name, *_ in COLUMNS)
    most = max(len(values) for *_, values in COLUMNS)
    statements = ["INSERT INTO wide (id) VALUES (0)"]
    for row in range(most):
        values = ", ".join(v[row] if row < len(v) else "NULL" for *_, v in COLUMNS)
        statements.append(f"INSERT INTO wide (id, {names}) VALUES ({row + 1}, {values})")
    # Other settings than ours, as an application may have them.
    db.sql("SET TimeZone = 'Asia/Kolkata'", "SET DateStyle = 'German'", *statements)


def test_types_become_what_the_reference_says(wide: SourceDatabase) -> None:
    pipeline = wide.pipeline("public.wide")
    schema = PostgresConnector(pipeline, PlatformConfig()).discover(pipeline.source.table_ids[0])
    found = {column.name: str(column.type) for column in schema.columns}
    assert found == {"id": "int", **{name: lake for name, _, lake, _ in COLUMNS}}


def test_log_and_sweep_agree_on_every_value_and_on_the_schema(
    wide: SourceDatabase, platform: PlatformConfig
) -> None:
    pipeline = wide.pipeline("public.wide")
    deploy(pipeline, platform)
    insert(wide)
    run_capture(pipeline, platform)
    catalog = open_catalog(platform, pipeline)
    logged = sorted(
        ChangeLog(catalog, pipeline).table().scan().to_arrow().to_pylist(),
        key=lambda row: row["position"],
    )
    source = PostgresConnector(pipeline, platform)
    table = pipeline.source.table_ids[0]
    with source.cut((table,), head=Position(logged[0]["epoch"], logged[0]["position"])) as cut:
        schema = cut.schema(table)
        assert schema == SchemaHistory(catalog, pipeline).get(logged[0]["schema_id"])
        swept = _as_the_driver_reads(wide, source, cut.snapshot_name, schema)
    for logged_row, swept_row in zip(logged, swept, strict=True):
        for slot, column in enumerate(schema.columns):
            text, value = logged_row["after"][slot], swept_row[slot]
            if native(column) and column.type.kind is not Kind.STRING:
                text = None if text is None else _plain(column.type.kind, text)
            assert repr(value) == repr(text), column.name


def _as_the_driver_reads(
    db: SourceDatabase, source: PostgresConnector, snapshot: str, schema: Any
) -> list[tuple[Any, ...]]:
    from tidegate.connectors.postgres.connection import session

    names = ", ".join(select_expression(column) for column in schema.columns)
    with session(source.settings, "test") as connection, connection.transaction():
        connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        connection.execute(f"SET TRANSACTION SNAPSHOT '{snapshot}'".encode())
        query = f"SELECT {names} FROM ONLY wide ORDER BY id".replace("wide", "public.wide")
        return connection.execute(query.encode()).fetchall()


def _plain(kind: Kind, text: str) -> Any:
    if kind is Kind.BOOLEAN:
        return {"t": True, "f": False}[text]
    if kind in (Kind.INT, Kind.LONG):
        return int(text)
    if kind is Kind.BINARY:
        return bytes.fromhex(text.removeprefix("\\x"))
    return float(text)
