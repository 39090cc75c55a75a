"""What MySQL and MariaDB print for their rows: the measure of every comparison."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from tidegate.schema.types import Kind, LogicalType
from tidegate.testing.conformance.canonical import Row, expected

_SETTINGS: Final = "time_zone = '+00:00', sql_mode = 'NO_BACKSLASH_ESCAPES'"
"""Said once more here, and not taken from the product: what is tested is not the judge."""

_NUMBERS: Final = frozenset({Kind.INT, Kind.LONG, Kind.DECIMAL})
_MOMENTS: Final = frozenset({Kind.TIMESTAMP, Kind.TIMESTAMPTZ})


def source_rows(
    connection: Any, table: str, columns: Sequence[tuple[str, LogicalType]]
) -> list[Row]:
    """Every row, in the words of :mod:`canonical`."""
    selected = ", ".join(_expression(name, type_.kind) for name, type_ in columns)
    with connection.cursor() as cursor:
        cursor.execute(f"SET {_SETTINGS}")
        cursor.execute(f"SELECT {selected} FROM {table}")
        rows = cursor.fetchall()
    return [
        tuple(
            expected(type_, _canonical(type_.kind, value))
            for (_, type_), value in zip(columns, row, strict=True)
        )
        for row in rows
    ]


def _expression(name: str, kind: Kind) -> str:
    column = "`" + name.replace("`", "``") + "`"
    if kind is Kind.BINARY:
        return f"CONCAT('\\x', LOWER(HEX({column})))"
    if kind is Kind.BOOLEAN:
        return f"IF({column} IS NULL, NULL, IF({column} + 0, 't', 'f'))"
    if kind in _NUMBERS:  # bits are numbers here, and zerofill is an ornament
        return f"CAST({column} + 0 AS CHAR)"
    if kind in (Kind.FLOAT, Kind.DOUBLE):
        return f"CAST({column} AS DOUBLE)"
    return f"CAST({column} AS CHAR CHARACTER SET utf8mb4)"


def _canonical(kind: Kind, value: Any) -> str | None:
    if value is None:
        return None
    text = value.decode() if isinstance(value, bytes) else str(value)
    if kind in _MOMENTS:
        text = text.rstrip("0").rstrip(".") if "." in text else text
        text += "+00" if kind is Kind.TIMESTAMPTZ else ""
    return text
