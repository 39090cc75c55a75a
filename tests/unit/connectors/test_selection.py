"""Parts of a table in PostgreSQL's SQL: they hold no value of it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest

from tidegate.connectors.postgres.checksum import checksum_sql
from tidegate.connectors.postgres.selection import interval_sql, keys_sql
from tidegate.names import TableId
from tidegate.schema.keyspace import PLACES
from tidegate.schema.row_text import has_row_text
from tidegate.schema.table import Column, TableSchema
from tidegate.schema.types import Kind, LogicalType, TextRule


def column(name: str, kind: Kind, key: int | None = None, *, recast: bool = False) -> Column:
    return Column(name, "text", LogicalType(kind), TextRule.PLAIN, key=key, recast=recast)


def table(*columns: Column) -> TableSchema:
    return TableSchema(TableId("public", "t"), columns)


def test_keys_are_picked_between_the_edges_of_their_places() -> None:
    schema = table(column("id", Kind.LONG, 0), column('o"dd', Kind.STRING, 1))
    sql = keys_sql(schema, ((16, 32), (64, PLACES)))
    assert sql == (
        'width_bucket(sha256(convert_to(concat_ws(chr(31), "id", "o""dd"), \'UTF8\')),'
        " ARRAY[decode('0010', 'hex'), decode('0020', 'hex'), decode('0040', 'hex')]::bytea[])"
        " % 2 = 1"
    )


@pytest.mark.parametrize(
    "key",
    [
        column("at", Kind.TIMESTAMP, 0),
        column("n", Kind.LONG, 0, recast=True),
        column("x", Kind.INT),
    ],
    ids=["time", "recast", "no key"],
)
def test_keys_the_lake_prints_otherwise_are_not_picked_by_the_source(key: Column) -> None:
    assert keys_sql(table(key), ((0, 1),)) is None


def test_an_interval_is_read_in_utc() -> None:
    start = datetime(2026, 3, 1, 2, tzinfo=timezone(timedelta(hours=2)))
    end = datetime(2026, 3, 2, tzinfo=UTC)
    assert interval_sql(column("at", Kind.TIMESTAMPTZ), start, end) == (
        "(\"at\" >= '2026-03-01 00:00:00+00'::timestamptz"
        " AND \"at\" < '2026-03-02 00:00:00+00'::timestamptz)"
    )
    assert "::timestamp AND" in interval_sql(column("day", Kind.DATE), start, end)


def test_rows_have_a_common_text_unless_a_column_has_none() -> None:
    at = column("at", Kind.TIMESTAMP)
    assert has_row_text(table(column("id", Kind.INT, 0), at), frozenset({"at"}))
    assert not has_row_text(table(column("id", Kind.INT, 0), at), frozenset())
    assert not has_row_text(table(column("tags", Kind.LIST)), frozenset({"tags"}))
    sql = checksum_sql(table(column("id", Kind.INT, 0), column("note", Kind.STRING)), "t", "true")
    assert """coalesce("id"::text, '~')""" in sql
    assert """coalesce(length("note"::text) || ':' || "note"::text, '~')""" in sql
