"""Parts of a table at a cut, asked for and summed up by the source itself."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime
from typing import TYPE_CHECKING, NamedTuple, Protocol

from tidegate.names import TableId
from tidegate.schema.keyspace import Arcs, Ranges
from tidegate.schema.table import Column, TableSchema

if TYPE_CHECKING:
    from tidegate.connectors.cut import Chunk


class Checksum(NamedTuple):
    """Rows, and the sum of the digests of their texts (``schema.row_text``)."""

    rows: int
    total: int


def lost_flag(slot: int) -> str:
    """The column that says whether the value of ``slot`` was left out (``text_sql``)."""
    return f"_cdc_lost{slot}"


class Selecting(Protocol):
    """What a cut can say about parts of a table. No predicate holds a row value (I9)."""

    def keys_sql(self, schema: TableSchema, arcs: Arcs) -> str | None:
        """A predicate for keys whose place (``schema.keyspace``) is in ``arcs``; None: cannot."""
        ...

    def span(self, table: TableId, column: Column) -> tuple[int, int] | None:
        """The lowest and the highest number in the first column of the key; None without rows."""
        ...

    def ranges_sql(self, column: Column, ranges: Ranges) -> str:
        """A predicate for numbers in ``ranges``, which the source's index of the key serves."""
        ...

    def ordered_sql(self, column: Column) -> str:
        """``column`` as an expression that compares as the lake does: text by its bytes."""
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

    def text_sql(
        self,
        table: TableId,
        schema: TableSchema,
        predicate: Chunk | str | None = None,
        *,
        too_large: Collection[str] = (),
    ) -> str:
        """Like ``Cut.select_sql``, every column as the log prints it: what a dead letter keeps.
        Of the columns ``too_large``, values that are so are NULL, and :func:`lost_flag` of their
        slots says which."""
        ...

    def too_large_sql(self, column: Column) -> str:
        """A predicate, never NULL: a row's value is larger than ``capture.max_value_bytes``."""
        ...
