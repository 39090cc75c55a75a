"""Gates: shown, held, opened. The journal is the lake's; this is the one way to it for people."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from tidegate.config.pipeline import PipelineConfig
from tidegate.config.platform import PlatformConfig
from tidegate.control.records import EarlierHold, FailedSweep, GateStatus, LeaseStatus
from tidegate.control.tables import known_tables
from tidegate.lake.audit_trail import Action, AuditTrail
from tidegate.lake.catalog import open_catalog
from tidegate.lake.gate import Gate, TableGate
from tidegate.lake.gate_fold import Event, EventKind

_LOOK_BACK: Final = 1000
_QUIET: Final = frozenset({EventKind.RENEW, EventKind.CHECKPOINT})
"""Events that keep the journal going and tell people nothing."""


@dataclass(frozen=True, slots=True)
class Moment:
    """One event of the timeline."""

    at: datetime
    event: str
    tables: tuple[str, ...]
    run: str | None
    purpose: str | None
    outcome: str | None
    actor: str | None
    reason: str | None


@dataclass(frozen=True, slots=True)
class Gates:
    """The gates of some tables, and the last events if they were asked for."""

    gates: tuple[GateStatus, ...]
    timeline: tuple[Moment, ...] = ()


def show(
    pipeline: PipelineConfig,
    platform: PlatformConfig,
    tables: Sequence[str] | None = None,
    *,
    events: int = 0,
) -> Gates:
    """Each table's gate; with ``events`` the newest of the journal, newest last."""
    gate = Gate(open_catalog(platform, pipeline), pipeline, platform.gate)
    names = _names(pipeline, tables)
    happened = [event for event in gate.timeline(_LOOK_BACK) if _concerns(event, names)]
    timeline = tuple(_moment(event) for event in happened[-events:]) if events else ()
    return Gates(_states(gate, names), timeline)


def hold(
    pipeline: PipelineConfig,
    platform: PlatformConfig,
    tables: Sequence[str] | None = None,
    *,
    reason: str,
    actor: str,
) -> Gates:
    """Hold tables back; their changes stay in the change log."""
    catalog, names = open_catalog(platform, pipeline), _names(pipeline, tables)
    gate = Gate(catalog, pipeline, platform.gate)
    with AuditTrail(catalog, pipeline).action(Action.HOLD, names, reason=reason):
        gate.hold(names, reason, actor)
    return Gates(_states(gate, names))


def open_gates(
    pipeline: PipelineConfig,
    platform: PlatformConfig,
    tables: Sequence[str] | None = None,
    *,
    reason: str,
    actor: str,
    abandon: bool = False,
) -> Gates:
    """Open tables. A sweep is only overruled with ``abandon``; its branch is not published."""
    catalog, names = open_catalog(platform, pipeline), _names(pipeline, tables)
    gate = Gate(catalog, pipeline, platform.gate)
    action = Action.ABANDON if abandon else Action.OPEN
    with AuditTrail(catalog, pipeline).action(action, names, reason=reason):
        gate.open(names, reason, actor, abandon=abandon)
    return Gates(_states(gate, names))


def gate_status(table: str, gate: TableGate) -> GateStatus:
    """One table's gate as a record."""
    lease, before = gate.lease, gate.before
    return GateStatus(
        table=table,
        state=gate.state.value,
        reason=gate.reason,
        actor=gate.actor,
        since=gate.since,
        run=gate.run,
        lease=LeaseStatus(lease.run, lease.purpose, lease.owner) if lease else None,
        before=EarlierHold(before.reason, before.actor, before.since) if before else None,
        failed=_failed(table, gate),
    )


def _failed(table: str, gate: TableGate) -> FailedSweep | None:
    if gate.failed is None:
        return None
    return FailedSweep(
        gate.failed.reason,
        gate.failed.at,
        resume=f"tidegate sweep <pipeline> --table {table}",
        abandon=f"tidegate gate open <pipeline> --table {table} --abandon",
    )


def _concerns(event: Event, tables: Sequence[str]) -> bool:
    return event.kind not in _QUIET and bool(set(event.tables) & set(tables))


def _moment(event: Event) -> Moment:
    return Moment(
        at=event.at,
        event=event.kind.value,
        tables=event.tables,
        run=event.run,
        purpose=event.purpose,
        outcome=event.outcome,
        actor=event.actor,
        reason=event.reason,
    )


def _names(pipeline: PipelineConfig, tables: Sequence[str] | None) -> tuple[str, ...]:
    return known_tables(pipeline, tables) or pipeline.source.tables


def _states(gate: Gate, tables: Sequence[str]) -> tuple[GateStatus, ...]:
    states = gate.states(tables)
    return tuple(gate_status(name, states[name]) for name in tables)
