"""MySQL types in lake terms: what a column becomes, and how a sweep selects it.

A column is described by the same facts whether the log (a table map with full metadata) or the
live catalog tells them, so that both give one schema. The log path prints values as text; a sweep
must give the same value (I6): it reads natively where JDBC's value is exact, and otherwise selects
the text the log path prints, which then goes through the same cast.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from tidegate.connectors.mysql.charsets import BINARY
from tidegate.names import quote_sql
from tidegate.schema.table import Column
from tidegate.schema.types import MAX_PRECISION, STRING, Kind, LogicalType, Policy, TextRule

INTEGERS: Final = {"tinyint": 1, "smallint": 2, "mediumint": 3, "int": 4, "bigint": 8}
TEXTS: Final = ("tinytext", "text", "mediumtext", "longtext")
BLOBS: Final = ("tinyblob", "blob", "mediumblob", "longblob")
_CHARACTERS: Final = frozenset({"char", "varchar", *TEXTS})
_OCTETS: Final = frozenset({"binary", "varbinary", *BLOBS})
_TIMED: Final = frozenset({"time", "datetime", "timestamp"})
_LONG_BITS: Final = 63
BYTES_OF_TEXT: Final = {"uuid": 16, "inet6": 16, "inet4": 4}
"""MariaDB's own types: the log has binary(n) and does not say which, the catalog does."""
UNSIGNED_LONG: Final = LogicalType(Kind.DECIMAL, 20, 0)


@dataclass(frozen=True, slots=True)
class ColumnFacts:
    """A column as the source has it."""

    name: str
    base: str  # information_schema's data_type
    unsigned: bool = False
    precision: int = 0  # digits of a decimal, bits of a bit, digits of a second's fraction
    scale: int = 0
    length: int = 0  # characters, or bytes of binary types; 0 for text and blob
    charset: str | None = None
    labels: tuple[str, ...] = ()
    nullable: bool = True
    key: int | None = None

    @property
    def printed(self) -> str:
        """One spelling for the catalog's and the log's description."""
        text = self.base
        if self.base == "decimal":
            text += f"({self.precision},{self.scale})"
        elif self.base == "bit" or (self.base in _TIMED and self.precision):
            text += f"({self.precision})"
        elif self.length:
            text += f"({self.length})"
        elif self.labels:
            quoted = (label.replace("'", "''") for label in self.labels)
            text += "(" + ",".join(f"'{label}'" for label in quoted) + ")"
        if self.unsigned:
            text += " unsigned"
        if self.charset and self.charset != BINARY and self.base in _CHARACTERS:
            text += f" {self.charset}"
        return text


@dataclass(frozen=True, slots=True)
class Mapped:
    """What the lake makes of a type."""

    type: LogicalType
    rule: TextRule
    policy: Policy = Policy.REJECT


_NUMBER: Final = TextRule.PG_NUMBER
_FIXED: Final = {
    "float": Mapped(LogicalType(Kind.FLOAT), _NUMBER),
    "double": Mapped(LogicalType(Kind.DOUBLE), _NUMBER),
    "year": Mapped(LogicalType(Kind.INT), _NUMBER),
    "date": Mapped(LogicalType(Kind.DATE), TextRule.MYSQL_DATETIME, Policy.CLAMP),
    "datetime": Mapped(LogicalType(Kind.TIMESTAMP), TextRule.MYSQL_DATETIME, Policy.CLAMP),
    "timestamp": Mapped(LogicalType(Kind.TIMESTAMPTZ), TextRule.MYSQL_DATETIME, Policy.CLAMP),
    "time": Mapped(STRING, TextRule.PLAIN),
    "enum": Mapped(STRING, TextRule.PLAIN),
    "set": Mapped(STRING, TextRule.PLAIN),
    "json": Mapped(STRING, TextRule.PLAIN),
    **dict.fromkeys(BYTES_OF_TEXT, Mapped(STRING, TextRule.PLAIN)),
    "geometry": Mapped(LogicalType(Kind.BINARY), TextRule.PG_BYTEA),
}
SUPPORTED: Final = (
    frozenset(INTEGERS) | frozenset(_FIXED) | _CHARACTERS | _OCTETS | {"decimal", "bit"}
)


