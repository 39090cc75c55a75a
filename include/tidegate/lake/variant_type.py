"""Iceberg's variant, for a PyIceberg that does not know it.

PyIceberg 0.12 refuses the metadata of a table with such a column. Spark alone reads and writes
documents; PyIceberg need only know that the column is there.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final, Literal

from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.types import IcebergType, NestedField, PrimitiveType

from tidegate.errors import HeldError
from tidegate.schema.contract import VARIANT_FORMAT
from tidegate.schema.table import TableSchema
from tidegate.schema.types import Kind

_NAME: Final = Kind.VARIANT.value


class VariantType(PrimitiveType):
    """A name without values."""

    root: Any = _NAME

    def minimum_format_version(self) -> Literal[3]:
        return 3


def teach() -> None:
    """Have PyIceberg load tables with variants, from whatever catalog; does nothing to one that
    knows them. Idempotent."""
    if known() is not None:
        return
    parse = vars(IcebergType)["handle_primitive_type"].__func__

    def handle_primitive_type(cls: type[IcebergType], value: Any, handler: Any) -> IcebergType:
        found: IcebergType = VariantType() if value == _NAME else parse(cls, value, handler)
        return found

    # The type of every field of a schema is looked up here, by its name.
    setattr(IcebergType, "handle_primitive_type", classmethod(handle_primitive_type))  # noqa: B010


def known() -> IcebergType | None:
    """What PyIceberg makes of the name."""
    try:
        return NestedField(1, _NAME, _NAME).field_type
    except ValueError:
        return None


def variants(schema: Schema) -> frozenset[str]:
    """The columns of a lake table that are variants."""
    return frozenset(field.name for field in schema.fields if str(field.field_type) == _NAME)


def check_format(table: Table, schemas: Iterable[TableSchema]) -> None:
    """Hold a table that was made in a format without variants and is to have one now."""
    version = table.metadata.format_version
    if version >= VARIANT_FORMAT:
        return
    names = {
        column.name
        for schema in schemas
        for column in schema.columns
        if column.taken and column.type.kind is Kind.VARIANT
    }
    if names:
        raise HeldError(
            "schema.variant_format",
            f"{'.'.join(table.name())} was made in Iceberg format {version}, which has no variant:"
            f" {', '.join(sorted(names))}",
            hint="give the table a new lake table (table_name) and sweep it, or leave the columns"
            " strings; then open its gate",
        )
