"""Sums of row digests in SQL: what is equal need not leave the source."""

from __future__ import annotations

from typing import Final

from tidegate.connectors.mysql import types
from tidegate.connectors.mysql.selection import digest_sql
from tidegate.names import TableId, quote_sql
from tidegate.schema.row_text import DIGEST_HEX, NULL, SEPARATOR
from tidegate.schema.table import Column, TableSchema
from tidegate.schema.types import Kind

_NO_TEXT: Final = frozenset({Kind.FLOAT, Kind.DOUBLE})
"""There is no function for a float's bits."""


def has_text(schema: TableSchema) -> bool:
    return not any(column.type.kind in _NO_TEXT for column in schema.columns)


def checksum_sql(schema: TableSchema, table: TableId, predicate: str) -> str:
    """One row: the number of rows and the sum of their digests."""
    texts = [f"COALESCE({_text(column)}, '{NULL}')" for column in schema.columns]
    digest = digest_sql(SEPARATOR, texts)
    number = f"CAST(CONV(LEFT({digest}, {DIGEST_HEX}), 16, -10) AS SIGNED)"
    return f"SELECT COUNT(*), COALESCE(SUM({number}), 0) FROM {table.sql} WHERE {predicate}"


def _text(column: Column) -> str:
    text = types.text_expression(column)
    match column.type.kind:
        case Kind.STRING:
            return f"CONCAT(CHAR_LENGTH({text}), ':', {text})"
        case Kind.TIMESTAMP | Kind.TIMESTAMPTZ if "(" in column.source_type:
            # The lake prints no zeros at the end of a second's fraction.
            bare = f"CAST({quote_sql(column.name)} AS CHAR)"
            short = f"TRIM(TRAILING '.' FROM TRIM(TRAILING '0' FROM {bare}))"
            return f"CONCAT({short}, '+00')" if column.type.kind is Kind.TIMESTAMPTZ else short
    return text
