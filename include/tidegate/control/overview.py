"""A pipeline at a glance: one line of figures, what is wrong, and a short line for every table."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from tidegate.control.activity import Activity, activity
from tidegate.control.attention import HEALTHY, SEVERITIES, Finding, conditions, findings, helps
from tidegate.control.records import GateStatus, PipelineStatus, TableStatus
from tidegate.control.running import Running
from tidegate.control.status import status_of
from tidegate.control.status_cache import StatusCache

_FULL: Final = 100.0
_WORK: Final = frozenset({"bad", "warn"})


@dataclass(frozen=True, slots=True)
class TableLine:
    """One table, as a list shows it. Its own page has the rest."""

    table: str
    state: str  # the gravest of its conditions, or healthy
    conditions: tuple[str, ...]
    action: str | None  # what ends the gravest of them; None where nothing has to be done
    gate: GateStatus
    needs: str | None
    lag_bytes: int | None
    lag_seconds: float | None
    rows: int | None
    snapshot_id: int | None
    snapshot_at: datetime | None
    dead_letters: int
    proven: float | None  # percent of the keys; None: never verified
    differs: bool
    position: str | None
    activity: Activity | None  # None: nothing ran within the day


@dataclass(frozen=True, slots=True)
class PipelineOverview:
    """One line of figures, what is wrong, and the tables."""

    pipeline_id: str
    source_type: str
    deployed: bool
    running: Running | None
    captured_through: str | None
    captured_at: datetime | None
    tables: int
    gates: dict[str, int]
    states: dict[str, int]  # tables per state
    conditions: dict[str, int]  # tables per condition; a table may be in several
    worst_lag_seconds: float | None
    worst_lag_bytes: int | None
    worst_lag_table: str | None
    dead_letters: int
    proven_tables: int  # every key proven, and none differs
    proven_share: float  # percent of all keys, each table counting the same
    activity: Activity
    findings: tuple[Finding, ...]
    lines: tuple[TableLine, ...]


def overview(cache: StatusCache, now: datetime | None = None) -> PipelineOverview:
    """From the lake's records alone; no source is asked."""
    lake = cache.look()
    seen = status_of(lake, cache.pipeline, cache.platform, ask_source=False)
    ran, each = activity(lake.reports, now or datetime.now(UTC), lake.times.times)
    lines = tuple(_line(table, seen.deployed, each.get(table.table)) for table in seen.tables)
    return _overview(seen, ran, lines)


def _overview(
    seen: PipelineStatus, ran: Activity, lines: tuple[TableLine, ...]
) -> PipelineOverview:
    behind = [line for line in lines if line.lag_seconds is not None]
    worst = max(behind, key=lambda line: line.lag_seconds or 0.0, default=None)
    return PipelineOverview(
        pipeline_id=seen.pipeline_id,
        source_type=seen.source_type,
        deployed=seen.deployed,
        running=seen.running,
        captured_through=seen.captured_through,
        captured_at=seen.captured_at,
        tables=len(lines),
        gates=dict(Counter(line.gate.state for line in lines)),
        states=dict(Counter(line.state for line in lines)),
        conditions=dict(Counter(one for line in lines for one in line.conditions)),
        worst_lag_seconds=worst.lag_seconds if worst else None,
        worst_lag_bytes=worst.lag_bytes if worst else None,
        worst_lag_table=worst.table if worst and worst.lag_seconds else None,
        dead_letters=sum(line.dead_letters for line in lines),
        proven_tables=sum((line.proven or 0.0) >= _FULL and not line.differs for line in lines),
        proven_share=round(sum(line.proven or 0.0 for line in lines) / (len(lines) or 1), 1),
        activity=ran,
        findings=findings(seen, seen.deployed),
        lines=lines,
    )


def _line(table: TableStatus, deployed: bool, ran: Activity | None) -> TableLine:
    own, proof = conditions(table, deployed=deployed), table.verified_through
    return TableLine(
        table=table.table,
        state=own[0] if own else HEALTHY,
        conditions=own,
        action=next((helps(table, kind) for kind in own if SEVERITIES.get(kind) in _WORK), None),
        gate=table.gate,
        needs=table.needs,
        lag_bytes=table.lag_bytes,
        lag_seconds=steady(table.lag_seconds),
        rows=table.rows,
        snapshot_id=table.snapshot_id,
        snapshot_at=table.snapshot_at,
        dead_letters=table.dead_letters,
        proven=proof.coverage if proof and proof.position else 0.0 if proof else None,
        differs=proof is not None and proof.differs,
        position=table.position,
        activity=ran,
    )


def steady(lag: float | None) -> float | None:
    """A lag as exact as it is read: whoever watches is not told of every second of an hour."""
    if lag is None:
        return None
    step = 1 if lag < 120 else 10 if lag < 3600 else 60
    return float(int(lag) // step * step) if lag >= 1 else round(lag, 2)
