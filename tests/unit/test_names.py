"""Identifiers survive every spelling."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.errors import ConfigError
from tidegate.names import TableId, lake_part, lake_table, quote_spark, quote_sql

PARTS = st.text(st.characters(exclude_characters="\x00", exclude_categories=["Cs"]), min_size=1)


@given(PARTS, PARTS)
def test_a_table_name_reads_back_as_it_was_printed(schema: str, name: str) -> None:
    table = TableId(schema, name)
    assert TableId.parse(str(table)) == table


def test_a_bare_name_is_in_public() -> None:
    assert TableId.parse("orders") == TableId("public", "orders")


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("public.orders", ("public", "orders")),
        ('public."odd.name"', ("public", "odd.name")),
        ('"a""b".C', ('a"b', "C")),
        ("Shop.Orders", ("Shop", "Orders")),
    ],
)
def test_quoting(text: str, parts: tuple[str, str]) -> None:
    assert TableId.parse(text) == TableId(*parts)


@pytest.mark.parametrize("text", ["", "a.b.c", "a.", ".b", '"a', 'a"b"', '""."x"'])
def test_what_is_not_a_table_name_is_refused_with_the_way_to_write_it(text: str) -> None:
    with pytest.raises(ConfigError) as caught:
        TableId.parse(text)
    assert caught.value.code == "config.table_name"
    assert "schema.table" in caught.value.hint


def test_sql_and_spark_quoting_double_the_quote() -> None:
    assert quote_sql('a"b') == '"a""b"'
    assert quote_spark("n", "a`b") == "`n`.`a``b`"


def test_lake_names_keep_letters_of_any_script_and_replace_separators() -> None:
    assert lake_part("größe") == "größe"
    assert lake_part("a.b/c d") == "a_b_c_d"
    assert lake_table(TableId("s", "t.x"), "{schema}__{table}") == "s__t_x"
