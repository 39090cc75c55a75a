"""The gate's state as a fold over its journal. Pure: no clock, no I/O, the same for every reader.

| state    | set by                      | ended by                          | durable |
|----------|-----------------------------|-----------------------------------|---------|
| open     | end of a sweep, ``open``    | ``hold``, a sweep                 | yes     |
| held     | ``hold`` (person or policy) | ``open``, a published sweep       | yes     |
| sweeping | ``begin_sweep``             | publish, or an explicit abandon   | yes     |
| lease    | any writer while it runs    | release, or takeover of the dead  | no      |

An event counts only if the state it landed on allows it; what does not count changes nothing. So
two owners of one table are impossible whatever is appended (I4).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime
from enum import StrEnum
from typing import Any, Final

from tidegate.errors import FatalError

FOLD_VERSION: Final = 1

APPLY: Final = "apply"
SWEEP: Final = "sweep"
"""Purposes with rules of their own; any other needs a table that is not being swept."""


class GateState(StrEnum):
    OPEN = "open"
    SWEEPING = "sweeping"
    HELD = "held"


class EventKind(StrEnum):
    HOLD = "hold"
    OPEN = "open"
    SWEEP = "sweep"
    END = "end"
    ABANDON = "abandon"
    ACQUIRE = "acquire"
    RENEW = "renew"
    RELEASE = "release"
    EVICT = "evict"
    CHECKPOINT = "checkpoint"


@dataclass(frozen=True, slots=True)
class Event:
    """One journal entry. ``at`` is for people; nothing is decided by it."""

    kind: EventKind
    at: datetime
    seq: int = 0
    tables: tuple[str, ...] = ()
    run: str | None = None
    token: str | None = None
    renewal: int = 0
    purpose: str | None = None
    owner: str | None = None
    reason: str | None = None
    actor: str | None = None
    outcome: str | None = None  # of END: "published" opens, anything else restores
    floor: str | None = None  # of SWEEP: log rows from here on may be needed
    evicts: tuple[tuple[str, int], ...] = ()  # (token, last renewal seen)
    state: str | None = None  # of CHECKPOINT: the fold


@dataclass(frozen=True, slots=True)
class TableState:
    """A table that is not simply open."""

    state: GateState
    run: str | None
    reason: str | None
    actor: str | None
    since: str
    floor: str | None = None
    held_before: tuple[str | None, str | None, str] | None = None  # reason, actor, since


@dataclass(frozen=True, slots=True)
class LeaseInfo:
    """A running writer's hold on its tables."""

    token: str
    run: str
    purpose: str
    owner: str
    tables: tuple[str, ...]
    renewal: int
    since: str


@dataclass(frozen=True, slots=True)
class Fold:
    """Everything the gate knows after event ``seq``."""

    seq: int = 0
    tables: Mapping[str, TableState] = field(default_factory=dict)
    leases: Mapping[str, LeaseInfo] = field(default_factory=dict)

    def state(self, table: str) -> GateState:
        found = self.tables.get(table)
        return GateState.OPEN if found is None else found.state

    def sweeping(self, table: str, run: str | None) -> bool:
        found = self.tables.get(table)
        return found is not None and found.state is GateState.SWEEPING and found.run == run

    def leases_on(self, tables: Iterable[str]) -> list[LeaseInfo]:
        wanted = set(tables)
        return [lease for lease in self.leases.values() if wanted & set(lease.tables)]

    def to_json(self) -> str:
        return json.dumps(
            {
                "version": FOLD_VERSION,
                "tables": {name: asdict(state) for name, state in self.tables.items()},
                "leases": [asdict(lease) for lease in self.leases.values()],
            }
        )

    @classmethod
    def from_json(cls, seq: int, text: str) -> Fold:
        data = json.loads(text)
        if data["version"] != FOLD_VERSION:
            raise FatalError(
                "gate.format_unknown",
                f"the gate journal has a checkpoint of version {data['version']}",
                hint="use the Tidegate release that wrote it, or a newer one",
            )
        tables = {name: _table_state(value) for name, value in data["tables"].items()}
        leases = [LeaseInfo(**{**v, "tables": tuple(v["tables"])}) for v in data["leases"]]
        return cls(seq, tables, {lease.token: lease for lease in leases})


def _table_state(data: dict[str, Any]) -> TableState:
    before = data["held_before"]
    known = {
        **data,
        "state": GateState(data["state"]),
        "held_before": None if before is None else (before[0], before[1], before[2]),
    }
    return TableState(**known)


def step(fold: Fold, event: Event) -> Fold:
    """The fold after ``event``; events must come gapless, in order."""
    if event.kind is EventKind.CHECKPOINT:
        return Fold.from_json(event.seq, event.state or "{}")
    if event.seq != fold.seq + 1:
        raise FatalError(
            "gate.journal_broken",
            f"the gate journal goes from event {fold.seq} to {event.seq}",
            hint="its table was changed by something else than Tidegate; restore it, or drop it"
            " when nothing runs (every gate is open then)",
        )
    changed = _STEPS[event.kind](fold, event)
    return replace(changed, seq=event.seq)


