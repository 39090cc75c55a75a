"""Which columns of a table are compared, and why others are not."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from tidegate.config.pipeline import LakeTarget
from tidegate.connectors.cut import ExactCut
from tidegate.lake import positions
from tidegate.lake.evolution import SchemaConflict, evolve
from tidegate.lake.lineage import read_lineage
from tidegate.lake.schema_history import SchemaHistory
from tidegate.names import CDC_PREFIX
from tidegate.schema.contract import contracted
from tidegate.schema.table import TableSchema

if TYPE_CHECKING:
    from pyiceberg.table import Table

IGNORED: Final = "schema_changes: ignore keeps it out of the lake"
LAKE_ONLY: Final = "in the lake only: the source has it no longer"


@dataclass(frozen=True, slots=True)
class ComparedColumns:
    """A table's schema at a cut, as the lake takes it."""

    schema: TableSchema
    not_compared: Mapping[str, str]
    """Columns of either side, and why they are left out."""

    @classmethod
    def of(
        cls, cut: ExactCut, target: LakeTarget, table: Table, history: SchemaHistory
    ) -> ComparedColumns:
        schema = contracted(cut.schema(target.table), target)
        ignored = _ignored(cut, schema, target, table, history)
        kept = tuple(column for column in schema.columns if column.name not in ignored)
        live = {column.name for column in schema.columns}
        fields = [field.name for field in table.schema().fields]
        only = [name for name in fields if name not in live and not name.startswith(CDC_PREFIX)]
        left = {**dict.fromkeys(only, LAKE_ONLY), **dict.fromkeys(ignored, IGNORED)}
        return cls(replace(schema, columns=kept), {**left, **cut.left_out(target.table)})


def _ignored(
    cut: ExactCut, schema: TableSchema, target: LakeTarget, table: Table, history: SchemaHistory
) -> list[str]:
    """Columns that a sweep would leave out as well."""
    lineage, stands = read_lineage(history, target), positions.applied(table)
    index = lineage.index_of(cut.schema(target.table).schema_id, cut.position.place)
    if index is None or stands is None:
        return []  # the log has no row under this schema: nothing was left out yet
    base = lineage.index_at(stands)
    try:
        taken = evolve(table.schema(), lineage, [index], base=base, sweeping=True).schemas[index]
    except SchemaConflict:
        return []  # what does not fit is found by comparing
    pairs = zip(schema.columns, taken.columns, strict=True)
    return [column.name for column, fitted in pairs if not fitted.taken]
