"""Parts of a table as predicates that hold no row value: by the place of a key, by time."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from tidegate.connectors.mysql import types
from tidegate.connectors.selecting import arc_edges, placed_alike
from tidegate.names import quote_sql
from tidegate.schema.keyspace import SEPARATOR, Arcs
from tidegate.schema.table import Column, TableSchema


def keys_sql(schema: TableSchema, arcs: Arcs) -> str | None:
    """Keys whose place lies in ``arcs``; None for keys whose text the lake prints otherwise."""
    edges = arc_edges(arcs)
    if not placed_alike(schema):
        return None
    if not edges:
        return "false"
    digest = digest_sql(SEPARATOR, [types.text_expression(key) for key in schema.key_columns])
    place = f"CONV(LEFT({digest}, 4), 16, 10)"
    # One hash and one binary search per row.
    return f"INTERVAL(CAST({place} AS SIGNED), {', '.join(map(str, edges))}) % 2 = 1"


def interval_sql(column: Column, start: datetime, end: datetime) -> str:
    """``column`` in [start, end). Sessions are in UTC (settings.PINNED)."""
    name = quote_sql(column.name)
    low, high = (
        f"TIMESTAMP'{moment.astimezone(UTC).replace(tzinfo=None).isoformat(' ')}'"
        for moment in (start, end)
    )
    return f"({name} >= {low} AND {name} < {high})"


def digest_sql(separator: int, texts: Sequence[str]) -> str:
    """The SHA-256 of texts in hex. As bytes: texts of several collations cannot be joined."""
    parts = ", ".join(f"CAST({text} AS BINARY)" for text in texts)
    return f"SHA2(CONCAT_WS(X'{separator:02X}', {parts}), 256)"
