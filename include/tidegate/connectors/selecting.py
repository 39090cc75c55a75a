"""Parts of a table at a shared cut, asked for and summed up by the source itself."""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple, Protocol

from tidegate.names import TableId
from tidegate.schema.keyspace import Arcs, Ranges
from tidegate.schema.table import Column, TableSchema


class Checksum(NamedTuple):
    """Rows, and the sum of the digests of their texts (``schema.row_text``)."""

    rows: int
    total: int


class Selecting(Protocol):
    """What a shared cut can say about parts of a table: what comparing needs. No predicate holds a
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

    def checksum(
        self, table: TableId, schema: TableSchema, plain: frozenset[str], predicate: str
    ) -> Checksum | None:
        """The rows that ``predicate`` lets through; None where a column has no common text.

        ``plain`` columns of this cut's survey hold no value that the lake prints otherwise.
        """
        ...
