"""A lake table and the schemas that lie before it: what waits for someone's word."""

from __future__ import annotations

from dataclasses import dataclass, replace

from pyiceberg.catalog import Catalog
from pyiceberg.schema import Schema

from tidegate.config.pipeline import LakeTarget
from tidegate.envelope.position import Position
from tidegate.lake import positions
from tidegate.lake.approvals import Approval
from tidegate.lake.catalog import load
from tidegate.lake.evolution import SchemaConflict, evolve
from tidegate.lake.lineage import Lineage, read_lineage
from tidegate.lake.schema_history import SchemaHistory


@dataclass(frozen=True, slots=True)
class SchemaGround:
    """``base`` is the version in force where the lake table stands; None: not known."""

    existing: Schema
    lineage: Lineage
    base: int | None
    stands: Position

    @classmethod
    def of(
        cls, catalog: Catalog, history: SchemaHistory, target: LakeTarget
    ) -> SchemaGround | None:
        """None: the table was never swept, so nothing can be in its way."""
        table = load(catalog, target.identifier)
        stands = None if table is None else positions.applied(table)
        if table is None or stands is None:
            return None
        lineage = read_lineage(history, target)
        return cls(table.schema(), lineage, lineage.index_at(stands), stands)

    def conflict(self) -> SchemaConflict | None:
        """The first version after the table's position that the lake does not follow."""
        first = 0 if self.base is None else self.base
        for index in range(first, len(self.lineage.versions)):
            try:
                self._evolve(index)
            except SchemaConflict as conflict:
                return conflict
        return None

    def swept_over(self, index: int) -> bool:
        """Whether a sweep brings the lake to a version that apply does not follow to."""
        try:
            evolve(self.existing, self.lineage, [index], base=self.base, sweeping=True)
        except SchemaConflict:
            return False
        return True

    def statements(self, index: int) -> tuple[str, ...]:
        """What the lake does to hold rows of every version up to ``index``."""
        return self._evolve(index)

    def approved(self, index: int, approval: Approval) -> SchemaGround:
        """As if ``approval`` were given."""
        found = list(self.lineage.versions)
        found[index] = replace(found[index], approval=approval)
        return replace(self, lineage=self.lineage.having(found))

    def _evolve(self, index: int) -> tuple[str, ...]:
        first = 0 if self.base is None else self.base
        wanted = list(range(first, index + 1))
        return evolve(self.existing, self.lineage, wanted, base=self.base).statements
