"""The source guard: what a pipeline holds on its source and in its change log; is it too much?"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Final

from pyiceberg.catalog import Catalog

from tidegate.config.pipeline import PipelineConfig
from tidegate.config.platform import PlatformConfig
from tidegate.control.records import TableStatus
from tidegate.control.source import Look
from tidegate.envelope.position import Position
from tidegate.lake.catalog import load
from tidegate.lake.change_log import ChangeLog
from tidegate.lake.log_files import Backlog
from tidegate.lake.reports import Report
from tidegate.transports.guard import Figures, Guard, LogFigures, TableFigures, judge

_UP_TO_DATE: Final = frozenset({"applied", "unchanged"})
"""What an apply says of a table that now has everything up to ``to_position``."""


def assess(
    catalog: Catalog,
    pipeline: PipelineConfig,
    platform: PlatformConfig,
    look: Look,
    tables: Iterable[TableStatus],
    reports: Iterable[Report],
) -> Guard:
    """The judgement on a pipeline whose source was looked at; ``reports`` newest first."""
    now = datetime.now(UTC)
    reflected = _reflected(reports)
    table = load(catalog, ChangeLog(catalog, pipeline).identifier)
    if table is None or table.current_snapshot() is None:
        return judge(Figures(None, look.side.problem), platform.guard)  # not deployed: no slot
    backlog = Backlog.read(table)
    figures = Figures(
        source=look.figures,
        problem=look.side.problem,
        log=LogFigures(backlog.bytes, _seconds(backlog.oldest, now)),
        tables=tuple(
            _table(status, reflected.get(status.table), backlog, now)
            for status in tables
            if status.position
        ),
    )
    return judge(figures, platform.guard)


def _table(
    status: TableStatus,
    reflected: tuple[Position, datetime] | None,
    backlog: Backlog,
    now: datetime,
) -> TableFigures:
    stands, looked = Position.parse(status.position or ""), status.snapshot_at
    if reflected is not None and reflected[0].epoch == stands.epoch and reflected[0] >= stands:
        # Nothing changed in it up to there: only the report moved on.
        stands, looked = reflected[0], max(looked or reflected[1], reflected[1])
    since = backlog.waiting_since(status.table, stands)
    if since is not None and looked is not None:
        since = max(since, looked)  # a file's first row may be one that was applied
    return TableFigures(
        status.table, status.gate.state, _seconds(looked, now), _seconds(since, now)
    )


def _reflected(reports: Iterable[Report]) -> dict[str, tuple[Position, datetime]]:
    """Up to where the newest apply that reached a table found it complete, and when."""
    found: dict[str, tuple[Position, datetime]] = {}
    for report in reports:
        for entry in report.body.get("tables") or () if report.kind == "apply" else ():
            reached = entry.get("to_position")
            if reached and entry.get("status") in _UP_TO_DATE:
                found.setdefault(str(entry["table"]), (Position.parse(reached), report.at))
    return found


def _seconds(moment: datetime | None, now: datetime) -> float | None:
    return None if moment is None else max(0.0, round((now - moment).total_seconds(), 1))
