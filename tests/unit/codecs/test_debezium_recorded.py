"""Values beside those that Debezium itself printed (tests/integration/connectors/debezium)."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from tidegate.codecs import debezium_mysql, debezium_values
from tidegate.codecs.debezium import Envelopes
from tidegate.connectors.mysql.types import ColumnFacts
from tidegate.connectors.mysql.types import column as mysql_column
from tidegate.envelope.change import Change, Op
from tidegate.envelope.position import boundary
from tidegate.names import TableId
from tidegate.schema.table import Column, TableSchema
from tidegate.schema.types import STRING, Kind, LogicalType, TextRule

RECORDED = Path(__file__).parents[2] / "integration" / "connectors" / "debezium"
POSTGRES = {
    "flag": ("boolean", Kind.BOOLEAN, "t"),
    "small": ("smallint", Kind.INT, "-32768"),
    "amount": ("numeric(12,2)", Kind.DECIMAL, "-1234567.89"),
    "anything": ("numeric", Kind.STRING, "1.500"),
    "ratio": ("real", Kind.FLOAT, "0.1"),
    "code": ("character(5)", Kind.STRING, "ab   "),
    "raw": ("bytea", Kind.BINARY, "\\x00ff10"),
    "born": ("date", Kind.DATE, "1969-12-31"),
    "at": ("timestamp without time zone", Kind.TIMESTAMP, "2024-02-29 12:34:56.789012"),
    "at_ms": ("timestamp(3) without time zone", Kind.TIMESTAMP, "2024-02-29 12:34:56.789"),
    "at_zone": ("timestamp with time zone", Kind.TIMESTAMPTZ, "2024-02-29 10:34:56.789+00"),
    "at_zone0": ("timestamp(0) with time zone", Kind.TIMESTAMPTZ, "2024-02-29 12:34:56+00"),
    "clock": ("time without time zone", Kind.STRING, "23:59:59.999999"),
    "clock_ms": ("time(3) without time zone", Kind.STRING, "01:02:03.456"),
    "clock_zone": ("time with time zone", Kind.STRING, "12:34:56.5+02"),
    "span": ("interval", Kind.STRING, "1 year 2 mons 3 days 04:05:06.789"),
    "one_bit": ("bit(1)", Kind.STRING, "1"),
    "bits": ("bit(10)", Kind.STRING, "1000000001"),
    "docb": ("jsonb", Kind.STRING, '{"a": [true, null], "b": 1}'),
}


def _row(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((RECORDED / f"{name}.json").read_text())
    row: dict[str, Any] = found["events"][0]["value"]["after"]
    return row


@pytest.mark.parametrize("name", POSTGRES)
def test_postgres_values_are_debeziums(name: str) -> None:
    source, kind, text = POSTGRES[name]
    type_ = STRING if kind is Kind.STRING else LogicalType(kind)
    column = Column(name, source, type_, TextRule.PLAIN)
    assert debezium_values.value(column, text) == _row("postgres")[name]


MYSQL = {
    "tiny": (ColumnFacts("tiny", "tinyint"), "-128"),
    "small": (ColumnFacts("small", "smallint", unsigned=True), "65535"),
    "whole": (ColumnFacts("whole", "int", unsigned=True), "4294967295"),
    "ubig": (ColumnFacts("ubig", "bigint", unsigned=True), "9223372036854775807"),
    "amount": (ColumnFacts("amount", "decimal", precision=12, scale=2), "-1234567.89"),
    "ratio": (ColumnFacts("ratio", "float"), "0.5"),
    "code": (ColumnFacts("code", "char", length=5, charset="utf8mb4"), "ab"),
    "raw": (ColumnFacts("raw", "varbinary", length=8), "\\x00ff10"),
    "padded": (ColumnFacts("padded", "binary", length=4), "\\x01000000"),
    "big_raw": (ColumnFacts("big_raw", "blob"), "\\x00"),
    "born": (ColumnFacts("born", "date"), "1969-12-31"),
    "at": (ColumnFacts("at", "datetime"), "2024-02-29 12:34:56"),
    "at_ms": (ColumnFacts("at_ms", "datetime", precision=3), "2024-02-29 12:34:56.789"),
    "at_us": (ColumnFacts("at_us", "datetime", precision=6), "2024-02-29 12:34:56.789012"),
    "at_zone": (ColumnFacts("at_zone", "timestamp"), "2024-02-29 12:34:56+00"),
    "at_zone_us": (
        ColumnFacts("at_zone_us", "timestamp", precision=6),
        "2024-02-29 12:34:56.789012+00",
    ),
    "at_zone_even": (
        ColumnFacts("at_zone_even", "timestamp", precision=6),
        "2024-02-29 12:34:56.000000+00",
    ),
    "ubig_most": (ColumnFacts("ubig_most", "bigint", unsigned=True), "18446744073709551615"),
    "clock": (ColumnFacts("clock", "time"), "-12:34:56"),
    "clock_us": (ColumnFacts("clock_us", "time", precision=6), "23:59:59.999999"),
    "made": (ColumnFacts("made", "year"), "2024"),
    "one_bit": (ColumnFacts("one_bit", "bit", precision=1), "t"),
    "bits": (ColumnFacts("bits", "bit", precision=10), "513"),
    "mood": (ColumnFacts("mood", "enum", labels=("fine", "so so")), "so so"),
    "tags": (ColumnFacts("tags", "set", labels=("x", "y", "z")), "x,z"),
}


@pytest.mark.parametrize("name", MYSQL)
def test_mysql_values_are_debeziums(name: str) -> None:
    facts, text = MYSQL[name]
    assert debezium_mysql.value(mysql_column(facts), text) == _row("mariadb")[name]


@pytest.mark.parametrize("source", ["postgres", "mysql"])
def test_every_event_has_the_fields_that_debezium_sends(source: str) -> None:
    """Names of the envelope's and of ``source``'s fields; values of those that must agree."""
    recorded = {"postgres": "postgres", "mysql": "mariadb"}[source]
    events = json.loads((RECORDED / f"{recorded}.json").read_text())["events"]
    assert {event["value"]["op"] for event in events} == set("rcudt")
    epoch = {"postgres": "1-2", "mysql": "binlog-0-11_1_2"}[source]
    schema = TableSchema(TableId("public" if source == "postgres" else "shop", "plain"), ())
    change = Change(
        position=boundary(epoch, 4),
        table=str(schema.table),
        op=Op.TRUNCATE,
        tx_id=7,
        commit_ts=None,
        captured_at=datetime.now(UTC),
        event_id="",
        schema=schema,
        key_values=None,
        before_values=None,
        after_values=None,
    )
    (ours,) = Envelopes(source, database="shop", name="cdc").events(change)
    theirs = events[-1]["value"]
    assert ours.keys() == theirs.keys()
    assert ours["source"].keys() == theirs["source"].keys()
    alike = {"connector", "name", "snapshot", "db", "table", "schema", "xmin", "origin", "query"}
    for field in alike & theirs["source"].keys():
        assert ours["source"][field] == theirs["source"][field]
    for field in ("op", "before", "after", "transaction"):
        assert ours[field] == theirs[field]
