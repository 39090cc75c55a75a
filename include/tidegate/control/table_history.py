"""A table's snapshots with what each one changed, by the reports of the runs that made them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tidegate.config.pipeline import PipelineConfig
from tidegate.config.platform import PlatformConfig
from tidegate.control import lakehouse
from tidegate.control.records import SnapshotRow
from tidegate.control.series import changed_rows
from tidegate.control.tables import one_table
from tidegate.lake.catalog import open_catalog
from tidegate.lake.reports import KEPT, Report, Reports


@dataclass(frozen=True, slots=True)
class ChangedSnapshot:
    """A snapshot and its rows' changes; None where no report tells."""

    snapshot: SnapshotRow
    inserted: int | None
    updated: int | None
    deleted: int | None


def snapshots(
    pipeline: PipelineConfig,
    platform: PlatformConfig,
    table: str,
    reports: Sequence[Report] | None = None,
) -> list[ChangedSnapshot]:
    """Retained snapshots of one table, newest first; ``reports``: those that are read already."""
    name = one_table(pipeline, table)
    if reports is None:
        reports = Reports(open_catalog(platform, pipeline), pipeline).recent(limit=KEPT)
    worked = changed_rows(reports, name)
    found = []
    for row in reversed(lakehouse.snapshots(pipeline, platform, [name])):
        told = worked.get(row.snapshot_id, {})
        counts = {key: int(value) for key, value in told.items() if key != "seconds"}
        found.append(
            ChangedSnapshot(
                row,
                counts.get("inserted", counts.get("rows")),
                counts.get("updated"),
                counts.get("deleted"),
            )
        )
    return found
