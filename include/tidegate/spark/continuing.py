"""Continuing a proof: a table that was equal is equal again if all that changed since is.

At the proof's cut every row of the source was a row of the lake. What was changed or added since is
told by the source through the versions of its rows, by the lake through its row lineage and through
the keys it no longer has. These keys are compared. What is left of the lake is then exactly what it
was; what is left of the source is part of what it was; and the same number of rows makes both the
same. Where anything cannot be told, or differs, the answer is None and every row is looked at.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from pyiceberg.table import Table
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from tidegate.config.pipeline import LakeTarget
from tidegate.config.platform import SweepConfig
from tidegate.config.sinks import WriteMode
from tidegate.connectors.marking import Changed, MarkingCut
from tidegate.lake import commits, positions
from tidegate.lake.proofs import Base
from tidegate.schema.table import TableSchema
from tidegate.spark.audit import column as named
from tidegate.spark.keyspace import bucket
from tidegate.spark.selection import keys_predicate
from tidegate.spark.sides import Part, Sides
from tidegate.spark.verify import compare
from tidegate.spark.verify_rows import lake_rows

MOST: Final = 5
"""Beyond one row in so many, looking at all of them by sums is cheaper."""
FEW: Final = 100_000
"""Rows that may have changed in a table of any size."""
_LINEAGE: Final = "_last_updated_sequence_number"
_LINEAGE_FORMAT: Final = 3


@dataclass(frozen=True, slots=True)
class Continued:
    """An equal table."""

    rows: int
    compared: int
    """Rows of the source that changed since the proof, or whose keys did in the lake."""


@dataclass(frozen=True, slots=True)
class Continuing:
    """One table, at a cut that the lake stands at, and the proof that is continued."""

    session: SparkSession
    cut: MarkingCut
    target: LakeTarget
    schema: TableSchema
    settings: SweepConfig
    table: Table
    base: Base

    def equal(self) -> Continued | None:
        """None: not this way."""
        touched = positions.rows_changed_since(self.table, self.base.snapshot_id)
        if touched is None or (touched and not self._has_lineage):
            return None
        seen = self.cut.changed(self.target.table, self.schema, self.base.mark)
        if seen is None or seen.changed > max(FEW, seen.rows // MOST):
            return None
        if touched or seen.changed:
            return self._compared(seen, touched)
        return Continued(seen.rows, 0) if seen.rows == self.base.rows else None

    @property
    def _has_lineage(self) -> bool:
        """Whether the lake says when each of its rows was written."""
        one_row_a_key = self.target.write_mode is WriteMode.UPSERT and not self.target.soft_delete
        return one_row_a_key and self.table.metadata.format_version >= _LINEAGE_FORMAT

    def _compared(self, seen: Changed, touched: bool) -> Continued | None:
        sides = self._sides(seen.predicate)
        theirs = sides.source().persist()
        lake = sides.lake(self._head)
        ours = (self._touched_keys(lake) if touched else self._keys(theirs)).persist()
        try:
            elsewhere = ours.join(self._keys(theirs), self._names, "left_anti")
            by_key = keys_predicate(sides, elsewhere)
            if by_key is None:
                return None
            rows = theirs
            if by_key != "false":
                found = self._sides(by_key).source()
                rows = theirs.unionByName(found.join(elsewhere, self._names, "left_semi"))
            wanted = self._keys(theirs).union(ours).distinct()
            own = lake.join(wanted, self._names, "left_semi")
            result = compare(lambda: rows, own, self.schema, bucket(self.schema), limit=0)
            result.release()
            if not result.equal or lake.count() != seen.rows:
                return None
            return Continued(seen.rows, result.source_rows)
        finally:
            theirs.unpersist()
            ours.unpersist()

    def _sides(self, predicate: str) -> Sides:
        part = Part(predicate, (predicate,))
        return Sides.of(self.session, self.cut, self.target, self.schema, self.settings, part)

    def _touched_keys(self, lake: DataFrame) -> DataFrame:
        """Keys the lake has written since the proof, and those it no longer has."""
        base = self.table.metadata.snapshot_by_id(self.base.snapshot_id)
        assert base is not None, "asked for by rows_changed_since"
        written = self._at(self._head).where(F.col(_LINEAGE) > F.lit(base.sequence_number))
        gone = self._keys(self._at(base.snapshot_id)).join(
            self._keys(lake), self._names, "left_anti"
        )
        return self._keys(written).union(gone).distinct()

    def _at(self, snapshot_id: int) -> DataFrame:
        return lake_rows(self.session, self.target, self.schema, snapshot_id)

    @property
    def _head(self) -> int:
        return commits.head_id(self.table) or 0

    def _keys(self, rows: DataFrame) -> DataFrame:
        return rows.select(*(named(name) for name in self._names))

    @property
    def _names(self) -> list[str]:
        return [column.name for column in self.schema.key_columns]
