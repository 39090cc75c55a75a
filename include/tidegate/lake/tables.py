"""What a lake table looks like, and the SQL that makes it: the lake as Spark sees it."""

from __future__ import annotations

from typing import Final

from tidegate.config.pipeline import LakeTarget
from tidegate.config.sinks import WriteMode
from tidegate.lake.columns import LakeColumn, cdc_columns, columns, literal, qualified
from tidegate.lake.terms import Term, partition_terms, sort_terms
from tidegate.names import FORMAT_PROPERTY, PROPERTY_PREFIX, STORED_FORMAT, quote_spark
from tidegate.schema.table import TableSchema
from tidegate.schema.types import Kind, LogicalType

__all__ = [
    "LakeColumn",
    "cdc_columns",
    "columns",
    "create_sql",
    "qualified",
    "shape_sql",
    "table_properties",
]

SOURCE_PROPERTY: Final = f"{PROPERTY_PREFIX}source"
PIPELINE_PROPERTY: Final = f"{PROPERTY_PREFIX}pipeline"
MODE_PROPERTY: Final = f"{PROPERTY_PREFIX}write_mode"
KEY_METRICS: Final = "truncate(36)"
"""Merges prune by key bounds, so keys have them however wide the table is."""

COMPACTION_RETRIES: Final = {
    "commit.retry.num-retries": "50",
    "commit.retry.min-wait-ms": "50",
    "commit.retry.max-wait-ms": "2000",
}
"""Groups of a compaction commit side by side, and each landing makes the others try again:
Iceberg's four tries are too few."""


def partitioning(schema: TableSchema, target: LakeTarget) -> tuple[Term, ...]:
    """The partition terms, checked."""
    return partition_terms(target.partition_by, _types(schema, target), target.source)


def sorting(schema: TableSchema, target: LakeTarget) -> tuple[Term, ...]:
    """The sort terms, checked; the key by default, so that merges skip files."""
    if target.sort_by:
        return sort_terms(target.sort_by, _types(schema, target), target.source)
    return tuple(Term(c.name) for c in schema.key_columns if c.type.kind is not Kind.LIST)


def create_sql(target: LakeTarget, schema: TableSchema, pipeline_id: str | None = None) -> str:
    """``CREATE TABLE IF NOT EXISTS``; :func:`shape_sql` has what must follow it."""
    body = ",\n  ".join(column.ddl for column in columns(schema, target))
    terms = partitioning(schema, target)
    partitioned = f"\nPARTITIONED BY ({', '.join(term.sql for term in terms)})" if terms else ""
    properties = ",\n  ".join(
        f"{literal(key)} = {literal(value)}"
        for key, value in sorted(table_properties(target, schema, pipeline_id).items())
    )
    return (
        f"CREATE TABLE IF NOT EXISTS {qualified(target)} (\n  {body}\n)\nUSING iceberg{partitioned}"
        f"\nTBLPROPERTIES (\n  {properties}\n)"
    )


def shape_sql(target: LakeTarget, schema: TableSchema) -> list[str]:
    """What ``CREATE TABLE`` cannot say: write order and identifier fields. Idempotent."""
    statements = order_sql(target, schema)
    if target.write_mode is WriteMode.UPSERT and can_identify(schema):
        names = ", ".join(quote_spark(column.name) for column in schema.key_columns)
        statements.append(f"ALTER TABLE {qualified(target)} SET IDENTIFIER FIELDS {names}")
    return statements


def order_sql(target: LakeTarget, schema: TableSchema) -> list[str]:
    """The write order, if there is one."""
    order = sorting(schema, target)
    if not order:
        return []
    # Local order only: a range shuffle would cost every small merge a sampling pass.
    spread = "DISTRIBUTED BY PARTITION LOCALLY" if target.partition_by else "LOCALLY"
    terms = ", ".join(term.sql for term in order)
    return [f"ALTER TABLE {qualified(target)} WRITE {spread} ORDERED BY {terms}"]


def table_properties(
    target: LakeTarget, schema: TableSchema, pipeline_id: str | None = None
) -> dict[str, str]:
    """Iceberg properties of a new lake table; the user's own come last and win."""
    upkeep = target.maintenance
    own = {
        "format-version": str(target.format_version),
        "write.delete.mode": "merge-on-read",
        "write.update.mode": "merge-on-read",
        "write.merge.mode": "merge-on-read",
        **COMPACTION_RETRIES,  # what must not land late is fenced by its branch (I4)
        # Keys, times and texts fill a dictionary of 2 MB (the default) in vain before Parquet gives
        # up on them: a tenth of a sweep (*measured*). What has few values needs no more than this.
        "write.parquet.dict-size-bytes": "131072",
        "write.metadata.delete-after-commit.enabled": "true",
        "write.metadata.previous-versions-max": "20",
        # For whoever expires snapshots with Iceberg's defaults: keep what we would keep.
        "history.expire.max-snapshot-age-ms": str(
            int(upkeep.expire_snapshots_older_than_seconds * 1000)
        ),
        "history.expire.min-snapshots-to-keep": str(upkeep.retain_last),
        FORMAT_PROPERTY: STORED_FORMAT,
        SOURCE_PROPERTY: target.source,
        MODE_PROPERTY: target.write_mode.value,
    }
    if pipeline_id is not None:
        own[PIPELINE_PROPERTY] = pipeline_id
    for column in schema.key_columns:
        own[metrics_property(column.name)] = KEY_METRICS
    return own | target.properties


def metrics_property(column: str) -> str:
    return f"write.metadata.metrics.column.{column}"


def _types(schema: TableSchema, target: LakeTarget) -> dict[str, LogicalType]:
    return {column.name: column.type for column in columns(schema, target)}


def can_identify(schema: TableSchema) -> bool:
    # Iceberg takes no floating-point, list or nullable identifier.
    kinds = {column.type.kind for column in schema.key_columns}
    return bool(kinds) and not kinds & {Kind.FLOAT, Kind.DOUBLE, Kind.LIST}
