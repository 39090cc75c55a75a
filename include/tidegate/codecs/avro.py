"""A table's schema as Avro: one record for the key, one for the row, named as Debezium names them.

Every logical type has exactly one Avro type, and it is exact (I6): decimals are bytes with the
``decimal`` logical type, times are microseconds, a timestamp without time zone is *local*. Columns
that may be null are unions that begin with null and have it as default, so a reader by the new
schema understands rows from before the column. The source's own name and type of a column are
properties of its field, which Avro's readers pass over.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

from tidegate.codecs.spelling import AVRO, spelled
from tidegate.names import TableId
from tidegate.schema.table import Column, TableSchema
from tidegate.schema.types import Kind, LogicalType

NAME_PROPERTY: Final = "tidegate.name"  # of a field whose column is spelled otherwise
TYPE_PROPERTY: Final = "tidegate.source_type"
TABLE_PROPERTY: Final = "tidegate.table"

_PLAIN: Final[dict[Kind, str | dict[str, str]]] = {
    Kind.BOOLEAN: "boolean",
    Kind.INT: "int",
    Kind.LONG: "long",
    Kind.FLOAT: "float",
    Kind.DOUBLE: "double",
    Kind.DATE: {"type": "int", "logicalType": "date"},
    Kind.TIMESTAMP: {"type": "long", "logicalType": "local-timestamp-micros"},
    Kind.TIMESTAMPTZ: {"type": "long", "logicalType": "timestamp-micros"},
    Kind.BINARY: "bytes",
    Kind.STRING: "string",
    Kind.VARIANT: "string",  # the document's text, which is what the log has
}


@dataclass(frozen=True, slots=True)
class AvroSchemas:
    """JSON texts; the same schema gives the same text, so a registry knows it again."""

    key: str | None  # None: the table has no key
    value: str


def render(schema: TableSchema, topic: str) -> AvroSchemas:
    """Records ``Key`` and ``Value`` in the namespace of ``topic``."""
    names = spelled([column.name for column in schema.columns], AVRO)
    space = ".".join(AVRO.spell(part) for part in topic.split(".") if part)
    keyed = schema.key_columns
    return AvroSchemas(
        key=_record("Key", space, schema.table, keyed, names) if keyed else None,
        value=_record("Value", space, schema.table, schema.columns, names),
    )


def _record(
    name: str, space: str, table: TableId, columns: Iterable[Column], names: dict[str, str]
) -> str:
    record = {
        "type": "record",
        "name": name,
        "namespace": space,
        TABLE_PROPERTY: str(table),
        "fields": [_field(column, names[column.name]) for column in columns],
    }
    return json.dumps(record, separators=(",", ":"))


def _field(column: Column, name: str) -> dict[str, Any]:
    type_ = _type(column.type)
    field: dict[str, Any] = {"name": name, "type": ["null", type_] if column.nullable else type_}
    if column.nullable:
        field["default"] = None
    if name != column.name:
        field[NAME_PROPERTY] = column.name
    return field | {TYPE_PROPERTY: column.source_type}


def _type(type_: LogicalType) -> str | dict[str, Any]:
    if type_.kind is Kind.DECIMAL:
        decimal = {"precision": type_.precision, "scale": type_.scale}
        return {"type": "bytes", "logicalType": "decimal", **decimal}
    if type_.element is not None:
        # No source of ours says whether elements may be null: they may.
        return {"type": "array", "items": ["null", _type(type_.element)]}
    return _PLAIN[type_.kind]
