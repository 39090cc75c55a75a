"""A table's columns as the live catalog has them, in the words of the log's own description."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from typing import Any, Final

import pymysql

from tidegate.connectors.mysql.charsets import BINARY
from tidegate.connectors.mysql.connection import Connection, is_mariadb, query
from tidegate.connectors.mysql.types import BLOBS, INTEGERS, SUPPORTED, TEXTS, ColumnFacts, column
from tidegate.errors import ConfigError
from tidegate.names import TableId
from tidegate.schema.table import TableSchema

_COLUMNS_SQL: Final = """
SELECT column_name, data_type, column_type, is_nullable, character_maximum_length,
       numeric_precision, numeric_scale, datetime_precision, character_set_name,
       column_default, extra, collation_name
FROM information_schema.columns
WHERE table_schema = %s AND table_name = %s ORDER BY ordinal_position
"""
_KEY_SQL: Final = """
SELECT column_name FROM information_schema.statistics
WHERE table_schema = %s AND table_name = %s AND index_name = 'PRIMARY' ORDER BY seq_in_index
"""
_TABLE_SQL: Final = """
SELECT table_type, engine, create_time FROM information_schema.tables
WHERE table_schema = %s AND table_name = %s
"""
_ABSENT_SQL: Final = """
SELECT column_name, data_type, is_nullable, column_default, extra
FROM information_schema.columns WHERE table_schema = %s AND table_name = %s
"""
_DESCRIBED: Final = 9
"""Columns of that which a row's description takes; the others only tell whether it is another."""
_PLAIN_DEFAULTS: Final = frozenset({*INTEGERS, "decimal", "char", "varchar", "enum", "set"})
"""Types of which a constant default reads in the catalog as the log prints a value."""
_NUMBER: Final = re.compile(r"-?\d+(\.\d+)?")
_LABEL: Final = re.compile(r"'((?:[^']|'')*)'")
_ESCAPED: Final = re.compile(r"\\([0nr\\])")
_PLAIN: Final = {"0": "\0", "n": "\n", "r": "\r", "\\": "\\"}
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
INNODB: Final = "innodb"
_PRECISE: Final = frozenset({"decimal", "bit"})
_TIMED: Final = frozenset({"time", "datetime", "timestamp"})


NO_SUCH_TABLE: Final = 1146
"""Told only to who may read what has the name."""


@dataclass(frozen=True, slots=True)
class Relation:
    """A table of the source."""

    table: TableId
    kind: str  # BASE TABLE | VIEW | …
    engine: str | None
    columns: tuple[ColumnFacts, ...]
    declared: dict[str, str]  # column → its type as the source writes it
    digest: str  # of all that the catalog says of its columns, and of when its files were made

    @property
    def undoes(self) -> bool:
        """Whether its engine takes back what a rolled-back transaction did."""
        return (self.engine or "").lower() == INNODB

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
    facts = tuple(_facts(row[:_DESCRIBED], keys) for row in rows)
    declared = {str(row[0]): str(row[2]) for row in rows}
    digest = hashlib.sha256(repr((found, keys, rows)).encode()).hexdigest()[:16]
    return Relation(table, str(found[0][0]), found[0][1], facts, declared, digest)


def discover(connection: Connection, table: TableId) -> TableSchema:
    """The table's columns as the log sends them."""
    try:
        check_readable(connection, table)
    except pymysql.MySQLError as error:
        if error.args[0] != NO_SUCH_TABLE:
            raise
        raise _missing(table) from None
    schema = live(connection, table)
    if schema is None:
        raise _missing(table)
    return schema


def _missing(table: TableId) -> ConfigError:
    return ConfigError(
        "source.table_missing",
        f"table {table} does not exist",
        hint="check source.tables and `tidegate validate`",
    )


def check_readable(connection: Connection, table: TableId) -> None:
    """Raise the server's own error. Its catalog only has columns that the user may see: without
    the others a sweep would bring rows that lack them."""
    query(connection, f"SELECT * FROM {table.sql} LIMIT 0")


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


def transactional(connection: Connection, table: TableId) -> bool:
    """Whether its engine takes back what a rolled-back transaction did; a table that is gone has
    no rows that could stay."""
    found = query(connection, _TABLE_SQL, table)
    return not found or str(found[0][1]).lower() == INNODB


@dataclass(frozen=True, slots=True)
class Absent:
    """What a column has in a row that was logged without it."""

    inserted: dict[str, str | None]  # columns whose default is a constant, and what it is
    computed: frozenset[str]  # generated on reading: they may have changed all the same


def absent(connection: Connection, table: TableId) -> Absent:
    inserted: dict[str, str | None] = {}
    computed: set[str] = set()
    quotes = is_mariadb(connection)  # a constant text has them there; MySQL marks expressions
    for name, data_type, nullable, default, extra in query(connection, _ABSENT_SQL, table):
        if "GENERATED" in str(extra).upper().replace("DEFAULT_GENERATED", ""):
            if quotes and "VIRTUAL" in str(extra).upper():  # MySQL sends those that changed
                computed.add(str(name))
        elif default is None or (quotes and default == "NULL"):
            if str(nullable) == "YES":
                inserted[str(name)] = None
        elif str(data_type).lower() in _PLAIN_DEFAULTS and "DEFAULT_GENERATED" not in str(extra):
            text = _constant(str(default)) if quotes else str(default)
            if text is not None:
                inserted[str(name)] = text
    return Absent(inserted, frozenset(computed))


def _constant(default: str) -> str | None:
    if _NUMBER.fullmatch(default):
        return default
    quoted = _LABEL.fullmatch(default)
    return quoted[1].replace("''", "'") if quoted and "\\" not in default else None


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
    """As the server writes them in a type: some characters behind a backslash."""
    return tuple(
        _ESCAPED.sub(lambda found: _PLAIN[found[1]], label.replace("''", "'"))
        for label in _LABEL.findall(declared)
    )
