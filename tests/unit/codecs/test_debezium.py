"""Debezium's envelope, field by field, as its documentation shows it."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from tests.support.changes import LONG, money, number, schema, text
from tidegate.codecs.debezium import UNAVAILABLE, Envelopes
from tidegate.codecs.debezium_values import value
from tidegate.codecs.pg_array import elements
from tidegate.envelope.change import Change, Op
from tidegate.envelope.position import Position, lsn_place
from tidegate.schema.table import Column
from tidegate.schema.types import STRING, Kind, LogicalType, TextRule

ORDERS = schema("public.orders", number("id", key=0), text("note"), money("price"))
COMMITTED = datetime(2026, 11, 17, 8, 30, 0, 123456, tzinfo=UTC)
CAPTURED = datetime(2026, 11, 17, 8, 30, 1, tzinfo=UTC)


def change(op: Op, **values: Any) -> Change:
    facts: dict[str, Any] = {
        "key_values": ("7",),
        "before_values": None,
        "after_values": None,
        "unchanged_slots": (),
    }
    return Change(
        position=Position("e1", lsn_place(0x16B3748, 2)),
        table="public.orders",
        op=op,
        tx_id=556,
        commit_ts=COMMITTED,
        captured_at=CAPTURED,
        event_id="x",
        schema=ORDERS,
        **(facts | values),
    )


MADE = Envelopes("postgres", database="shop", name="cdc")


def sent(found: Change) -> list[dict[str, Any]]:
    return MADE.events(found)


def test_a_create_has_every_field_of_the_connectors_envelope() -> None:
    (event,) = sent(change(Op.CREATE, after_values=("7", "new", "12.50")))
    assert event == {
        "before": None,
        "after": {"id": 7, "note": "new", "price": "BOI="},  # 1250, big-endian
        "source": {
            "version": event["source"]["version"],
            "connector": "postgresql",
            "name": "cdc",
            "ts_ms": 1794904200123,
            "snapshot": "false",
            "db": "shop",
            "sequence": '[null,"23803720"]',
            "ts_us": 1794904200123456,
            "ts_ns": 1794904200123456000,
            "schema": "public",
            "table": "orders",
            "txId": 556,
            "lsn": 23803720,
            "xmin": None,
            "origin": None,
            "origin_lsn": None,
        },
        "transaction": None,
        "op": "c",
        "ts_ms": 1794904201000,
        "ts_us": 1794904201000000,
        "ts_ns": 1794904201000000000,
    }
    json.dumps(event)


def test_an_update_has_the_old_row_only_where_it_was_sent() -> None:
    (plain,) = sent(change(Op.UPDATE, after_values=("7", "b", None)))
    assert (plain["op"], plain["before"]) == ("u", None)
    (full,) = sent(change(Op.UPDATE, before_values=("7", "a", None), after_values=("7", "b", None)))
    assert full["before"] == {"id": 7, "note": "a", "price": None}


def test_what_was_not_sent_is_unavailable() -> None:
    (event,) = sent(change(Op.UPDATE, after_values=("7", None, None), unchanged_slots=(1, -1 - 2)))
    assert event["after"] == {"id": 7, "note": UNAVAILABLE, "price": UNAVAILABLE}


def test_a_delete_shows_the_key_and_nulls() -> None:
    (event,) = sent(change(Op.DELETE))
    assert event["before"] == {"id": 7, "note": None, "price": None}
    assert event["after"] is None and event["op"] == "d"
    assert MADE.key(change(Op.DELETE)) == {"id": 7}


def test_a_moved_row_is_a_delete_and_a_create() -> None:
    gone, made = sent(change(Op.UPDATE, after_values=("8", "x", None)))
    assert (gone["op"], gone["before"]["id"], gone["after"]) == ("d", 7, None)
    assert (made["op"], made["before"], made["after"]["id"]) == ("c", None, 8)


def test_a_truncate_has_neither_row() -> None:
    (event,) = sent(change(Op.TRUNCATE, key_values=None))
    assert (event["op"], event["before"], event["after"]) == ("t", None, None)
    assert MADE.key(change(Op.TRUNCATE, key_values=None)) is None


VALUES = [
    ("boolean", Kind.BOOLEAN, "t", True),
    ("bit(1)", Kind.STRING, "1", True),
    ("integer", Kind.INT, "-5", -5),
    ("bigint", Kind.LONG, "9223372036854775807", 2**63 - 1),
    ("real", Kind.FLOAT, "1.5", 1.5),
    ("double precision", Kind.DOUBLE, "NaN", "NaN"),
    ("numeric(5,2)", Kind.DECIMAL, "-1.28", "gA=="),  # -128 is one byte
    ("numeric(5,2)", Kind.DECIMAL, "1.28", "AIA="),  # 128 is two
    ("numeric(5,2)", Kind.DECIMAL, "0.00", "AA=="),
    ("numeric(5,2)", Kind.DECIMAL, "NaN", None),
    ("numeric(5,-3)", Kind.STRING, "12000", "DA=="),
    ("numeric", Kind.STRING, "1.10", {"scale": 1, "value": "Cw=="}),
    ("numeric", Kind.STRING, "0.00", {"scale": 0, "value": "AA=="}),
    ("numeric", Kind.STRING, "100", {"scale": 0, "value": "ZA=="}),
    ("bit(10)", Kind.STRING, "1000000001", "AQI="),
    ("time with time zone", Kind.STRING, "00:30:00+02", "22:30:00Z"),
    ("money", Kind.STRING, "-$1,234.56", "/h3A"),
    ("date", Kind.DATE, "1970-01-11", 10),
    ("date", Kind.DATE, "0044-03-15 BC", -735160),
    ("date", Kind.DATE, "infinity", 2**31 - 1),
    ("timestamp without time zone", Kind.TIMESTAMP, "1970-01-01 00:00:01.5", 1_500_000),
    ("timestamp(3) without time zone", Kind.TIMESTAMP, "1970-01-01 00:00:01.5", 1_500),
    ("timestamp without time zone", Kind.TIMESTAMP, "infinity", 9223372036825200000),
    ("timestamp without time zone", Kind.TIMESTAMP, "1969-12-31 23:59:59", -1_000_000),
    (
        "timestamp with time zone",
        Kind.TIMESTAMPTZ,
        "2026-11-17 08:30:00.1+00",
        "2026-11-17T08:30:00.100000Z",
    ),
    (
        "timestamp(0) with time zone",
        Kind.TIMESTAMPTZ,
        "2026-11-17 08:30:00+00",
        "2026-11-17T08:30:00Z",
    ),
    ("time without time zone", Kind.STRING, "01:00:00.000001", 3_600_000_001),
    ("time(3) without time zone", Kind.STRING, "00:00:00.25", 250),
    ("interval", Kind.STRING, "1 day -02:00:00", 79_200_000_000),
    ("interval", Kind.STRING, "1 mon", 2_629_800_000_000),
    ("bytea", Kind.BINARY, "\\x00ff", "AP8="),
    ("uuid", Kind.STRING, "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11", None),
    ("jsonb", Kind.STRING, '{"a": 1}', None),
    ("character varying(20)", Kind.STRING, "", None),
    ("mood", Kind.STRING, "happy", None),
]


@pytest.mark.parametrize(("source", "kind", "printed", "expected"), VALUES)
def test_values_have_the_connectors_forms(
    source: str, kind: Kind, printed: str, expected: object
) -> None:
    column = Column("c", source, LogicalType(kind), TextRule.PLAIN)
    textual = kind is Kind.STRING and expected is None
    assert value(column, printed) == (printed if textual else expected)
    assert value(column, None) is None


def test_arrays_keep_nulls_and_quotes() -> None:
    assert elements('{1,NULL,"NULL","a \\"b\\" \\\\ c",""}') == [
        "1",
        None,
        "NULL",
        'a "b" \\ c',
        "",
    ]
    assert elements("{}") == [] and elements("[2:3]={a,b}") == ["a", "b"]
    numbers = Column("c", "integer[]", LogicalType(Kind.LIST, element=LONG), TextRule.PG_ARRAY)
    assert value(numbers, "{1,NULL,3}") == [1, None, 3]
    texts = Column("c", "text[]", LogicalType(Kind.LIST, element=STRING), TextRule.PG_ARRAY)
    assert value(texts, "{a,b}") == ["a", "b"]
