"""Avro schemas of tables: exact types, checked by an Avro library that is not ours."""

from __future__ import annotations

import io
import json
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import fastavro
import pytest

from tidegate.codecs.avro import NAME_PROPERTY, render
from tidegate.codecs.spelling import AVRO, TOPIC, spelled
from tidegate.names import TableId
from tidegate.schema.table import Column, TableSchema
from tidegate.schema.types import STRING, Kind, LogicalType, TextRule

TOPIC_NAME = "cdc.public.orders"


def column(
    name: str, type_: LogicalType = STRING, *, key: int | None = None, nullable: bool = True
) -> Column:
    return Column(name, "as declared", type_, TextRule.PLAIN, nullable=nullable, key=key)


def table(*columns: Column, name: str = "orders") -> TableSchema:
    return TableSchema(TableId("public", name), columns)


def there_and_back(schema: str, row: dict[str, Any]) -> Any:
    parsed = fastavro.parse_schema(json.loads(schema))
    buffer = io.BytesIO()
    fastavro.schemaless_writer(buffer, parsed, row, strict=True)
    buffer.seek(0)
    return fastavro.schemaless_reader(buffer, parsed, None)


DIGITS = Decimal("12345678901234567890123456789012345.678")
VALUES = [
    (LogicalType(Kind.BOOLEAN), True),
    (LogicalType(Kind.INT), -(2**31)),
    (LogicalType(Kind.LONG), 2**63 - 1),
    (LogicalType(Kind.FLOAT), 0.5),
    (LogicalType(Kind.DOUBLE), 0.1),
    (LogicalType(Kind.DECIMAL, 38, 3), DIGITS),
    (LogicalType(Kind.DATE), date(1, 1, 1)),
    (LogicalType(Kind.TIMESTAMP), datetime(1969, 7, 20, 20, 17, 40, 123456)),
    (LogicalType(Kind.TIMESTAMPTZ), datetime(2026, 3, 29, 1, 59, 59, 999999, tzinfo=UTC)),
    (LogicalType(Kind.BINARY), b"\x00\xff"),
    (STRING, "naïve 🚢"),
    (LogicalType(Kind.VARIANT), '{"a": [1]}'),
    (LogicalType(Kind.LIST, element=LogicalType(Kind.DECIMAL, 5, 2)), [Decimal("1.50"), None]),
]


@pytest.mark.parametrize(("type_", "value"), VALUES, ids=[str(type_) for type_, _ in VALUES])
@pytest.mark.parametrize("nullable", [False, True])
def test_every_type_takes_its_values_exactly(
    type_: LogicalType, value: Any, nullable: bool
) -> None:
    rendered = render(table(column("v", type_, nullable=nullable)), TOPIC_NAME)
    assert there_and_back(rendered.value, {"v": value}) == {"v": value}
    if nullable:
        assert there_and_back(rendered.value, {"v": None}) == {"v": None}


def test_every_kind_is_rendered() -> None:
    assert {type_.kind for type_, _ in VALUES} == set(Kind)


def test_records_are_named_as_debezium_names_them() -> None:
    rendered = render(
        table(column("id", LogicalType(Kind.LONG), key=0, nullable=False)), "cdc.public.orders"
    )
    assert rendered.key is not None
    key, value = json.loads(rendered.key), json.loads(rendered.value)
    assert (key["namespace"], key["name"]) == (TOPIC_NAME, "Key")
    assert (value["namespace"], value["name"]) == ("cdc.public.orders", "Value")
    assert value["fields"] == [
        {"name": "id", "type": "long", "tidegate.source_type": "as declared"},
    ]


def test_keys_come_in_key_order_and_a_table_without_one_has_no_key_record() -> None:
    pair = table(
        column("a", key=1, nullable=False), column("b", key=0, nullable=False), column("c")
    )
    key = render(pair, TOPIC_NAME).key
    assert key is not None
    assert [field["name"] for field in json.loads(key)["fields"]] == ["b", "a"]
    assert render(table(column("c")), TOPIC_NAME).key is None


def test_a_new_nullable_column_is_read_from_old_rows_as_null() -> None:
    before = render(table(column("a")), TOPIC_NAME).value
    after = render(table(column("a"), column("b")), TOPIC_NAME).value
    buffer = io.BytesIO()
    fastavro.schemaless_writer(buffer, fastavro.parse_schema(json.loads(before)), {"a": "x"})
    buffer.seek(0)
    row = fastavro.schemaless_reader(buffer, json.loads(before), json.loads(after))
    assert row == {"a": "x", "b": None}


def test_odd_names_are_spelled_legally_apart_and_keep_their_own_as_a_property() -> None:
    names = ["order id", "order-id", "order_id", "2nd", "größe", "订单", "客户", ""]
    rendered = render(
        table(*(column(name) for name in names), name="odd.name"), "my-cdc.public.odd_name"
    )
    record = json.loads(rendered.value)
    fastavro.parse_schema(record)
    assert record["namespace"] == "my_cdc.public.odd_name"
    spelling = {
        field.get(NAME_PROPERTY, field["name"]): field["name"] for field in record["fields"]
    }
    assert list(spelling) == names
    assert len(set(spelling.values())) == len(names)
    assert spelling["order_id"] == "order_id", "what is legal keeps its name"
    assert spelling["2nd"] == "_2nd" and spelling["größe"] == "gr__e"


def test_spelling_depends_on_the_names_and_not_on_their_order() -> None:
    names = ["a b", "a-b", "a_b", "a.b"]
    assert spelled(names, AVRO) == spelled(names[::-1], AVRO)
    assert spelled(["a.b", "a-b"], TOPIC) == {"a.b": "a_b", "a-b": "a-b"}
