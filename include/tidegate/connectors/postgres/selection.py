"""Parts of a table as predicates that hold no row value: by the place of a key, by time."""

from __future__ import annotations

from datetime import UTC, datetime

from tidegate.connectors.selecting import arc_edges, placed_alike
from tidegate.names import quote_sql
from tidegate.schema.keyspace import SEPARATOR, Arcs
from tidegate.schema.table import Column, TableSchema
from tidegate.schema.types import Kind


def keys_sql(schema: TableSchema, arcs: Arcs) -> str | None:
    """Keys whose place lies in ``arcs``; None for keys whose text the lake prints otherwise."""
    if not placed_alike(schema):
        return None
    # concat_ws() prints by output functions, as the log does. The lake hashes UTF-8.
    names = ", ".join(quote_sql(key.name) for key in schema.key_columns)
    place = f"sha256(convert_to(concat_ws(chr({SEPARATOR}), {names}), 'UTF8'))"
    # Inside an arc after an odd number of its edges: one hash and one binary search per row.
    listed = ", ".join(f"decode('{edge:04x}', 'hex')" for edge in arc_edges(arcs))
    return f"width_bucket({place}, ARRAY[{listed}]::bytea[]) % 2 = 1"


def ordered_sql(column: Column) -> str:
    """Text is compared by bytes, as the lake does."""
    name = quote_sql(column.name)
    return f'{name}::text COLLATE "C"' if column.type.kind is Kind.STRING else name


def interval_sql(column: Column, start: datetime, end: datetime) -> str:
    """``column`` in [start, end). Dates compare with timestamps directly, by index too."""
    zoned = column.type.kind is Kind.TIMESTAMPTZ
    kind = "timestamptz" if zoned else "timestamp"
    name = quote_sql(column.name)
    low, high = (_literal(moment, zoned) for moment in (start, end))
    return f"({name} >= {low}::{kind} AND {name} < {high}::{kind})"


def _literal(moment: datetime, zoned: bool) -> str:
    text = moment.astimezone(UTC).replace(tzinfo=None).isoformat(" ")
    return f"'{text}{'+00' if zoned else ''}'"