def replay(events: Iterable[Event], fold: Fold | None = None) -> Fold:
    """Fold ``events`` on top of ``fold``; a checkpoint among them supersedes what precedes it."""
    ordered = list(events)
    for index in range(len(ordered) - 1, -1, -1):
        if ordered[index].kind is EventKind.CHECKPOINT:
            ordered = ordered[index:]
            break
    state = fold or Fold()
    for event in ordered:
        state = step(state, event)
    return state


def admits(fold: Fold, table: str, purpose: str, run: str | None) -> bool:
    """Whether the table's state lets a writer of this purpose in, leases aside."""
    if purpose == APPLY:
        return fold.state(table) is GateState.OPEN
    if purpose == SWEEP:
        return fold.sweeping(table, run)
    return fold.state(table) is not GateState.SWEEPING


def _hold(fold: Fold, event: Event) -> Fold:
    held = TableState(GateState.HELD, event.run, event.reason, event.actor, event.at.isoformat())
    names = [t for t in event.tables if fold.state(t) is not GateState.SWEEPING]
    return replace(fold, tables={**fold.tables, **dict.fromkeys(names, held)})


def _open(fold: Fold, event: Event) -> Fold:
    names = {t for t in event.tables if fold.state(t) is GateState.HELD}
    return _without(fold, names)


def _sweep(fold: Fold, event: Event) -> Fold:
    free = all(
        fold.state(t) is not GateState.SWEEPING or fold.sweeping(t, event.run) for t in event.tables
    )
    if not free:
        return fold
    tables = dict(fold.tables)
    for name in event.tables:
        before = tables.get(name)
        if before is not None and before.state is GateState.SWEEPING:
            continue  # a resumed run keeps its first floor
        tables[name] = TableState(
            GateState.SWEEPING,
            event.run,
            event.reason,
            event.actor,
            event.at.isoformat(),
            event.floor,
            None if before is None else (before.reason, before.actor, before.since),
        )
    return replace(fold, tables=tables)


def _end(fold: Fold, event: Event) -> Fold:
    names = {t for t in event.tables if fold.sweeping(t, event.run)}
    fold = _release(fold, event)
    if event.outcome == "published":
        return _without(fold, names)
    return _restore(fold, names)


def _abandon(fold: Fold, event: Event) -> Fold:
    names = {
        t
        for t, known in fold.tables.items()
        if known.state is GateState.SWEEPING and (known.run == event.run or t in event.tables)
    }
    leases = {}
    for token, lease in fold.leases.items():
        kept = lease.tables
        if lease.purpose == SWEEP:  # its process may live on: it must not publish (I4)
            kept = tuple(t for t in lease.tables if t not in names)
        if kept:
            leases[token] = replace(lease, tables=kept)
    return replace(_restore(fold, names), leases=leases)


def _acquire(fold: Fold, event: Event) -> Fold:
    if event.token is None or event.run is None or event.token in fold.leases:
        return fold
    remaining = _evicted(fold, event)
    if remaining is None:
        return fold
    purpose = event.purpose or ""
    free = not replace(fold, leases=remaining).leases_on(event.tables)
    if not free or not all(admits(fold, t, purpose, event.run) for t in event.tables):
        return fold
    lease = LeaseInfo(
        event.token,
        event.run,
        purpose,
        event.owner or "",
        event.tables,
        0,
        event.at.isoformat(),
    )
    return replace(fold, leases={**remaining, lease.token: lease})


def _renew(fold: Fold, event: Event) -> Fold:
    lease = fold.leases.get(event.token or "")
    if lease is None or event.renewal != lease.renewal + 1:
        return fold
    renewed = replace(lease, renewal=event.renewal)
    return replace(fold, leases={**fold.leases, renewed.token: renewed})


def _release(fold: Fold, event: Event) -> Fold:
    return replace(fold, leases={t: v for t, v in fold.leases.items() if t != event.token})


def _evict(fold: Fold, event: Event) -> Fold:
    remaining = _evicted(fold, event)
    return fold if remaining is None else replace(fold, leases=remaining)


def _evicted(fold: Fold, event: Event) -> dict[str, LeaseInfo] | None:
    """Leases without the evicted; None if one of them showed life since it was judged dead."""
    remaining = dict(fold.leases)
    for token, renewal in event.evicts:
        lease = remaining.pop(token, None)
        if lease is None or lease.renewal != renewal:
            return None
    return remaining


def _without(fold: Fold, names: set[str]) -> Fold:
    return replace(fold, tables={t: s for t, s in fold.tables.items() if t not in names})


def _restore(fold: Fold, names: set[str]) -> Fold:
    """Back to how the tables were before their sweep: held, or open."""
    tables = dict(fold.tables)
    for name in names:
        before = tables.pop(name).held_before
        if before is not None:
            reason, actor, since = before
            tables[name] = TableState(GateState.HELD, None, reason, actor, since)
    return replace(fold, tables=tables)


_STEPS: Final = {
    EventKind.HOLD: _hold,
    EventKind.OPEN: _open,
    EventKind.SWEEP: _sweep,
    EventKind.END: _end,
    EventKind.ABANDON: _abandon,
    EventKind.ACQUIRE: _acquire,
    EventKind.RENEW: _renew,
    EventKind.RELEASE: _release,
    EventKind.EVICT: _evict,
}
