"""Overrides and policies laid over a source's schema."""

from __future__ import annotations

from typing import Any

import pytest

from tidegate.config.pipeline import LakeTarget, PipelineConfig
from tidegate.errors import ConfigError
from tidegate.names import TableId
from tidegate.schema.contract import contracted, objections
from tidegate.schema.table import Column, TableSchema
from tidegate.schema.types import STRING, Kind, LogicalType, Policy, TextRule, parse_type

TABLE = TableId("public", "t")


def column(name: str, type_: str, rule: TextRule, key: int | None = None) -> Column:
    parsed = parse_type(type_)
    assert parsed is not None
    return Column(name, "anything", parsed, rule, key=key)


SCHEMA = TableSchema(
    TABLE,
    (
        column("k", "timestamptz", TextRule.PG_DATETIME, key=0),
        column("d", "date", TextRule.PG_DATETIME),
        column("n", "decimal(12,2)", TextRule.PG_NUMBER),
        column("free", "string", TextRule.PG_NUMBER),
        column("i", "int", TextRule.PG_NUMBER),
        column("f", "float", TextRule.PG_NUMBER),
        column("t", "string", TextRule.PLAIN),
        column("ds", "list<date>", TextRule.PG_ARRAY),
        column("ns", "list<int>", TextRule.PG_ARRAY),
    ),
)


def target(lake: dict[str, Any] | None = None, **table: Any) -> LakeTarget:
    iceberg = {**(lake or {}), "tables": {"public.t": table}}
    pipeline = PipelineConfig.model_validate(
        {
            "pipeline_id": "p",
            "source": {"password": "unused", "database": "d", "tables": ["public.t"]},
            "sinks": [{"sink_id": "lake", "sink_type": "iceberg", "iceberg": iceberg}],
        }
    )
    return pipeline.target(TABLE)


def found(name: str, lake: dict[str, Any] | None = None, **table: Any) -> Column:
    result = contracted(SCHEMA, target(lake, **table)).column(name)
    assert result is not None
    return result


@pytest.mark.parametrize(
    "text",
    ["int", "decimal(38,9)", "list<decimal(6,2)>", "timestamptz", "string", "variant"],
)
def test_types_read_as_they_print(text: str) -> None:
    assert str(parse_type(text)) == text


@pytest.mark.parametrize(
    "text",
    [
        "",
        "integer",
        "decimal",
        "decimal(39,0)",
        "decimal(5,6)",
        "list",
        "list<list<int>>",
        "list<variant>",
    ],
)
def test_other_texts_are_no_types(text: str) -> None:
    assert parse_type(text) is None


def test_defaults_clamp_dates_and_null_numbers_but_never_touch_keys() -> None:
    assert found("d").policy is Policy.CLAMP
    assert found("ds").policy is Policy.CLAMP
    assert found("n").policy is Policy.NULL
    assert found("i").policy is Policy.REJECT
    assert found("k").policy is Policy.REJECT


def test_the_column_wins_over_the_table_and_the_table_over_the_sink() -> None:
    sink = {"policies": {"datetime": "null"}}
    assert found("d", sink).policy is Policy.NULL
    assert found("d", sink, policies={"datetime": "reject"}).policy is Policy.REJECT
    own = {"d": {"policy": "clamp"}, "k": {"policy": "clamp"}}
    assert found("d", sink, policies={"datetime": "reject"}, columns=own).policy is Policy.CLAMP
    assert found("k", columns=own).policy is Policy.CLAMP


def test_the_policy_string_makes_the_column_text_and_keeps_lists() -> None:
    assert found("d", policies={"datetime": "string"}).type == STRING
    assert found("ds", policies={"datetime": "string"}).type == LogicalType(
        Kind.LIST, element=STRING
    )
    assert found("n", policies={"numeric": "string"}).recast
    assert not found("n").recast


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("t", "string"),
        ("i", "string"),
        ("i", "long"),
        ("i", "decimal(20,0)"),
        ("n", "decimal(38,9)"),
        ("free", "decimal(38,9)"),
        ("free", "long"),
        ("ns", "list<long>"),
        ("ns", "list<string>"),
        ("ns", "string"),
    ],
)
def test_what_can_become_what(name: str, wanted: str) -> None:
    assert str(found(name, columns={name: {"type": wanted}}).type) == wanted


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("t", "int"),
        ("f", "double"),
        ("d", "timestamp"),
        ("i", "int4"),
        ("i", "list<int>"),
        ("ns", "list<date>"),
        ("t", "variant"),
    ],
)
def test_what_cannot_is_refused_with_what_can(name: str, wanted: str) -> None:
    with pytest.raises(ConfigError, match=name) as caught:
        found(name, columns={name: {"type": wanted}})
    assert caught.value.code == "table.override"
    assert "string" in caught.value.hint


DOCUMENTS = TableSchema(
    TABLE,
    (
        Column("id", "jsonb", STRING, TextRule.PLAIN, key=0),
        Column("old", "json", STRING, TextRule.PLAIN),
        Column("doc", "jsonb", STRING, TextRule.PLAIN),
        Column("docs", "jsonb[]", LogicalType(Kind.LIST, element=STRING), TextRule.PG_ARRAY),
        Column("own", "document", STRING, TextRule.PLAIN),
    ),
)
VARIANT = {"type": "variant"}


@pytest.mark.parametrize("name", ["old", "doc"])
def test_json_can_be_variant_and_then_has_a_cast_of_its_own(name: str) -> None:
    column = contracted(DOCUMENTS, target(columns={name: VARIANT})).column(name)
    assert column is not None
    assert (str(column.type), column.recast, column.policy) == ("variant", True, Policy.REJECT)


@pytest.mark.parametrize(
    ("name", "lake", "code"),
    [
        ("id", {}, "table.variant_key"),
        ("doc", {"format_version": 2}, "table.variant_format"),
        ("doc", {"properties": {"format-version": "2"}}, "table.variant_format"),
        ("docs", {}, "table.override"),
        ("own", {}, "table.override"),
    ],
)
def test_a_variant_that_cannot_be_is_refused(name: str, lake: dict[str, Any], code: str) -> None:
    chosen = target(lake, columns={name: VARIANT})
    with pytest.raises(ConfigError, match=name) as caught:
        contracted(DOCUMENTS, chosen)
    assert caught.value.code == code
    assert len(list(objections(DOCUMENTS, chosen))) == 1


def test_rows_belong_to_no_interval_by_a_document() -> None:
    chosen = target(columns={"doc": VARIANT}, reload={"time_column": "doc"})
    assert ["neither" in line for line in objections(DOCUMENTS, chosen)] == [True]


def test_objections_name_every_wrong_override() -> None:
    wrong = {
        "missing": {"type": "string"},
        "t": {"policy": "clamp"},
        "n": {"policy": "clamp"},
        "f": {"type": "double"},
        "d": {"policy": "string"},
    }
    told = list(objections(SCHEMA, target(columns=wrong)))
    assert len(told) == 4
    assert "no such column" in told[0]
    assert "means nothing for string" in told[1]
    assert "no nearest number" in told[2]
    assert "cannot become double" in told[3]


@pytest.mark.parametrize(
    ("name", "says"), [("d", None), ("k", None), ("n", "neither"), ("ds", "neither"), ("x", "no")]
)
def test_rows_belong_to_an_interval_by_a_date_or_timestamp(name: str, says: str | None) -> None:
    wrong = list(objections(SCHEMA, target(reload={"time_column": name})))
    assert [says in line for line in wrong if says] == ([True] if says else [])
    assert bool(wrong) == bool(says)
