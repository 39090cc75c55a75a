"""What is proven of each table, as status shows it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pyiceberg.table import Table

from tidegate.control.records import VerifiedThrough
from tidegate.lake.proofs import Proof, Standing, standing


def verified_through(
    proofs: Mapping[str, Sequence[Proof]], tables: Mapping[str, Table | None]
) -> dict[str, VerifiedThrough]:
    """What ``proofs`` are worth on ``tables`` as they are, by source name; tables that were never
    verified are absent."""
    return {
        name: _view(standing(table, proofs[name]))
        for name, table in tables.items()
        if name in proofs
    }


def _view(found: Standing) -> VerifiedThrough:
    coverage = found.coverage
    oldest, newest = coverage.oldest, coverage.newest
    return VerifiedThrough(
        position=oldest.position if oldest else None,
        at=oldest.at if oldest else None,
        coverage=coverage.percent,
        runs=coverage.runs,
        last_position=newest.position if newest else None,
        last_at=newest.at if newest else None,
        snapshot_id=found.proof.snapshot_id if found.proof else None,
        differs=bool(coverage.differing),
        withdrawn=found.withdrawn,
    )
