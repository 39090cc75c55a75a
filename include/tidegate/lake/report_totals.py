"""What all runs did together: sums that stay when the reports they were made of are forgotten.

Metrics that only grow must not fall because old reports are dropped; a fold therefore leaves their
sums behind, and every reader adds the same sums to the same reports.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

BUCKETS: Final = (0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 900.0, 3600.0)
"""Seconds. A capture of nothing takes one, a small apply ten, a large sweep an hour."""
TIMED: Final = frozenset({"capture", "apply", "sweep"})
OPS: Final = ("inserted", "updated", "deleted")


@dataclass(slots=True)
class Durations:
    """How many runs took how long; one more count than there are bounds."""

    counts: list[int] = field(default_factory=lambda: [0] * (len(BUCKETS) + 1))
    seconds: float = 0.0

    def add(self, seconds: float) -> None:
        self.counts[bisect_left(BUCKETS, seconds)] += 1
        self.seconds += seconds


@dataclass(slots=True)
class Totals:
    """Sums over runs."""

    captured: int = 0
    transactions: int = 0
    applied: Counter[tuple[str, str]] = field(default_factory=Counter)  # (table, op)
    parked: Counter[str] = field(default_factory=Counter)  # table
    swept: Counter[str] = field(default_factory=Counter)  # table
    durations: dict[str, Durations] = field(default_factory=dict)  # by kind

    def add(self, kind: str, body: Mapping[str, Any]) -> None:
        """Count one report."""
        if kind in TIMED and isinstance(body.get("seconds"), (int, float)):
            self.durations.setdefault(kind, Durations()).add(float(body["seconds"]))
        if kind == "capture":
            self.captured += int(body.get("rows") or 0)
            self.transactions += int(body.get("transactions") or 0)
        for entry in body.get("tables") or () if kind in ("apply", "sweep") else ():
            table = str(entry.get("table"))
            if kind == "sweep":
                self.swept[table] += int(entry.get("rows") or 0)
                continue
            for op in OPS:
                self.applied[table, op] += int(entry.get(op) or 0)
            self.parked[table] += int(entry.get("parked") or 0)

    def to_dict(self) -> dict[str, Any]:
        return {
            "captured": self.captured,
            "transactions": self.transactions,
            "applied": [[table, op, n] for (table, op), n in self.applied.items()],
            "parked": dict(self.parked),
            "swept": dict(self.swept),
            "durations": {
                kind: {"counts": found.counts, "seconds": found.seconds}
                for kind, found in self.durations.items()
            },
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Totals:
        return cls(
            captured=data["captured"],
            transactions=data["transactions"],
            applied=Counter({(table, op): n for table, op, n in data["applied"]}),
            parked=Counter(data["parked"]),
            swept=Counter(data["swept"]),
            durations={
                kind: Durations(list(found["counts"]), found["seconds"])
                for kind, found in data["durations"].items()
            },
        )
