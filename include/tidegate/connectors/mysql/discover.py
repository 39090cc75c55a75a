"""A table's columns as the live catalog has them, in the words of the log's own description."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Final

from tidegate.connectors.mysql.charsets import BINARY
from tidegate.connectors.mysql.connection import Connection, query
from tidegate.connectors.mysql.types import BLOBS, SUPPORTED, TEXTS, ColumnFacts, column
from tidegate.errors import ConfigError
from tidegate.names import TableId
from tidegate.schema.table import TableSchema

_COLUMNS_SQL: Final = """
SELECT column_name, data_type, column_type, is_nullable, character_maximum_length,
       numeric_precision, numeric_scale, datetime_precision, character_set_name
FROM information_schema.columns
WHERE table_schema = %s AND table_name = %s ORDER BY ordinal_position
"""
_KEY_SQL: Final = """
SELECT column_name FROM information_schema.statistics
WHERE table_schema = %s AND table_name = %s AND index_name = 'PRIMARY' ORDER BY seq_in_index
"""
_TABLE_SQL: Final = """
SELECT table_type, engine FROM information_schema.tables
WHERE table_schema = %s AND table_name = %s
"""
_LABEL: Final = re.compile(r"'((?:[^']|'')*)'")
_NUMERIC_NAMES: Final = {"integer": "int", "numeric": "decimal", "real": "double"}
_GEOMETRIES: Final = frozenset(
    {
        "geometry",
        "point",
        "linestring",
        "polygon",
        "multipoint",
        "multilinestring",
        "multipolygon",
        "geometrycollection",
        "geomcollection",
    }
)
_PRECISE: Final = frozenset({"decimal", "bit"})
_TIMED: Final = frozenset({"time", "datetime", "timestamp"})


@dataclass(frozen=True, slots=True)
class Relation:
    """A table of the source."""

    table: TableId
    kind: str  # BASE TABLE | VIEW | …
    engine: str | None
    columns: tuple[ColumnFacts, ...]
    declared: dict[str, str]  # column → its type as the source writes it

    @property
    def key(self) -> tuple[str, ...]:
        keyed = [c for c in self.columns if c.key is not None]
        return tuple(c.name for c in sorted(keyed, key=lambda c: c.key or 0))


def relation(connection: Connection, table: TableId) -> Relation | None:
    """None if there is no such table (or none that we may see)."""
    found = query(connection, _TABLE_SQL, table)
    if not found:
        return None
    keys = {str(row[0]): at for at, row in enumerate(query(connection, _KEY_SQL, table))}
    rows = query(connection, _COLUMNS_SQL, table)
    facts = tuple(_facts(row, keys) for row in rows)
    declared = {str(row[0]): str(row[2]) for row in rows}
    return Relation(table, str(found[0][0]), found[0][1], facts, declared)


def discover(connection: Connection, table: TableId) -> TableSchema:
    """The table's columns as the log sends them."""
    schema = live(connection, table)
    if schema is None:
        raise ConfigError(
            "source.table_missing",
            f"table {table} does not exist, or may not be read",
            hint="check source.tables and `tidegate validate`",
        )
    return schema


def live(connection: Connection, table: TableId) -> TableSchema | None:
    found = relation(connection, table)
    if found is None:
        return None
    odd = [c.name for c in found.columns if c.base not in SUPPORTED]
    if odd:
        raise ConfigError(
            "source.type",
            f"{table}: the type of {', '.join(odd)} is not supported yet",
            hint="`tidegate validate` says what to do about each column",
        )
    return TableSchema(table, tuple(column(facts) for facts in found.columns))


def _facts(row: tuple[Any, ...], keys: dict[str, int]) -> ColumnFacts:
    name, data_type, declared, nullable, length, precision, scale, fraction, charset = row
    base = str(data_type).lower()
    base = "geometry" if base in _GEOMETRIES else _NUMERIC_NAMES.get(base, base)
    if charset is None and base in ("char", "varchar"):
        charset = BINARY
    if base in _TIMED:
        precision = fraction
    elif base not in _PRECISE:
        precision = 0
    sized = length is not None and base not in (*TEXTS, *BLOBS, "enum", "set")
    labels = _labels(str(declared)) if base in ("enum", "set") else ()
    return ColumnFacts(
        name=str(name),
        base=base,
        unsigned="unsigned" in str(declared).lower() and base not in ("enum", "set"),
        precision=int(precision or 0),
        scale=int(scale or 0) if base == "decimal" else 0,
        length=int(length) if sized else 0,
        charset=str(charset) if charset else _implied(base),
        labels=labels,
        nullable=str(nullable) == "YES",
        key=keys.get(str(name)),
    )


def _implied(base: str) -> str | None:
    return BINARY if base in ("binary", "varbinary", *BLOBS) else None


def _labels(declared: str) -> tuple[str, ...]:
    return tuple(label.replace("''", "'") for label in _LABEL.findall(declared))
