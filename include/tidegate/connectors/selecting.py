"""Parts of a table at an exact cut, asked for and summed up by the source itself."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Final, NamedTuple, Protocol

from tidegate.names import TableId, quote_sql
from tidegate.schema.keyspace import PLACES, Arcs, Ranges
from tidegate.schema.table import Column, TableSchema
from tidegate.schema.types import Kind


class Checksum(NamedTuple):
    """Rows, and the sum of the digests of their texts (``schema.row_text``)."""

    rows: int
    total: int


_SAME_TEXT: Final = frozenset({Kind.INT, Kind.LONG, Kind.STRING})
"""Kinds whose text is, to the byte, the text of the lake's value."""


def placed_alike(schema: TableSchema) -> bool:
    """Whether the places of keys can be told at the source."""
    keys = schema.key_columns
    return bool(keys) and all(not k.recast and k.type.kind in _SAME_TEXT for k in keys)


def arc_edges(arcs: Arcs) -> list[int]:
    """A place lies inside an arc after an odd number of these."""
    return [edge for arc in arcs for edge in arc if edge < PLACES]


def ranges_sql(column: Column, ranges: Ranges) -> str:
    """Numbers in ``ranges``."""
    name = quote_sql(column.name)
    terms = [f"{name} BETWEEN {low} AND {high}" for low, high in ranges]
    return f"({' OR '.join(terms)})" if terms else "false"


class Selecting(Protocol):
    """What an exact cut can say about parts of a table: what comparing needs. No predicate holds a
    row value (I9)."""

    def keys_sql(self, schema: TableSchema, arcs: Arcs) -> str | None:
        """A predicate for keys whose place (``schema.keyspace``) is in ``arcs``; None: cannot."""
        ...

    def span(self, table: TableId, column: Column) -> tuple[int, int] | None:
        """The lowest and the highest number in the first column of the key; None without rows."""
        ...

    def ranges_sql(self, column: Column, ranges: Ranges) -> str:
        """A predicate for numbers in ``ranges``, which the source's index of the key serves."""
        ...

    def interval_sql(self, column: Column, start: datetime, end: datetime) -> str:
        """A predicate for ``column`` in [start, end); zoneless times are read as UTC."""
        ...

    def left_out(self, table: TableId) -> Mapping[str, str]:
        """Columns of the table that its log does not send, and why: nothing compares them."""
        ...

    def checksum(
        self, table: TableId, schema: TableSchema, plain: frozenset[str], predicate: str
    ) -> Checksum | None:
        """The rows that ``predicate`` lets through; None where a column has no common text.

        ``plain`` columns of this cut's survey hold no value that the lake prints otherwise.
        """
        ...
