"""Values that are larger than Tidegate takes, found before a sweep reads them: their rows become
dead letters without them.

Measuring every value would cost a pass over the table, so the size of what is stored out of line is
asked first: most tables have nothing there that could be so large.
"""

from __future__ import annotations

from typing import Final

from tidegate.connectors.postgres.connection import Connection
from tidegate.names import TableId, quote_sql
from tidegate.schema.table import Column, TableSchema
from tidegate.schema.types import Kind

COMPRESSION: Final = 256
"""No value shrinks to less than this share of itself (pglz and lz4 stay below 255 to 1)."""

_PRINTED: Final = 40
"""What a stored byte becomes at most: eight NULL elements of an array are five characters each."""

_STORED_SQL: Final = """
SELECT coalesce(max(pg_catalog.pg_relation_size(c.reltoastrelid)), 0)
FROM pg_catalog.pg_class c
WHERE c.reltoastrelid <> 0
  AND c.oid IN (SELECT relid FROM pg_catalog.pg_partition_tree(%s::regclass)
                UNION SELECT %s::regclass)
"""
_WIDE: Final = frozenset({Kind.STRING, Kind.BINARY, Kind.LIST, Kind.VARIANT})


def too_large(
    connection: Connection, table: TableId, schema: TableSchema, from_sql: str, most: int
) -> dict[str, int]:
    """Per column, in how many rows of ``table`` its value has more than ``most`` bytes, as text."""
    columns = [column for column in schema.columns if column.type.kind in _WIDE]
    stored = connection.execute(_STORED_SQL, (table.sql, table.sql)).fetchone() or (0,)
    if not columns or int(stored[0]) <= _few(most):
        return {}
    counts = ", ".join(f"count(*) FILTER (WHERE {exceeds(c, most)})" for c in columns)
    row = connection.execute(f"SELECT {counts} FROM {from_sql}".encode()).fetchone() or ()
    return {c.name: count for c, count in zip(columns, row, strict=True) if count}


def exceeds(column: Column, most: int) -> str:
    """Whether a value has more than ``most`` bytes; never NULL. What is stored in few bytes is not
    printed to be measured."""
    stored = f"pg_column_size({quote_sql(column.name)})"
    return f"CASE WHEN {stored} > {_few(most)} THEN {_size(column)} > {most} ELSE false END"


def _few(most: int) -> int:
    """Stored bytes that cannot become more than ``most``."""
    return most // (COMPRESSION * _PRINTED)


def stand_in(column: Column) -> str:
    """What a comparison reads in place of a value that is too large: small, and like no other."""
    name = quote_sql(column.name)
    if column.type.kind is Kind.BINARY:
        return f"sha256({name})"
    if column.type.kind is Kind.VARIANT:
        return f"to_jsonb('too large: ' || md5({name}::text))::text"
    return f"'too large: ' || md5({name}::text)"


def _size(column: Column) -> str:
    """Bytes of the value's text; of text and bytea it is known without reading them."""
    name = quote_sql(column.name)
    if column.type.kind is Kind.BINARY:
        return f"2 + 2 * octet_length({name})"
    return f"octet_length({name}::text)"
