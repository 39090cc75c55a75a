"""The lake's columns brought to hold every schema of a batch (I8)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from pyiceberg.catalog import Catalog
from pyiceberg.table import Table
from pyspark.sql import SparkSession

from tidegate import faults
from tidegate.config.pipeline import LakeTarget
from tidegate.envelope.position import Position
from tidegate.lake.evolution import SchemaConflict, evolve
from tidegate.lake.lineage import Lineage, read_lineage
from tidegate.lake.schema_history import SchemaHistory, unknown_schema
from tidegate.lake.schema_hold import held_error
from tidegate.schema.table import TableSchema
from tidegate.spark.fence import reload
from tidegate.spark.survey import SchemaShare, Survey

INCOMPATIBLE: Final = "apply.schema_incompatible"


def evolved(
    session: SparkSession,
    catalog: Catalog,
    history: SchemaHistory,
    target: LakeTarget,
    found: Survey,
    *,
    after: Position,
    check: Callable[[], None],
) -> tuple[Table, list[tuple[TableSchema, SchemaShare]]]:
    """The table, and the batch's schemas as the lake takes them; a table that cannot follow is
    held. ``after`` is where it stands."""
    table = reload(catalog, target)
    if not found.shares:
        return table, []
    lineage = read_lineage(history, target)
    places = [_version(lineage, share) for share in found.shares]
    try:
        change = evolve(table.schema(), lineage, places, base=lineage.index_at(after))
        schemas = [change.schemas[place] for place in places]
        if len({tuple(column.name for column in schema.key_columns) for schema in schemas}) > 1:
            raise SchemaConflict(places[-1], ["the key changed within the batch"])
    except SchemaConflict as conflict:
        raise held_error(INCOMPATIBLE, table.schema(), lineage, conflict) from None
    if change.needed:
        check()  # I4
        for statement in change.statements:
            session.sql(statement)
            faults.point("apply.after_evolve")
        table = reload(catalog, target)
    return table, list(zip(schemas, found.shares, strict=True))


def _version(lineage: Lineage, share: SchemaShare) -> int:
    index = lineage.index_of(share.schema_id, share.first)
    if index is None:
        raise unknown_schema(share.schema_id)
    return index