def mapped(facts: ColumnFacts) -> Mapped:
    """What becomes of a supported type."""
    if facts.base in INTEGERS:
        return Mapped(_integer(facts), _NUMBER)
    if facts.base == "decimal":
        return _decimal(facts)
    if facts.base == "bit":
        return _bit(facts.precision)
    if facts.base in _OCTETS:
        return Mapped(LogicalType(Kind.BINARY), TextRule.PG_BYTEA)
    return _FIXED.get(facts.base, Mapped(STRING, TextRule.PLAIN))


def column(facts: ColumnFacts) -> Column:
    found = mapped(facts)
    return Column(
        name=facts.name,
        source_type=facts.printed,
        type=found.type,
        rule=found.rule,
        policy=found.policy,
        nullable=facts.nullable,
        key=facts.key,
    )


def _integer(facts: ColumnFacts) -> LogicalType:
    if facts.base == "bigint":
        return UNSIGNED_LONG if facts.unsigned else LogicalType(Kind.LONG)
    wide = facts.base == "int" and facts.unsigned
    return LogicalType(Kind.LONG if wide else Kind.INT)


def _decimal(facts: ColumnFacts) -> Mapped:
    if facts.precision > MAX_PRECISION:
        return Mapped(STRING, _NUMBER)
    return Mapped(LogicalType(Kind.DECIMAL, facts.precision, facts.scale), _NUMBER)


def _bit(bits: int) -> Mapped:
    if bits == 1:
        return Mapped(LogicalType(Kind.BOOLEAN), TextRule.PG_BOOL)
    type_ = LogicalType(Kind.LONG) if bits <= _LONG_BITS else UNSIGNED_LONG
    return Mapped(type_, _NUMBER)


_NATIVE: Final = frozenset(
    {Kind.INT, Kind.LONG, Kind.FLOAT, Kind.DOUBLE, Kind.DECIMAL, Kind.BINARY, Kind.STRING}
)
"""JDBC's value is the lake's value. Not dates and times, which have zero and partial values."""


def native(column: Column) -> bool:
    """Whether a sweep's value needs no cast: it has the final type already."""
    if column.recast:
        return column.type.kind is Kind.STRING
    return column.type.kind in _NATIVE


def select_expression(column: Column) -> str:
    """What a sweep selects for a column, under the column's own name."""
    name = quote_sql(column.name)
    value = text_expression(column)
    if native(column) and not column.recast:
        match column.type.kind:
            case Kind.INT | Kind.LONG:
                value = f"CAST({name} AS SIGNED)"
            case Kind.FLOAT | Kind.DOUBLE:  # a float's own text has six digits only
                value = f"CAST({name} AS DOUBLE)"
            case Kind.DECIMAL:
                value = f"CAST({name} AS DECIMAL({column.type.precision},{column.type.scale}))"
            case Kind.BINARY:
                value = f"UNHEX(HEX({name}))"  # whatever the driver thinks of geometries
    return f"{value} AS {name}"


def text_expression(column: Column) -> str:
    """A value's text as the log path prints it; NULL stays NULL."""
    name, base = quote_sql(column.name), column.source_type.partition("(")[0].split(" ")[0]
    if base == "timestamp":
        return f"CONCAT(CAST({name} AS CHAR), '+00')"  # sessions are in UTC (settings.PINNED)
    if base == "bit":
        number = f"CAST({name} AS UNSIGNED)"
        if column.source_type == "bit(1)":
            return f"CASE {number} WHEN 1 THEN 't' WHEN 0 THEN 'f' END"
        return f"CAST({number} AS CHAR)"
    if base in _OCTETS or base == "geometry":
        return f"CONCAT('\\x', LOWER(HEX({name})))"
    if base == "float":
        return f"CAST(CAST({name} AS DOUBLE) AS CHAR)"
    if base in INTEGERS or base == "year":  # a column may be printed with leading zeros
        sign = "UNSIGNED" if column.source_type.endswith(" unsigned") else "SIGNED"
        return f"CAST(CAST({name} AS {sign}) AS CHAR)"
    if base == "decimal":
        return f"CAST(CAST({name} AS {column.source_type.removesuffix(' unsigned')}) AS CHAR)"
    if base in _CHARACTERS or base in ("enum", "set"):
        return f"CONVERT({name} USING utf8mb4)"
    return f"CAST({name} AS CHAR)"
