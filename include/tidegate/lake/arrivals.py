"""Columns that came with a version, and what the source says of older rows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tidegate.lake.lineage import Lineage
from tidegate.schema.diff import ChangeKind
from tidegate.schema.table import Column

_COME = (ChangeKind.ADD, ChangeKind.REPLACE)


@dataclass(frozen=True, slots=True)
class Arrival:
    """A column whose older rows have more than null; ``text`` is None where nobody can tell."""

    index: int
    column: Column
    text: str | None


def arrivals(lineage: Lineage, first: int, last: int) -> Iterator[Arrival]:
    """Of the versions ``first`` to ``last``."""
    for index in range(max(first, 1), last + 1):
        told = lineage.step(index).changes
        if any(change.kind is ChangeKind.RECREATE for change in told):
            continue  # other rows: what the old ones have is of no interest
        for change in told:
            name = change.column if change.kind in _COME else None
            column = None if name is None else lineage.schema(index).column(name)
            found = None if column is None else lineage.initial(index, column)
            if column is not None and found is not None:
                yield Arrival(index, column, found.text)
