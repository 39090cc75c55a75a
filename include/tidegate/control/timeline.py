"""What happened to a table: gates, sweeps, applies, upkeep, schema changes; newest first."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

from tidegate.config.pipeline import PipelineConfig
from tidegate.config.platform import PlatformConfig
from tidegate.control.schemas import schemas
from tidegate.control.tables import one_table
from tidegate.lake.catalog import open_catalog
from tidegate.lake.gate import Gate
from tidegate.lake.gate_fold import Event, EventKind
from tidegate.lake.reports import KEPT, Report, Reports

_EVENTS_READ: Final = 1000
_GATE: Final = frozenset(
    {EventKind.HOLD, EventKind.OPEN, EventKind.SWEEP, EventKind.END, EventKind.ABANDON}
)
"""Events that change a gate. Leases come and go with every run, whose report tells more."""
_OUTCOME: Final = ("status", "outcome", "verdict")
_SHOWN: Final = frozenset(
    {
        "inserted",
        "updated",
        "deleted",
        "truncated",
        "rows",
        "parked",
        "resolved",
        "chunks",
        "seconds",
        "snapshot_id",
        "cut",
        "from_position",
        "to_position",
        "compared",
        "differing",
        "coverage",
    }
)
"""What is told of a run beside its outcome: counts, positions, never a value (I9)."""


@dataclass(frozen=True, slots=True)
class TimelineEntry:
    """One thing that happened."""

    id: str
    at: datetime
    kind: str  # gate | schema | apply | sweep | maintain | verify | reload | redrive | rollback
    event: str
    outcome: str | None = None
    run: str | None = None
    actor: str | None = None
    reason: str | None = None
    facts: dict[str, Any] = field(default_factory=dict)


def timeline(
    pipeline: PipelineConfig,
    platform: PlatformConfig,
    table: str,
    reports: Sequence[Report] | None = None,
) -> list[TimelineEntry]:
    """Everything that is still known, newest first; ``reports``: those that are read already."""
    name = one_table(pipeline, table)
    catalog = open_catalog(platform, pipeline)
    found = [
        _gate(event)
        for event in Gate(catalog, pipeline, platform.gate).timeline(_EVENTS_READ)
        if event.kind in _GATE and name in event.tables
    ]
    for report in reports or Reports(catalog, pipeline).recent(limit=KEPT):
        found += _reported(report, name)
    found += [
        TimelineEntry(
            id=f"schema-{row.number}",
            at=row.recorded_at,
            kind="schema",
            event="; ".join(row.changes) or "first seen",
            outcome="approved" if row.approved_by else None,
            actor=row.approved_by,
            facts={"schema_id": row.schema_id, "position": row.first_used},
        )
        for row in schemas(pipeline, platform, [name])
    ]
    return sorted(found, key=lambda entry: (entry.at, entry.id), reverse=True)


def _gate(event: Event) -> TimelineEntry:
    return TimelineEntry(
        id=f"gate-{event.seq}",
        at=event.at,
        kind="gate",
        event=event.kind.value,
        outcome=event.outcome,
        run=event.run,
        actor=event.actor,
        reason=event.reason,
    )


def _reported(report: Report, table: str) -> Iterator[TimelineEntry]:
    """A run as far as it concerns ``table``."""
    if report.kind == "maintain":
        steps = report.body.get("done", {}).get(table)
        if steps:
            yield _run(report, ", ".join(steps), {"status": "done"})
        return
    if report.kind == "rollback" and report.body.get("table") == table:
        yield _run(report, report.kind, report.body)
        return
    entries = report.body.get("tables")
    if isinstance(entries, Mapping):  # a look at the live schema says nothing that happened
        return
    for entry in entries or ():
        if isinstance(entry, Mapping) and entry.get("table") == table:
            yield _run(report, report.kind, entry)


def _run(report: Report, event: str, entry: Mapping[str, Any]) -> TimelineEntry:
    error = entry.get("error")
    reason = entry.get("reason") or (error.get("message") if isinstance(error, Mapping) else None)
    return TimelineEntry(
        id=f"{report.kind}-{report.seq}",
        at=report.at,
        kind=report.kind,
        event=event,
        outcome=next((str(entry[name]) for name in _OUTCOME if entry.get(name)), None),
        run=report.run,
        reason=reason,
        facts={k: v for k, v in entry.items() if k in _SHOWN and v not in (None, 0, False)},
    )
