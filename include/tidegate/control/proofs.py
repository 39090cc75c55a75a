"""What is proven of each table, as status shows it."""

from __future__ import annotations

from pyiceberg.catalog import Catalog

from tidegate.config.pipeline import PipelineConfig
from tidegate.control.records import VerifiedThrough
from tidegate.lake.catalog import load
from tidegate.lake.proofs import Proofs, Standing, standing


def verified_through(catalog: Catalog, pipeline: PipelineConfig) -> dict[str, VerifiedThrough]:
    """By source table; tables that were never verified are absent."""
    known = Proofs(catalog, pipeline).read()
    return {
        target.source: _view(standing(load(catalog, target.identifier), known[target.source]))
        for target in pipeline.targets
        if target.source in known
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
