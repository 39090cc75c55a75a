"""Where a pipeline stands: the lake's own records, and the source's if it is asked."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, Final

from pyiceberg.table import Table

from tidegate.config.pipeline import LakeTarget, PipelineConfig
from tidegate.config.platform import PlatformConfig
from tidegate.connectors.registry import distance
from tidegate.connectors.source_status import SourceStatus
from tidegate.control.gates import gate_status
from tidegate.control.guard import assess
from tidegate.control.lakehouse import row_count
from tidegate.control.proofs import verified_through
from tidegate.control.records import (
    PipelineLag,
    PipelineStatus,
    TableLag,
    TableStatus,
)
from tidegate.control.registry import registry_status
from tidegate.control.running import record
from tidegate.control.source import look_at_source
from tidegate.control.status_cache import Look, StatusCache
from tidegate.envelope.position import Position
from tidegate.errors import TidegateError
from tidegate.lake import positions
from tidegate.lake.log_times import LogTimes
from tidegate.lake.looked import Looked
from tidegate.lake.reports import Report

_SHOWN_KINDS: Final = frozenset({"apply", "sweep"})
_WRITTEN: Final = frozenset({"applied", "swept"})
_REPORTS_READ: Final = 500
"""Newest reports looked through for each table's last apply and sweep."""


def status(
    pipeline: PipelineConfig, platform: PlatformConfig, *, ask_source: bool = True
) -> PipelineStatus:
    """Everything ``tidegate status`` shows. Reads metadata only."""
    lake = StatusCache(pipeline, platform).look()
    return status_of(lake, pipeline, platform, ask_source=ask_source)


def status_of(
    lake: Look, pipeline: PipelineConfig, platform: PlatformConfig, *, ask_source: bool
) -> PipelineStatus:
    """The status that the lake's records tell; with ``ask_source`` also the source's side."""
    times = lake.times
    look = look_at_source(pipeline, platform, times) if ask_source else None
    reports = lake.reports[:_REPORTS_READ]
    behind = _Behind(pipeline, times, lake.looked, look.status if look else None)
    last, adjusted = _last_reports(reports), _adjusted(reports)
    wanted = {name: lake.tables[name] for name in pipeline.source.tables}
    proven = verified_through(lake.proofs, wanted)
    tables = tuple(
        replace(
            _table(lake, target, behind, last),
            adjusted=dict(adjusted.get(target.source, {})),
            verified_through=proven.get(target.source),
            dead_letters=lake.letters[target.source],
        )
        for target in pipeline.targets
    )
    return PipelineStatus(
        pipeline_id=pipeline.pipeline_id,
        source_type=pipeline.source.source_type,
        deployed=times.head is not None,
        captured_through=str(times.head) if times.head else None,
        captured_at=times.head_at,
        capture_lag_bytes=behind.capture(),
        source=look.side if look else None,
        tables=tables,
        guard=assess(lake.catalog, pipeline, platform, look, tables, reports) if look else None,
        registry=registry_status(lake.catalog, pipeline, platform),
        running=record(pipeline.pipeline_id, lake.pause),
    )


def lag(
    pipeline: PipelineConfig, platform: PlatformConfig, *, ask_source: bool = True
) -> PipelineLag:
    """How far behind; a part of :func:`status`."""
    return lag_of(status(pipeline, platform, ask_source=ask_source))


def lag_of(now: PipelineStatus) -> PipelineLag:
    """The part of a status that says how far behind."""
    return PipelineLag(
        pipeline_id=now.pipeline_id,
        capture_bytes=now.capture_lag_bytes,
        retained_bytes=now.source.retained_bytes if now.source else None,
        tables=tuple(
            TableLag(table.table, table.gate.state, table.lag_bytes, table.lag_seconds)
            for table in now.tables
        ),
        guard=now.guard,
    )


class _Behind:
    """How far behind: the log behind the source, a table behind the log."""

    def __init__(
        self,
        pipeline: PipelineConfig,
        times: LogTimes,
        looked: Looked,
        source: SourceStatus | None,
    ) -> None:
        self.times = times
        self._looked = looked
        self._source = source
        self._distance = distance(pipeline.source.source_type)

    def capture(self) -> int | None:
        if self.times.head is None or self._source is None:
            return None
        return self._distance(self.times.head, self._source.current, self._source)

    def reflects(self, table: str, position: Position | None) -> Position | None:
        return None if position is None else self._looked.through(table, position)

    def bytes(self, reflects: Position | None) -> int | None:
        head = self.times.head
        if head is None or reflects is None:
            return None
        return self._distance(reflects, head, self._source)


def _table(
    lake: Look,
    target: LakeTarget,
    behind: _Behind,
    last: dict[tuple[str, str], dict[str, Any]],
) -> TableStatus:
    table = lake.tables[target.source]
    position, needs = _position(table, behind.times)
    reflects = behind.reflects(target.source, position)
    snapshot = table.current_snapshot() if table is not None else None
    return TableStatus(
        table=target.source,
        lake_table=".".join(target.identifier),
        write_mode=target.write_mode.value,
        gate=gate_status(target.source, lake.gates[target.source]),
        exists=table is not None,
        position=str(position) if position else None,
        lag_bytes=behind.bytes(reflects),
        lag_seconds=behind.times.seconds_behind(reflects),
        snapshot_id=snapshot.snapshot_id if snapshot else None,
        snapshot_at=datetime.fromtimestamp(snapshot.timestamp_ms / 1000, UTC) if snapshot else None,
        rows=row_count(positions.summary(snapshot)) if snapshot else None,
        needs=needs,
        last_apply=last.get(("apply", target.source)),
        last_sweep=last.get(("sweep", target.source)),
        reflects=str(reflects) if reflects else None,
    )


def _position(table: Table | None, times: LogTimes) -> tuple[Position | None, str | None]:
    """Where a table stands, and what it needs before changes flow."""
    if times.head is None:
        return None, "deploy"
    if table is None:
        return None, "a first sweep"
    try:
        position = positions.applied(table)
    except TidegateError as error:
        return None, f"{error.message}: {error.hint}"
    if position is None:
        return None, "a first sweep"
    if position.epoch != times.head.epoch:
        return position, "a sweep: the source's log began anew"
    return position, None


def _last_reports(reports: Sequence[Report]) -> dict[tuple[str, str], dict[str, Any]]:
    """The newest entry per kind and table."""
    last: dict[tuple[str, str], dict[str, Any]] = {}
    for report, entry in _entries(reports):
        key = (report.kind, str(entry.get("table")))
        last.setdefault(key, {"run": report.run, "at": report.at, **entry})
    return last


def _adjusted(reports: Sequence[Report]) -> dict[str, Counter[str]]:
    """Values that policies changed, per table and column, since and with its newest sweep."""
    found: dict[str, Counter[str]] = {}
    swept: set[str] = set()
    for report, entry in _entries(reports):
        table = str(entry.get("table"))
        if table in swept or entry.get("status") not in _WRITTEN:
            continue
        found.setdefault(table, Counter()).update(entry.get("adjusted") or {})
        if report.kind == "sweep":
            swept.add(table)
    return found


def _entries(reports: Sequence[Report]) -> Iterator[tuple[Report, dict[str, Any]]]:
    """What applies and sweeps said of each table, newest first."""
    for report in reports:
        if report.kind in _SHOWN_KINDS:
            for entry in report.body.get("tables") or ():
                yield report, entry
