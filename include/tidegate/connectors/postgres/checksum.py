"""Sums of row digests in SQL: what is equal need not leave the source."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from tidegate.connectors.postgres import types
from tidegate.names import quote_sql
from tidegate.schema.row_text import DIGEST_HEX, NULL, SEPARATOR
from tidegate.schema.table import Column, TableSchema
from tidegate.schema.types import Kind

_MOST: Final = 50
"""Texts joined by one call: PostgreSQL passes at most 100 arguments to a function, and a table has
at most 1,600 columns."""


def checksum_sql(schema: TableSchema, from_sql: str, predicate: str) -> str:
    """One row: the number of rows and the sum of their digests."""
    row = f"convert_to({_joined([_text(column) for column in schema.columns])}, 'UTF8')"
    digest = f"encode(substr(sha256({row}), 1, {DIGEST_HEX // 2}), 'hex')"
    number = f"('x' || {digest})::bit({DIGEST_HEX * 4})::bigint"
    return f"SELECT count(*), coalesce(sum({number}), 0) FROM {from_sql} WHERE {predicate}"


def _joined(texts: Sequence[str]) -> str:
    """The texts, none of them NULL, with separators between: in groups, and the groups alike."""
    while len(texts) > _MOST:
        texts = [_joined(texts[at : at + _MOST]) for at in range(0, len(texts), _MOST)]
    return f"concat_ws(chr({SEPARATOR}), {', '.join(texts)})"


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
