"""PostgreSQL types in lake terms: what a column becomes, and how a sweep selects it.

The log path sends every value as its type's output function prints it. A sweep must give the same
value (I6): it reads a column *natively* where JDBC's value is exact, and otherwise selects the very
text the log would carry, which then goes through the same cast.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from tidegate.names import quote_sql
from tidegate.schema.table import Column
from tidegate.schema.types import STRING, Kind, LogicalType, Policy, TextRule

MAX_PRECISION: Final = 38
_TYPMOD_HEADER: Final = 4
_SCALE_BITS: Final = 0x7FF
_SCALE_SIGN: Final = 0x400
_BUILT_IN_LIMIT: Final = 16384  # oids from here on are the user's


@dataclass(frozen=True, slots=True)
class PgType:
    """A type as ``pg_type`` has it."""

    oid: int
    name: str  # typname
    schema: str
    kind: str  # typtype: b c d e p r m
    base: int = 0  # typbasetype of a domain
    base_typmod: int = -1
    element: int = 0  # element type of a true array
    delimiter: str = ","

    @property
    def built_in(self) -> bool:
        return self.oid < _BUILT_IN_LIMIT


@dataclass(frozen=True, slots=True)
class Mapped:
    """What the lake makes of a type."""

    type: LogicalType
    rule: TextRule
    policy: Policy = Policy.REJECT


_STRING: Final = Mapped(STRING, TextRule.PLAIN)

_SCALARS: Final[dict[str, Mapped]] = {
    "bool": Mapped(LogicalType(Kind.BOOLEAN), TextRule.PG_BOOL),
    "int2": Mapped(LogicalType(Kind.INT), TextRule.PG_NUMBER),
    "int4": Mapped(LogicalType(Kind.INT), TextRule.PG_NUMBER),
    "int8": Mapped(LogicalType(Kind.LONG), TextRule.PG_NUMBER),
    "float4": Mapped(LogicalType(Kind.FLOAT), TextRule.PG_NUMBER),
    "float8": Mapped(LogicalType(Kind.DOUBLE), TextRule.PG_NUMBER),
    "date": Mapped(LogicalType(Kind.DATE), TextRule.PG_DATETIME, Policy.CLAMP),
    "timestamp": Mapped(LogicalType(Kind.TIMESTAMP), TextRule.PG_DATETIME, Policy.CLAMP),
    "timestamptz": Mapped(LogicalType(Kind.TIMESTAMPTZ), TextRule.PG_DATETIME, Policy.CLAMP),
    "bytea": Mapped(LogicalType(Kind.BINARY), TextRule.PG_BYTEA),
}


def scalar(name: str, typmod: int, *, built_in: bool = True) -> Mapped:
    """A resolved type that is neither a domain nor an array. What we do not know is text."""
    if not built_in:
        return _STRING
    if name == "numeric":
        return _numeric(typmod)
    return _SCALARS.get(name, _STRING)


def array_of(element: Mapped) -> Mapped:
    """A one-dimensional array; elements keep their own policy."""
    return Mapped(LogicalType(Kind.LIST, element=element.type), TextRule.PG_ARRAY, element.policy)


def _numeric(typmod: int) -> Mapped:
    """``numeric(p,s)`` if a decimal holds it; unlimited, negative or odd scales stay exact text."""
    if typmod < _TYPMOD_HEADER:
        return _STRING
    packed = typmod - _TYPMOD_HEADER
    precision = (packed >> 16) & 0xFFFF
    scale = ((packed & _SCALE_BITS) ^ _SCALE_SIGN) - _SCALE_SIGN  # 11 bits, signed since 15
    if not (0 < precision <= MAX_PRECISION and 0 <= scale <= precision):
        return _STRING
    return Mapped(LogicalType(Kind.DECIMAL, precision, scale), TextRule.PG_NUMBER, Policy.NULL)


_NATIVE_KINDS: Final = frozenset(
    {Kind.BOOLEAN, Kind.INT, Kind.LONG, Kind.FLOAT, Kind.DOUBLE, Kind.BINARY, Kind.STRING}
)
"""JDBC's value is the lake's value. Not dates, timestamps and decimals: the driver has no infinity,
BC or NaN for them, and what is adjusted must be counted (I6)."""

_TEXTUAL: Final = re.compile(r"(text|character varying(\(\d+\))?|name|jsonb?|uuid)\Z")
"""Types whose cast to text is known to give the log's text. For others it may not: ``boolean``,
``character(n)``, ``inet``, ``xml`` and ``"char"`` have casts of their own that print otherwise."""


def native(column: Column) -> bool:
    """Whether a sweep's value needs no cast: it has the final type already."""
    return column.type.kind in _NATIVE_KINDS


def select_expression(column: Column) -> str:
    """What a sweep selects for a column, under the column's own name."""
    name = quote_sql(column.name)
    kind = column.type.kind
    if kind is not Kind.STRING and native(column):
        # A domain would reach the driver as an unknown type.
        return f"{name}::{_PLAIN_SQL[kind]} AS {name}"
    if kind in (Kind.DATE, Kind.TIMESTAMP, Kind.TIMESTAMPTZ, Kind.DECIMAL):
        return f"{name}::text AS {name}"
    if _TEXTUAL.match(column.source_type):
        return f"{name}::text AS {name}"
    # concat() prints its arguments by their output functions, as the log does.
    return f"CASE WHEN {name} IS DISTINCT FROM NULL THEN concat({name}) END AS {name}"


_PLAIN_SQL: Final = {
    Kind.BOOLEAN: "boolean",
    Kind.INT: "integer",
    Kind.LONG: "bigint",
    Kind.FLOAT: "real",
    Kind.DOUBLE: "double precision",
    Kind.BINARY: "bytea",
}
