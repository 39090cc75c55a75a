"""A table's figures over time, for plots: from reports and snapshots, so they outlive every run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from pyiceberg.table import Table

from tidegate.config.pipeline import PipelineConfig
from tidegate.config.platform import PlatformConfig
from tidegate.control.lakehouse import row_count
from tidegate.control.status_cache import Look, StatusCache
from tidegate.control.tables import one_table
from tidegate.envelope.position import Position
from tidegate.lake import positions
from tidegate.lake.log_times import LogTimes
from tidegate.lake.looked import Looked
from tidegate.lake.reports import Report

_WORK = frozenset({"apply", "sweep"})


@dataclass(frozen=True, slots=True)
class Point:
    """One snapshot of a table on main: what it brought, and how old its newest change was."""

    at: datetime
    snapshot_id: int
    step: str | None
    rows: int | None
    inserted: int | None
    updated: int | None
    deleted: int | None
    seconds: float | None
    rows_per_second: float | None
    lag_seconds: float | None
    """From when the change log moved on past the snapshot before, to this snapshot: what readers
    waited for the oldest change in it. None where the log no longer tells."""


@dataclass(frozen=True, slots=True)
class Series:
    """Points, oldest first."""

    table: str
    points: tuple[Point, ...]


def series(
    pipeline: PipelineConfig,
    platform: PlatformConfig,
    table: str,
    limit: int = 500,
    lake: Look | None = None,
) -> Series:
    """The newest ``limit`` snapshots of ``table``; ``lake``: what is read already."""
    name = one_table(pipeline, table)
    lake = lake or StatusCache(pipeline, platform).look()
    loaded = lake.tables[name]
    if loaded is None:
        return Series(name, ())
    worked = changed_rows(lake.reports, name)
    points = _points(loaded, name, worked, lake.times, lake.looked)
    return Series(name, tuple(points[-limit:]))


def changed_rows(reports: Sequence[Report], table: str) -> dict[int, dict[str, float]]:
    """What applies and sweeps said they did to ``table``, by snapshot."""
    found: dict[int, dict[str, float]] = {}
    for report in reports:
        entries = report.body.get("tables") if report.kind in _WORK else None
        for entry in entries or ():
            snapshot = entry.get("snapshot_id")
            if entry.get("table") == table and snapshot is not None:
                told = {
                    key: entry[key]
                    for key in ("inserted", "updated", "deleted", "rows", "seconds")
                    if isinstance(entry.get(key), (int, float))
                }
                found.setdefault(int(snapshot), told)
    return found


def _points(
    table: Table,
    name: str,
    worked: dict[int, dict[str, float]],
    times: LogTimes,
    looked: Looked,
) -> list[Point]:
    points: list[Point] = []
    before: Position | None = None
    for info in positions.history(table):
        if not info.on_main:
            continue
        told = worked.get(info.snapshot_id, {})
        since = None if before is None else looked.through(name, before)
        seconds = told.get("seconds")
        moved = sum(told.get(key, 0) for key in ("inserted", "updated", "deleted", "rows"))
        points.append(
            Point(
                at=info.committed_at,
                snapshot_id=info.snapshot_id,
                step=info.step,
                rows=row_count(dict(info.summary)),
                inserted=_whole(told.get("inserted")),
                updated=_whole(told.get("updated")),
                deleted=_whole(told.get("deleted")),
                seconds=seconds,
                rows_per_second=moved / seconds if seconds and moved else None,
                lag_seconds=times.seconds_behind(since, info.committed_at),
            )
        )
        before = info.position or before
    return points


def _whole(value: float | None) -> int | None:
    return None if value is None else int(value)
