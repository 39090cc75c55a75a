"""Cuts that know which rows have changed since an earlier one."""

from __future__ import annotations

from typing import NamedTuple, Protocol, runtime_checkable

from tidegate.connectors.cut import ExactCut
from tidegate.envelope.mark import Mark
from tidegate.names import TableId
from tidegate.schema.table import TableSchema


class Changed(NamedTuple):
    """A table at a cut, against a mark of it."""

    rows: int
    """All rows at the cut."""
    changed: int
    """Those of ``predicate``."""
    predicate: str
    """Rows that were not there at the mark in this version. Others may be among them; no row that
    is not was changed or added since. Holds no row value (I9)."""


@runtime_checkable
class MarkingCut(ExactCut, Protocol):
    """A source whose rows carry their version: optional, comparing goes without it."""

    def mark(self, table: TableId, schema: TableSchema) -> Mark | None:
        """The table at this cut; None where versions do not tell all of it."""
        ...

    def changed(self, table: TableId, schema: TableSchema, since: Mark) -> Changed | None:
        """What has changed since ``since``; None where that can no longer be told."""
        ...
