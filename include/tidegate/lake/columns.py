"""The columns of a lake table, by write mode."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Final

from tidegate.config.pipeline import LakeTarget
from tidegate.config.sinks import WriteMode
from tidegate.errors import ConfigError
from tidegate.names import CATALOG, CDC_PREFIX, quote_spark
from tidegate.schema.table import TableSchema
from tidegate.schema.types import STRING, Kind, LogicalType

_BOOLEAN: Final = LogicalType(Kind.BOOLEAN)
_INSTANT: Final = LogicalType(Kind.TIMESTAMPTZ)


@dataclass(frozen=True, slots=True)
class LakeColumn:
    """One column of a lake table."""

    name: str
    spark_type: str
    nullable: bool
    doc: str
    type: LogicalType

    @property
    def ddl(self) -> str:
        required = "" if self.nullable else " NOT NULL"
        return f"{quote_spark(self.name)} {self.spark_type}{required} COMMENT {literal(self.doc)}"


def _own(name: str, type_: LogicalType, doc: str) -> LakeColumn:
    return LakeColumn(f"{CDC_PREFIX}{name}", type_.spark, True, doc, type_)


_SOFT_DELETE: Final = (
    _own("deleted", _BOOLEAN, "whether the source deleted the row"),
    _own("position", STRING, "position of the change that deleted the row"),
)
_APPEND: Final = (
    _own("op", STRING, "c create, u update, d delete, t truncate, r read by a sweep"),
    _own("position", STRING, "position of the change in the source's log"),
    _own("commit_ts", _INSTANT, "when the source committed the change"),
    _own("event_id", STRING, "the same on every re-read of the change"),
)
_HISTORY: Final = (
    _own("valid_from", _INSTANT, "commit time of the change that made this version"),
    _own("valid_to", _INSTANT, "commit time of the change that ended it; null = current"),
    _own("from_position", STRING, "position of the change that made this version"),
    _own("to_position", STRING, "position of the change that ended it"),
    _own("current", _BOOLEAN, "whether this is the newest version of a row that exists"),
    _own("deleted", _BOOLEAN, "whether this version ended by a delete"),
)


_ICEBERGS_OWN: Final = ("_file", "_pos")
"""Metadata columns: a table with one of its own can be written, but not merged into."""


def cdc_columns(target: LakeTarget) -> tuple[LakeColumn, ...]:
    """The columns Tidegate adds for a write mode."""
    match target.write_mode:
        case WriteMode.APPEND:
            return _APPEND
        case WriteMode.HISTORY:
            return _HISTORY
        case WriteMode.UPSERT:
            return _SOFT_DELETE if target.soft_delete else ()


def columns(schema: TableSchema, target: LakeTarget) -> list[LakeColumn]:
    """Source columns under their own names and in their order, then the ``_cdc_`` columns."""
    check_names(schema)
    if not schema.key_columns and not can_be_keyless(target):
        mode = "soft_delete" if target.soft_delete else target.write_mode
        raise ConfigError(
            "table.no_key",
            f"{target.source} has no key, so {mode} cannot tell which of its rows a change ended",
            hint="give the table a primary key or a replica identity index, or set its"
            " write_mode to append, or to upsert without soft_delete",
        )
    # A truncate is a row of its own in append mode, and it has no key.
    keyed = target.write_mode is not WriteMode.APPEND
    own = [
        LakeColumn(
            name=column.name,
            spark_type=column.type.spark,
            nullable=not (keyed and column.key is not None),
            doc=column.source_type,
            type=column.type,
        )
        for column in schema.columns
        if column.taken
    ]
    return own + list(cdc_columns(target))


def can_be_keyless(target: LakeTarget) -> bool:
    """Whether rows may be equal: as rows that nobody tells apart (plain ``upsert``), or because
    every change is a row of its own."""
    return target.forgets or target.write_mode is WriteMode.APPEND


def qualified(target: LakeTarget) -> str:
    """The table's name in Spark SQL."""
    return quote_spark(CATALOG, target.namespace, target.name)


def check_names(schema: TableSchema) -> None:
    """Refuse names that no lake table can have."""
    reserved = [
        column.name
        for column in schema.columns
        if column.name.lower().startswith(CDC_PREFIX) or column.name.lower() in _ICEBERGS_OWN
    ]
    if reserved:
        raise ConfigError(
            "table.reserved_column",
            f"{schema.table} has columns of names that the lake needs: {', '.join(reserved)}",
            hint=f"{CDC_PREFIX}… are columns that Tidegate adds, {' and '.join(_ICEBERGS_OWN)} say"
            " where Iceberg has a row: rename them at the source",
        )
    folded = Counter(column.name.casefold() for column in schema.columns)
    twice = sorted(c.name for c in schema.columns if folded[c.name.casefold()] > 1)
    if twice:
        raise ConfigError(
            "table.column_case",
            f"{schema.table} has columns that differ only in case: {', '.join(twice)}",
            hint="SQL engines over the lake do not tell them apart: rename one at the source",
        )


def literal(value: str) -> str:
    """A Spark SQL string literal."""
    escaped = value.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"
