"""Columns in lake terms, and the one text that triggers and sweeps both print (I6)."""

from __future__ import annotations

import sqlite3

from tidegate.errors import ConfigError
from tidegate.names import TableId, quote_sql
from tidegate.schema.table import Column, TableSchema
from tidegate.schema.types import STRING, Kind, LogicalType, Policy, TextRule


def discover(connection: sqlite3.Connection, table: TableId) -> TableSchema:
    """The table's columns from the live catalog."""
    found = connection.execute(
        'SELECT name, type, "notnull", pk FROM pragma_table_info(?, ?)', (table.name, table.schema)
    ).fetchall()
    if not found:
        raise ConfigError(
            "source.table_missing",
            f"table {table} does not exist",
            hint="check source.tables; SQLite's own schema is called main",
        )
    return TableSchema(table, tuple(_column(*row) for row in found))


def _column(name: str, declared: str, required: int, place: int) -> Column:
    type_, rule = _mapped(declared.upper())
    key = place - 1 if place else None
    nullable = not required and key is None
    return Column(name, declared or "any", type_, rule, Policy.REJECT, nullable, key)


def _mapped(declared: str) -> tuple[LogicalType, TextRule]:
    """SQLite's rules of affinity; NUMERIC may hold anything, so it stays text."""
    if "INT" in declared:
        return LogicalType(Kind.LONG), TextRule.PG_NUMBER
    if any(word in declared for word in ("CHAR", "CLOB", "TEXT")):
        return STRING, TextRule.PLAIN
    if "BLOB" in declared:
        return LogicalType(Kind.BINARY), TextRule.PG_BYTEA
    if any(word in declared for word in ("REAL", "FLOA", "DOUB")):
        return LogicalType(Kind.DOUBLE), TextRule.PG_NUMBER
    return STRING, TextRule.PLAIN


def text_expression(column: Column, row: str = "") -> str:
    """A value's text; ``row`` is ``NEW.`` or ``OLD.`` in a trigger. NULL stays NULL."""
    name = f"{row}{quote_sql(column.name)}"
    if column.type.kind is Kind.BINARY:
        return f"CASE WHEN {name} IS NOT NULL THEN '\\x' || lower(hex({name})) END"
    if column.type.kind is Kind.DOUBLE:  # seventeen digits bring back the same number
        return (
            f"CASE typeof({name}) WHEN 'real' THEN replace(printf('%!.17g', {name}), 'Inf',"
            f" 'Infinity') ELSE CAST({name} AS TEXT) END"
        )
    return f"CAST({name} AS TEXT)"


def literal(column: Column, text: str) -> str:
    """A key's text as SQL."""
    if column.type.kind is Kind.LONG:
        return str(int(text))
    quoted = text.replace("'", "''")
    return f"'{quoted}'"
