"""What one application of a batch changed, in numbers: Iceberg's own, from the snapshots."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Final

from pyiceberg.table import Table
from pyiceberg.table.snapshots import Operation

from tidegate.lake.positions import ancestors, summary

_MERGED: Final = "spark.merge-into.num-target-rows-"


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one application changed."""

    snapshot_id: int
    inserted: int
    updated: int
    deleted: int
    truncated: bool
    seconds: float
    adjusted: dict[str, int] = field(default_factory=dict)
    parked: int = 0
    """Changes that became dead letters, those that wait behind others included (I7)."""


def counts(table: Table, ref: str, start: int | None) -> Counter[str]:
    """Rows inserted, updated and deleted by the statements after ``start``."""
    total: Counter[str] = Counter()
    for snapshot in ancestors(table.metadata, ref):
        if snapshot.snapshot_id == start:
            break
        facts = summary(snapshot)
        merged = {key: int(value) for key, value in facts.items() if key.startswith(_MERGED)}
        total.update({key.removeprefix(_MERGED): count for key, count in merged.items()})
        if not merged and snapshot.summary and snapshot.summary.operation is Operation.APPEND:
            total["inserted"] += int(facts.get("added-records", 0))
    return total
