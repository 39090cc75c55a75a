"""Columns that a sweep may read without going through text.

Dates, timestamps, decimals and arrays reach the lake as text, because JDBC has no infinity, BC or
NaN for them, and Spark no array of which the dimensions are not known. Such values are rare. One
pass over the table at the cut (the one that counts its rows) tells which columns have none; those
are read in binary form, which is exact and much cheaper (I6).
"""

from __future__ import annotations

import re
from typing import Final

from tidegate.connectors.postgres.types import PLAIN_SQL
from tidegate.names import quote_sql
from tidegate.schema.table import Column, TableSchema
from tidegate.schema.types import Kind

_SQL_TYPE: Final = {
    Kind.DATE: "date",
    Kind.TIMESTAMP: "timestamp",
    Kind.TIMESTAMPTZ: "timestamptz",
    Kind.DECIMAL: "numeric",
}

_WITHIN: Final = {
    # As days since 1970, so that no calendar or time zone of a JVM has a say.
    Kind.DATE: "min({0}) >= '0001-01-01' AND max({0}) <= '9999-12-31'",
    # Java's and Spark's calendars agree from 1900 on, in every time zone.
    Kind.TIMESTAMP: "min({0}) >= '1900-01-01' AND max({0}) < '10000-01-01'",
    Kind.TIMESTAMPTZ: "min({0}) >= '1900-01-01 00:00Z' AND max({0}) < '10000-01-01 00:00Z'",
    Kind.DECIMAL: "max({0}) <> 'NaN'",  # NaN sorts above every number
    # Of an empty array both are NULL.
    Kind.LIST: "bool_and(array_ndims({0}) = 1 AND array_lower({0}, 1) = 1)",
}

_ELEMENTS: Final = {**PLAIN_SQL, Kind.STRING: "text"}
_ARRAY: Final = re.compile(
    r"(boolean|smallint|integer|bigint|real|double precision"
    r"|text|character varying(\(\d+\))?)\[\]\Z"
)
"""Arrays whose elements JDBC hands over as the lake has them."""


def candidates(schema: TableSchema) -> tuple[Column, ...]:
    """Columns worth asking about."""
    return tuple(c for c in schema.columns if c.type.kind in _WITHIN and _askable(c))


def _askable(column: Column) -> bool:
    if column.recast:
        return False
    if column.type.kind is not Kind.LIST:
        return True
    # Spark looks an array's name up in the catalog, in quotes that it does not double.
    return bool(_ARRAY.match(column.source_type)) and "'" not in column.name


def summed(schema: TableSchema) -> tuple[Column, ...]:
    """Key columns whose sum and range are asked for: not what only becomes whole numbers, which
    the server would round, or refuse."""
    whole = (Kind.INT, Kind.LONG)
    return tuple(c for c in schema.key_columns if c.type.kind in whole and not c.recast)


def survey_sql(schema: TableSchema, from_sql: str) -> str:
    """One row: the number of rows; sum, lowest and highest of every integer key; per candidate
    whether it is plain."""
    keys = [f"{quote_sql(c.name)}::bigint" for c in summed(schema)]
    sums = [f"coalesce(sum({key}), 0), min({key}), max({key})" for key in keys]
    asked = [
        f"coalesce({_WITHIN[column.type.kind].format(_typed(column))}, true)"
        for column in candidates(schema)
    ]
    return f"SELECT {', '.join(['count(*)', *sums, *asked])} FROM {from_sql}"


def expression(column: Column) -> str:
    """What is selected for a plain column; ``protocol.Survey`` says what arrives."""
    name, value = quote_sql(column.name), _typed(column)
    if column.type.kind is Kind.DATE:
        value = f"({value} - date '1970-01-01')"
    elif column.type.kind is Kind.TIMESTAMP:
        value = f"{value}::timestamptz"  # sessions are in UTC (settings.PINNED)
    return f"{value} AS {name}"


def _typed(column: Column) -> str:
    if column.type.element is not None:
        # No column of a table any more, or Spark believes in the dimensions it was declared with.
        return f"coalesce({quote_sql(column.name)})::{_ELEMENTS[column.type.element.kind]}[]"
    # A domain would reach the driver as an unknown type, and without precision and scale Spark
    # would take a numeric for decimal(38,18). Nothing is rounded: the column has just these.
    limits = f"({column.type.precision},{column.type.scale})"
    typed = _SQL_TYPE[column.type.kind] + (limits if column.type.kind is Kind.DECIMAL else "")
    return f"{quote_sql(column.name)}::{typed}"
