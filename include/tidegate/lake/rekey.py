"""The SQL that gives a lake table another key, for a sweep that writes every row under it.

Readers are never broken: an existing column is not made required, because older rows may have null
there, so Iceberg's identifier fields are set only where all of them are required already.
"""

from __future__ import annotations

from collections.abc import Collection

from tidegate.config.pipeline import LakeTarget
from tidegate.lake.columns import literal, qualified
from tidegate.lake.tables import KEY_METRICS, can_identify, metrics_property, order_sql
from tidegate.names import quote_spark
from tidegate.schema.table import TableSchema


def rekey_sql(
    target: LakeTarget, schema: TableSchema, old: Collection[str], required: Collection[str]
) -> list[str]:
    """``schema`` has the lake's names, and perhaps no key any more. The identifiers go last: until
    then the table looks as it did, and a run that died does all of it again (I3)."""
    names = [column.name for column in schema.key_columns]
    metrics = ", ".join(
        f"{literal(metrics_property(name))} = {literal(KEY_METRICS)}" for name in names
    )
    table = f"ALTER TABLE {qualified(target)}"
    statements = [f"{table} SET TBLPROPERTIES ({metrics})"] if names else []
    statements += order_sql(target, schema) or [f"{table} WRITE UNORDERED"]
    if can_identify(schema) and set(names) <= set(required):
        fields = ", ".join(map(quote_spark, names))
        return [*statements, f"{table} SET IDENTIFIER FIELDS {fields}"]
    fields = ", ".join(quote_spark(name) for name in sorted(old))
    return [*statements, f"{table} DROP IDENTIFIER FIELDS {fields}"]
