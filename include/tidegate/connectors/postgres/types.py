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
from tidegate.schema.types import MAX_PRECISION, STRING, Kind, LogicalType, Policy, TextRule

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
    dimensions: int = 0  # typndims: of a domain over an array

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
_DIGITS: Final = Mapped(STRING, TextRule.PG_NUMBER)


@dataclass(frozen=True, slots=True)
class Scalar:
    """Types of one kind, what the lake makes of them, and the rule in words."""

    names: tuple[str, ...]  # typname
    shown: str
    mapped: Mapped
    note: str


SCALARS: Final = (
    Scalar(("bool",), "boolean", Mapped(LogicalType(Kind.BOOLEAN), TextRule.PG_BOOL), ""),
    Scalar(
        ("int2", "int4"),
        "smallint, integer, serial",
        Mapped(LogicalType(Kind.INT), TextRule.PG_NUMBER),
        "",
    ),
    Scalar(("int8",), "bigint", Mapped(LogicalType(Kind.LONG), TextRule.PG_NUMBER), ""),
    Scalar(
        ("float4",),
        "real",
        Mapped(LogicalType(Kind.FLOAT), TextRule.PG_NUMBER),
        "the same 32 bits; NaN, ±Infinity and −0 are values like others",
    ),
    Scalar(
        ("float8",),
        "double precision",
        Mapped(LogicalType(Kind.DOUBLE), TextRule.PG_NUMBER),
        "the same 64 bits; NaN, ±Infinity and −0 are values like others",
    ),
    Scalar(
        ("date",),
        "date",
        Mapped(LogicalType(Kind.DATE), TextRule.PG_DATETIME, Policy.CLAMP),
        "years 1 to 9999; others, BC and ±infinity by the datetime policy",
    ),
    Scalar(
        ("timestamp",),
        "timestamp",
        Mapped(LogicalType(Kind.TIMESTAMP), TextRule.PG_DATETIME, Policy.CLAMP),
        "microseconds, no zone; range as for date",
    ),
    Scalar(
        ("timestamptz",),
        "timestamp with time zone",
        Mapped(LogicalType(Kind.TIMESTAMPTZ), TextRule.PG_DATETIME, Policy.CLAMP),
        "the instant, microseconds; range as for date, in UTC",
    ),
    Scalar(("bytea",), "bytea", Mapped(LogicalType(Kind.BINARY), TextRule.PG_BYTEA), ""),
    Scalar(
        ("text", "varchar", "name"),
        "text, character varying, name",
        _STRING,
        "empty is not NULL; nothing is trimmed",
    ),
    Scalar(("bpchar",), "character(n)", _STRING, "with its padding, as the log sends it"),
    Scalar(
        ("json", "jsonb"),
        "json, jsonb",
        _STRING,
        "json as it was written, jsonb as PostgreSQL prints it; can become"
        " [`variant`](#documents-as-variants)",
    ),
    Scalar(("uuid",), "uuid", _STRING, "36 lower-case characters"),
    Scalar(
        ("time", "timetz"), "time, time with time zone", _STRING, "24:00:00 and offsets are kept"
    ),
    Scalar(("interval",), "interval", _STRING, "IntervalStyle postgres"),
    Scalar(("money",), "money", _STRING, "printed with lc_monetary C"),
    Scalar(("oid", "xid", "cid", "xid8"), "oid, xid, cid, xid8", _DIGITS, "can become long"),
)
"""Every other type is ``string``: the text its output function prints."""

_BY_NAME: Final = {name: scalar.mapped for scalar in SCALARS for name in scalar.names}


def scalar(name: str, typmod: int, *, built_in: bool = True) -> Mapped:
    """A resolved type that is neither a domain nor an array. What we do not know is text."""
    if not built_in:
        return _STRING
    if name == "numeric":
        return _numeric(typmod)
    return _BY_NAME.get(name, _STRING)


def array_of(element: Mapped) -> Mapped:
    """A one-dimensional array; elements keep their own policy."""
    return Mapped(LogicalType(Kind.LIST, element=element.type), TextRule.PG_ARRAY, element.policy)


def _numeric(typmod: int) -> Mapped:
    """``numeric(p,s)`` if a decimal holds it; unlimited, negative or odd scales stay exact text."""
    if typmod < _TYPMOD_HEADER:
        return _DIGITS
    packed = typmod - _TYPMOD_HEADER
    precision = (packed >> 16) & 0xFFFF
    scale = ((packed & _SCALE_BITS) ^ _SCALE_SIGN) - _SCALE_SIGN  # 11 bits, signed since 15
    if not (0 < precision <= MAX_PRECISION and 0 <= scale <= precision):
        return _DIGITS
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
    if column.recast and column.type.kind is not Kind.STRING:
        return False  # a cast of the server's would round
    return column.type.kind in _NATIVE_KINDS


def select_expression(column: Column) -> str:
    """What a sweep selects for a column, under the column's own name."""
    return f"{selected(column)} AS {quote_sql(column.name)}"


def selected(column: Column) -> str:
    """A column's value as a sweep reads it."""
    kind = column.type.kind
    if kind is not Kind.STRING and native(column):
        # A domain would reach the driver as an unknown type.
        return f"{quote_sql(column.name)}::{PLAIN_SQL[kind]}"
    return text_expression(column)


def text_expression(column: Column) -> str:
    """A value's text as the log prints it; NULL stays NULL."""
    name = quote_sql(column.name)
    castable = (Kind.DATE, Kind.TIMESTAMP, Kind.TIMESTAMPTZ, Kind.DECIMAL)
    if column.type.kind in castable and not column.recast:
        return f"{name}::text"
    if _TEXTUAL.match(column.source_type):
        return f"{name}::text"
    # concat() prints its arguments by their output functions, as the log does.
    return f"CASE WHEN {name} IS DISTINCT FROM NULL THEN concat({name}) END"


PLAIN_SQL: Final = {
    Kind.BOOLEAN: "boolean",
    Kind.INT: "integer",
    Kind.LONG: "bigint",
    Kind.FLOAT: "real",
    Kind.DOUBLE: "double precision",
    Kind.BINARY: "bytea",
}
"""What a native value is cast to: a domain would reach the driver as an unknown type."""
