"""The lake's columns brought to hold every schema of a batch (I8)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from pyiceberg.catalog import Catalog
from pyiceberg.table import Table
from pyspark.sql import SparkSession

from tidegate import faults
from tidegate.config.pipeline import LakeTarget
from tidegate.lake.evolution import SchemaConflict, evolve
from tidegate.lake.lineage import Lineage, read_lineage
from tidegate.lake.schema_history import SchemaHistory, unknown_schema
from tidegate.lake.schema_hold import held_error, needs_sweep
from tidegate.lake.variant_type import check_format
from tidegate.schema.table import Column, TableSchema
from tidegate.spark.fence import reload
from tidegate.spark.survey import LogRange, SchemaShare, Survey

INCOMPATIBLE: Final = "apply.schema_incompatible"


@dataclass(frozen=True, slots=True)
class Ready:
    """A table that can take a batch."""

    table: Table
    schemas: list[tuple[TableSchema, SchemaShare]]  # of the batch, as the lake takes them
    fills: tuple[Column, ...] = ()  # what all its rows get first (``given``)


def evolved(
    session: SparkSession,
    catalog: Catalog,
    history: SchemaHistory,
    target: LakeTarget,
    found: Survey,
    *,
    span: LogRange,
    check: Callable[[], None],
) -> Ready:
    """The table with columns for the batch; a table that cannot follow is held."""
    table = reload(catalog, target)
    lineage = read_lineage(history, target)
    places = [_version(lineage, share) for share in found.shares]
    base, end = lineage.index_at(span.after), lineage.index_at(span.until)
    # A version may have no rows yet: what it did to older ones belongs to its place all the same.
    wanted = places if end is None or end == base else [*places, end]
    emptied = found.truncates[-1][0] if found.truncates else ""
    existing = table.schema()
    try:
        change = evolve(existing, lineage, wanted, base=base, emptied=emptied) if wanted else None
        schemas = [change.schemas[place] for place in places] if change else []
        if len({tuple(column.name for column in schema.key_columns) for schema in schemas}) > 1:
            raise SchemaConflict(places[-1], ["the key changed within the batch"])
    except SchemaConflict as conflict:
        raise held_error(INCOMPATIBLE, existing, lineage, conflict) from None
    unsent = lineage.unsent(span.after, span.until)
    if unsent:
        raise needs_sweep(target.source, unsent)
    check_format(table, schemas)
    if change is not None and change.needed:
        check()  # I4
        for statement in change.statements:
            session.sql(statement)
            faults.point("apply.after_evolve")
        table = reload(catalog, target)
    shares = list(zip(schemas, found.shares, strict=True))
    return Ready(table, shares, change.fills if change else ())


def _version(lineage: Lineage, share: SchemaShare) -> int:
    index = lineage.index_of(share.schema_id, share.first)
    if index is None:
        raise unknown_schema(share.schema_id)
    return index
