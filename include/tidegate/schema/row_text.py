"""One text per row, the same at the source and in the lake, so that sums of digests compare.

Columns are joined by the unit separator; NULL is ``~``; a string is preceded by its length in
characters and a colon, so that no two rows have one text. Numbers, times and bytes print as
PostgreSQL prints them (UTC, ISO, hex); a float is its bits in hex, for its digits are printed
differently everywhere. Lists have no such text.
"""

from __future__ import annotations

from typing import Final

from tidegate.schema.table import TableSchema
from tidegate.schema.types import Kind

SEPARATOR: Final = 31
NULL: Final = "~"
DIGEST_HEX: Final = 16
"""Digits of the SHA-256 that are summed: 64 bits, taken as a signed number."""

ALWAYS: Final = frozenset(
    {
        Kind.BOOLEAN,
        Kind.INT,
        Kind.LONG,
        Kind.FLOAT,
        Kind.DOUBLE,
        Kind.STRING,
        Kind.BINARY,
    }
)
IF_PLAIN: Final = frozenset({Kind.DATE, Kind.TIMESTAMP, Kind.TIMESTAMPTZ, Kind.DECIMAL})


def has_row_text(schema: TableSchema, plain: frozenset[str]) -> bool:
    """Whether every column prints alike on both sides; ``plain`` ones hold no special values."""
    return all(
        not column.recast
        and (column.type.kind in ALWAYS or (column.type.kind in IF_PLAIN and column.name in plain))
        for column in schema.columns
    )
