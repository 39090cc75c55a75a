"""A pipeline's figures for monitoring, read from snapshots and control tables when they are asked
for: what a batch job did is still told when the job is long gone."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from pyiceberg.catalog import Catalog
from pyiceberg.table import Table

from tidegate.config.pipeline import PipelineConfig
from tidegate.config.platform import PlatformConfig
from tidegate.control.records import PipelineStatus, TableStatus
from tidegate.control.schemas import held
from tidegate.control.status import status_of
from tidegate.control.status_cache import StatusCache
from tidegate.control.table_detail import table_files
from tidegate.lake import positions
from tidegate.lake.catalog import load
from tidegate.lake.change_log import ChangeLog
from tidegate.lake.gate_fold import GateState
from tidegate.lake.report_totals import Durations
from tidegate.lake.reports import Reports
from tidegate.names import CHUNK_PROPERTY, sweep_branch
from tidegate.observability import metrics as names
from tidegate.observability.metrics import Metric
from tidegate.transports.guard import Guard, Verdict

_VERDICTS: Final = {Verdict.OK: 0, Verdict.WARN: 1, Verdict.ACT: 2}


@dataclass(frozen=True, slots=True)
class Sample:
    """One figure; ``durations`` in place of ``value`` for a histogram."""

    metric: Metric
    labels: tuple[str, ...]
    value: float = 0.0
    durations: Durations | None = None


def measure(
    pipeline: PipelineConfig, platform: PlatformConfig, *, ask_source: bool
) -> Iterator[Sample]:
    """Everything known of one pipeline; with ``ask_source`` also what it holds on its source."""
    lake = StatusCache(pipeline, platform).look()
    catalog, name = lake.catalog, pipeline.pipeline_id
    now = status_of(lake, pipeline, platform, ask_source=ask_source)
    yield Sample(names.UP, (name,), 1)
    yield Sample(names.RUNNING, (name,), now.running is None or not now.running.stopped)
    yield Sample(names.DEPLOYED, (name,), now.deployed)
    yield from _capture(now)
    yield from _totals(catalog, pipeline)
    yield from _log(catalog, pipeline)
    waiting = {found.table for found in held(pipeline, platform)}
    for table in now.tables:
        labels = (name, table.table)
        yield from _table(labels, table)
        yield Sample(names.SCHEMA_HELD, labels, table.table in waiting)
        loaded = lake.tables[table.table]
        if loaded is not None:
            yield from _files(labels, loaded, table)


def _capture(now: PipelineStatus) -> Iterator[Sample]:
    own = (now.pipeline_id,)
    if now.captured_at is not None:
        yield Sample(names.CAPTURED_AGE, own, _age(now.captured_at))
    if now.capture_lag_bytes is not None:
        yield Sample(names.CAPTURE_LAG_BYTES, own, now.capture_lag_bytes)
    if now.source is not None:
        yield Sample(names.SOURCE_UP, own, now.source.reachable)
    if now.guard is not None:
        yield from _guard(own, now.guard)


def _guard(own: tuple[str], guard: Guard) -> Iterator[Sample]:
    for finding in guard.findings:
        yield Sample(names.GUARD, (*own, finding.check), _VERDICTS[finding.verdict])
    held_there = guard.figures.source
    if held_there is not None:
        for metric, value in (
            (names.RETAINED, held_there.retained_bytes),
            (names.HOURS_LEFT, held_there.hours_left),
            (names.XMIN_AGE, held_there.xmin_age),
        ):
            if value is not None:
                yield Sample(metric, own, value)


def _totals(catalog: Catalog, pipeline: PipelineConfig) -> Iterator[Sample]:
    name = pipeline.pipeline_id
    totals = Reports(catalog, pipeline).totals()
    yield Sample(names.CAPTURED, (name,), totals.captured)
    for (table, op), count in totals.applied.items():
        yield Sample(names.APPLIED, (name, table, op), count)
    for table, count in totals.swept.items():
        yield Sample(names.SWEPT, (name, table), count)
    for kind, durations in totals.durations.items():
        yield Sample(names.DURATION, (name, kind), durations=durations)


def _log(catalog: Catalog, pipeline: PipelineConfig) -> Iterator[Sample]:
    table = load(catalog, ChangeLog(catalog, pipeline).identifier)
    if table is not None:
        files = table_files(table)
        yield Sample(names.LOG_BYTES, (pipeline.pipeline_id,), files.bytes)
        yield Sample(names.LOG_FILES, (pipeline.pipeline_id,), files.data_files)


def _table(labels: tuple[str, str], table: TableStatus) -> Iterator[Sample]:
    for state in GateState:
        yield Sample(names.GATE, (*labels, state.value), table.gate.state == state.value)
    if table.gate.state != GateState.OPEN.value and table.gate.since is not None:
        yield Sample(names.GATE_AGE, labels, _age(table.gate.since))
    yield Sample(names.DEAD_LETTERS, labels, table.dead_letters)
    for metric, value in (
        (names.LAG_BYTES, table.lag_bytes),
        (names.LAG_SECONDS, table.lag_seconds),
        (names.TABLE_ROWS, table.rows),
    ):
        if value is not None:
            yield Sample(metric, labels, value)
    proven = table.verified_through
    if proven is not None:
        yield Sample(names.VERIFIED_SHARE, labels, proven.coverage)
        yield Sample(names.VERIFIED_DIFFERS, labels, proven.differs)
        if proven.last_at is not None:
            yield Sample(names.VERIFIED_AGE, labels, _age(proven.last_at))


def _files(labels: tuple[str, str], table: Table, seen: TableStatus) -> Iterator[Sample]:
    files = table_files(table)
    yield Sample(names.DATA_FILES, labels, files.data_files)
    yield Sample(names.DELETE_FILES, labels, files.delete_files)
    yield Sample(names.TABLE_BYTES, labels, files.bytes)
    if seen.gate.state != GateState.SWEEPING.value or seen.gate.run is None:
        return
    chunks, rows = 0, 0
    for snapshot in positions.ancestors(table.metadata, sweep_branch(seen.gate.run)):
        facts = positions.summary(snapshot)
        if CHUNK_PROPERTY in facts:
            chunks += 1
            rows += int(facts.get("added-records", 0))
    yield Sample(names.SWEEP_CHUNKS, labels, chunks)
    yield Sample(names.SWEEP_ROWS, labels, rows)


def _age(moment: datetime) -> float:
    return max(0.0, (datetime.now(UTC) - moment).total_seconds())
