"""Sums of row digests in SQL: what is equal need not leave the source."""

from __future__ import annotations

from tidegate.connectors.postgres import types
from tidegate.names import quote_sql
from tidegate.schema.row_text import DIGEST_HEX, NULL, SEPARATOR
from tidegate.schema.table import Column, TableSchema
from tidegate.schema.types import Kind


def checksum_sql(schema: TableSchema, from_sql: str, predicate: str) -> str:
    """One row: the number of rows and the sum of their digests."""
    parts = ", ".join(_text(column) for column in schema.columns)
    row = f"convert_to(concat_ws(chr({SEPARATOR}), {parts}), 'UTF8')"
    digest = f"encode(substr(sha256({row}), 1, {DIGEST_HEX // 2}), 'hex')"
    number = f"('x' || {digest})::bit({DIGEST_HEX * 4})::bigint"
    return f"SELECT count(*), coalesce(sum({number}), 0) FROM {from_sql} WHERE {predicate}"


def _text(column: Column) -> str:
    name, text = quote_sql(column.name), types.text_expression(column)
    match column.type.kind:
        case Kind.INT | Kind.LONG:
            text = f"{name}::text"
        case Kind.FLOAT:
            text = f"encode(float4send({name}::float4), 'hex')"
        case Kind.DOUBLE:
            text = f"encode(float8send({name}::float8), 'hex')"
        case Kind.STRING:
            text = f"length({text}) || ':' || {text}"
    return f"coalesce({text}, '{NULL}')"
