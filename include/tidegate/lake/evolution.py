"""From the table that exists to the schema the source has now: what to add, widen or refuse (I8).

Columns that left the source stay in the lake: history is not dropped, new rows have null there.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from pyiceberg.schema import Schema
from pyiceberg.types import DecimalType, IcebergType, NestedField

from tidegate.config.pipeline import LakeTarget
from tidegate.config.sinks import WriteMode
from tidegate.lake.columns import LakeColumn, columns, qualified
from tidegate.names import CDC_PREFIX, quote_spark
from tidegate.schema.table import TableSchema
from tidegate.schema.types import Kind, LogicalType

_WIDER: Final = {("int", "long"), ("float", "double")}
"""Iceberg's promotions that keep every value exact (decimals besides)."""


@dataclass(frozen=True, slots=True)
class Widening:
    """A column that takes a wider type."""

    name: str
    old: str
    new: LakeColumn


@dataclass(frozen=True, slots=True)
class Evolution:
    """What must happen before rows of the new schema fit."""

    add: tuple[LakeColumn, ...] = ()
    widen: tuple[Widening, ...] = ()
    incompatible: tuple[str, ...] = ()
    """Readable lines of a diff; any of them holds the table."""

    @property
    def needed(self) -> bool:
        return bool(self.add or self.widen)

    @property
    def compatible(self) -> bool:
        return not self.incompatible


def evolution(existing: Schema, schema: TableSchema, target: LakeTarget) -> Evolution:
    """Compare a lake table's schema with what ``schema`` and the write mode ask for."""
    wanted = columns(schema, target)
    fields = {field.name: field for field in existing.fields}
    add, widen, wrong = [], [], list(_key_change(existing, schema, target))
    for column in wanted:
        field = fields.get(column.name)
        if field is None:
            if column.name.startswith(CDC_PREFIX):
                wrong.append(_mode_line(column.name, "is missing", target))
            else:
                add.append(column)
        elif _iceberg(column.type) != str(field.field_type):
            if _is_wider(field.field_type, column.type):
                widen.append(Widening(column.name, str(field.field_type), column))
            elif not _holds(field.field_type, column.type):
                wrong.append(
                    f"column {column.name}: the lake has {field.field_type}, the source now gives"
                    f" {_iceberg(column.type)} ({column.doc})"
                )
    wrong.extend(_left_over(fields, {column.name for column in wanted}, target))
    # A new column is empty in every old row, so it cannot be required, key or not.
    nullable = tuple(LakeColumn(c.name, c.spark_type, True, c.doc, c.type) for c in add)
    return Evolution(nullable, tuple(widen), tuple(wrong))


def evolution_sql(target: LakeTarget, change: Evolution) -> list[str]:
    """The ``ALTER TABLE`` statements of a compatible evolution."""
    statements = []
    if change.add:
        added = ", ".join(column.ddl for column in change.add)
        statements.append(f"ALTER TABLE {qualified(target)} ADD COLUMNS ({added})")
    for wider in change.widen:
        statements.append(
            f"ALTER TABLE {qualified(target)} ALTER COLUMN {quote_spark(wider.name)}"
            f" TYPE {wider.new.spark_type}"
        )
    return statements


def _key_change(existing: Schema, schema: TableSchema, target: LakeTarget) -> list[str]:
    if target.write_mode is not WriteMode.UPSERT:
        return []
    old = existing.identifier_field_names()
    new = {column.name for column in schema.key_columns}
    if not old or old == new:
        return []
    return [f"key: the lake is keyed by {_names(old)}, the source now by {_names(new)}"]


def _left_over(fields: dict[str, NestedField], wanted: set[str], target: LakeTarget) -> list[str]:
    lines = []
    for name, field in fields.items():
        if name in wanted:
            continue
        if name.startswith(CDC_PREFIX):
            lines.append(_mode_line(name, "is there", target))
        elif field.required:
            lines.append(f"column {name}: required in the lake, gone from the source")
    return lines


def _mode_line(name: str, how: str, target: LakeTarget) -> str:
    soft = " with soft_delete" if target.soft_delete else ""
    return (
        f"column {name} {how}: the table was made for another write mode than"
        f" {target.write_mode}{soft}"
    )


def _names(names: set[str]) -> str:
    return "(" + ", ".join(sorted(names)) + ")"


def _is_wider(old: IcebergType, new: LogicalType) -> bool:
    if isinstance(old, DecimalType) and new.kind is Kind.DECIMAL:
        return new.scale == old.scale and new.precision > old.precision
    return (str(old), _iceberg(new)) in _WIDER


def _holds(old: IcebergType, new: LogicalType) -> bool:
    """Whether the lake's type holds every value of a narrower new one."""
    if isinstance(old, DecimalType) and new.kind is Kind.DECIMAL:
        return new.scale == old.scale and new.precision <= old.precision
    return (_iceberg(new), str(old)) in _WIDER


def _iceberg(type_: LogicalType) -> str:
    """A logical type as PyIceberg prints it."""
    if type_.kind is Kind.DECIMAL:
        return f"decimal({type_.precision}, {type_.scale})"
    if type_.kind is Kind.LIST and type_.element is not None:
        return f"list<{_iceberg(type_.element)}>"
    return type_.kind.value
