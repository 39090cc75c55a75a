"""Logical types: what a lake column holds, and how the source's text becomes it.

A :class:`LogicalType` is an Iceberg type in our words. A :class:`TextRule` names how the source
prints a value on the log path; ``spark/casts`` has one exact cast per (rule, type).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from typing import Final


class Kind(StrEnum):
    BOOLEAN = "boolean"
    INT = "int"
    LONG = "long"
    FLOAT = "float"
    DOUBLE = "double"
    DECIMAL = "decimal"
    DATE = "date"
    TIMESTAMP = "timestamp"  # without time zone, microseconds
    TIMESTAMPTZ = "timestamptz"  # an instant, microseconds
    BINARY = "binary"
    STRING = "string"
    LIST = "list"
    VARIANT = "variant"  # a JSON document, parsed; Iceberg format 3


class TextRule(StrEnum):
    """How the source prints values of a column on the log path."""

    PLAIN = "plain"  # the text is the value
    PG_BOOL = "pg_bool"  # t / f
    PG_NUMBER = "pg_number"  # integers, floats and numerics; NaN, Infinity
    PG_BYTEA = "pg_bytea"  # \x hex
    PG_DATETIME = "pg_datetime"  # ISO, DateStyle pinned; infinity, BC
    PG_ARRAY = "pg_array"  # {…}, one dimension
    MYSQL_DATETIME = "mysql_datetime"  # ISO; zero and partial dates


@dataclass(frozen=True, slots=True)
class LogicalType:
    """A lake type. ``precision``/``scale`` for decimals, ``element`` for lists."""

    kind: Kind
    precision: int = 0
    scale: int = 0
    element: LogicalType | None = None

    def __str__(self) -> str:
        if self.kind is Kind.DECIMAL:
            return f"decimal({self.precision},{self.scale})"
        if self.kind is Kind.LIST:
            return f"list<{self.element}>"
        return self.kind.value

    @property
    def spark(self) -> str:
        """Spark SQL DDL type."""
        if self.kind is Kind.DECIMAL:
            return f"decimal({self.precision},{self.scale})"
        if self.kind is Kind.LIST and self.element is not None:
            return f"array<{self.element.spark}>"
        return _SPARK[self.kind]


_SPARK: Final[dict[Kind, str]] = {
    Kind.BOOLEAN: "boolean",
    Kind.INT: "int",
    Kind.LONG: "bigint",
    Kind.FLOAT: "float",
    Kind.DOUBLE: "double",
    Kind.DATE: "date",
    Kind.TIMESTAMP: "timestamp_ntz",
    Kind.TIMESTAMPTZ: "timestamp",
    Kind.BINARY: "binary",
    Kind.STRING: "string",
    Kind.VARIANT: "variant",
}

STRING: Final = LogicalType(Kind.STRING)
MAX_PRECISION: Final = 38

_WRITTEN: Final = re.compile(
    r"(?P<kind>[a-z]+)(?:\((?P<p>\d{1,2}), ?(?P<s>\d{1,2})\)|<(?P<element>.+)>)?\Z"
)


def parse_type(text: str) -> LogicalType | None:
    """A type as :meth:`LogicalType.__str__` writes it; None for anything else."""
    match = _WRITTEN.match(text.strip())
    if match is None or match["kind"] not in set(Kind):
        return None
    kind, element = Kind(match["kind"]), None
    if (kind is Kind.DECIMAL) is not (match["p"] is not None):
        return None
    if (kind is Kind.LIST) is not (match["element"] is not None):
        return None
    precision, scale = int(match["p"] or 0), int(match["s"] or 0)
    if kind is Kind.DECIMAL and not (0 < precision <= MAX_PRECISION and scale <= precision):
        return None
    if kind is Kind.LIST:
        element = parse_type(match["element"])
        if element is None or element.kind in (Kind.LIST, Kind.VARIANT):
            return None
    return LogicalType(kind, precision, scale, element)


def is_wider(old: LogicalType, new: LogicalType) -> bool:
    """Whether every value of ``old`` is exact in ``new``, by a promotion that Iceberg allows."""
    if old.kind is Kind.DECIMAL and new.kind is Kind.DECIMAL:
        return new.scale == old.scale and new.precision > old.precision
    return (old.kind, new.kind) in _WIDER


_WIDER: Final = {(Kind.INT, Kind.LONG), (Kind.FLOAT, Kind.DOUBLE)}


class Policy(StrEnum):
    """What happens to a value that the lake type cannot hold; every use is counted (I6)."""

    CLAMP = "clamp"  # the nearest value that can be held: ±infinity and out-of-range dates
    NULL = "null"  # NaN of numerics
    STRING = "string"  # the column holds the source's text instead (schema/contract.py)
    REJECT = "reject"  # the row cannot be applied
