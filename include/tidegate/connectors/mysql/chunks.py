"""How a table is divided among the tasks that read it: ranges of its primary key.

The edges are found by walking the key's index in steps, so that no row is sorted and no more than
one pass over the index is made. Ranges mean the same rows at any later moment: a sweep can resume.
"""

from __future__ import annotations

import hashlib
import itertools
from typing import Final

from tidegate.connectors.cut import Chunk
from tidegate.connectors.mysql import types
from tidegate.connectors.mysql.connection import Connection, query
from tidegate.names import TableId, quote_sql
from tidegate.schema.table import Column, TableSchema
from tidegate.schema.types import Kind

WHOLE: Final = "1 = 1"
_NUMBERS: Final = frozenset({Kind.INT, Kind.LONG, Kind.DECIMAL})

Key = tuple[str, ...]


def by_key(
    connection: Connection,
    table: TableId,
    schema: TableSchema,
    chunk_rows: int,
    after: Key | None,
) -> list[Chunk]:
    """Ranges in key order; the last one may be smaller than the others, or empty."""
    keys = schema.key_columns
    edges: list[Key | None] = [after]
    while (edge := _step(connection, table, keys, edges[-1], chunk_rows)) is not None:
        edges.append(edge)
    edges.append(None)
    return [_range(keys, low, high, chunk_rows) for low, high in itertools.pairwise(edges)]


def _step(
    connection: Connection, table: TableId, keys: tuple[Column, ...], low: Key | None, rows: int
) -> Key | None:
    texts = ", ".join(_text(key) for key in keys)
    order = ", ".join(quote_sql(key.name) for key in keys)
    where = at_least(keys, low) if low else WHOLE
    found = query(
        connection,
        f"SELECT {texts} FROM {table.sql} WHERE {where} ORDER BY {order} LIMIT 1 OFFSET {rows}",
    )
    return tuple(str(value) for value in found[0]) if found else None


def _range(keys: tuple[Column, ...], low: Key | None, high: Key | None, rows: int) -> Chunk:
    conditions = [at_least(keys, low)] if low else []
    if high:
        conditions.append(f"NOT {at_least(keys, high)}")
        # An index is found by a plain comparison only.
        conditions.append(f"{quote_sql(keys[0].name)} <= {_literal(keys[0], high[0])}")
    digest = hashlib.sha256(repr((low, high)).encode()).hexdigest()[:12]
    return Chunk(f"key-{digest}", " AND ".join(conditions) or WHOLE, low, high, rows)


def at_least(keys: tuple[Column, ...], low: Key) -> str:
    """``(a, b) >= (x, y)`` in a form that finds an index."""
    terms: list[str] = []
    for last in range(len(keys)):
        equal = [
            f"{quote_sql(key.name)} = {_literal(key, value)}"
            for key, value in zip(keys[:last], low[:last], strict=True)
        ]
        sign = ">=" if last == len(keys) - 1 else ">"
        more = f"{quote_sql(keys[last].name)} {sign} {_literal(keys[last], low[last])}"
        terms.append(" AND ".join((*equal, more)))
    wide = f"{quote_sql(keys[0].name)} >= {_literal(keys[0], low[0])}"
    return f"({wide} AND ({' OR '.join(f'({term})' for term in terms)}))"


def _text(key: Column) -> str:
    if key.type.kind is Kind.BINARY:
        return f"HEX({quote_sql(key.name)})"
    if key.source_type.startswith("timestamp"):
        return f"CAST({quote_sql(key.name)} AS CHAR)"
    return types.text_expression(key)


def _literal(key: Column, value: str) -> str:
    if key.type.kind in _NUMBERS:
        return value
    if key.type.kind is Kind.BINARY:
        return f"X'{value}'"
    if key.source_type == "bit(1)":
        return "1" if value == "t" else "0"
    return "'" + value.replace("'", "''") + "'"  # NO_BACKSLASH_ESCAPES (settings.PINNED)
