"""The gate's state as a fold over its journal. Pure: no clock, no I/O, the same for every reader.

| state    | set by                      | ended by                          | durable |
|----------|-----------------------------|-----------------------------------|---------|
| open     | end of a sweep, ``open``    | ``hold``, a sweep                 | yes     |
| held     | ``hold`` (person or policy) | ``open``, a published sweep       | yes     |
| sweeping | ``begin_sweep``             | publish, or an explicit abandon   | yes     |
|          | ``fail`` notes that it failed     | the same run going on             | yes     |
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

FOLD_VERSION: Final = 2
READ_VERSIONS: Final = (1, 2)
"""The first knew neither failed sweeps nor the hold before a hold."""

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
    FAIL = "fail"
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


Hold = tuple[str | None, str | None, str]
"""Reason, actor, since."""


@dataclass(frozen=True, slots=True)
class TableState:
    """A table that is not simply open."""

    state: GateState
    run: str | None
    reason: str | None
    actor: str | None
    since: str
    floor: str | None = None
    held_before: Hold | None = None  # of a sweep: what it found, and goes back to
    earlier: Hold | None = None  # the first hold, where another came on top of it
    failed: tuple[str | None, str] | None = None  # of a sweep: why its last attempt ended, and when


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
        if data["version"] not in READ_VERSIONS:
            raise FatalError(
                "gate.format_unknown",
                f"the gate journal has a checkpoint of version {data['version']}",
                hint="use the Tidegate release that wrote it, or a newer one",
            )
        tables = {name: _table_state(value) for name, value in data["tables"].items()}
        leases = [LeaseInfo(**{**v, "tables": tuple(v["tables"])}) for v in data["leases"]]
        return cls(seq, tables, {lease.token: lease for lease in leases})


def _table_state(data: dict[str, Any]) -> TableState:
    known = {**data, "state": GateState(data["state"])}
    for name in ("held_before", "earlier", "failed"):
        known[name] = tuple(data[name]) if data.get(name) is not None else None
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
    tables = dict(fold.tables)
    for name in event.tables:
        if fold.state(name) is not GateState.SWEEPING:
            tables[name] = replace(held, earlier=_earlier(tables.get(name), event))
    return replace(fold, tables=tables)


def _earlier(before: TableState | None, event: Event) -> Hold | None:
    """The reason that stays beside a new one: the first, which is what must be mended."""
    if before is None or before.earlier is not None or before.reason == event.reason:
        return None if before is None else before.earlier
    return (before.reason, before.actor, before.since)


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
            tables[name] = replace(before, failed=None)  # a resumed run keeps its first floor
            continue
        tables[name] = TableState(
            GateState.SWEEPING,
            event.run,
            event.reason,
            event.actor,
            event.at.isoformat(),
            event.floor,
            None if before is None else (before.reason, before.actor, before.since),
            None if before is None else before.earlier,
        )
    return replace(fold, tables=tables)


def _fail(fold: Fold, event: Event) -> Fold:
    """The sweep stays: it goes on where it ended, or is abandoned."""
    said = (event.reason, event.at.isoformat())
    failed = {
        t: replace(fold.tables[t], failed=said) for t in event.tables if fold.sweeping(t, event.run)
    }
    return replace(fold, tables={**fold.tables, **failed})


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
        swept = tables.pop(name)
        if swept.held_before is not None:
            held = TableState(GateState.HELD, None, *swept.held_before)
            tables[name] = replace(held, earlier=swept.earlier)
    return replace(fold, tables=tables)


_STEPS: Final = {
    EventKind.HOLD: _hold,
    EventKind.OPEN: _open,
    EventKind.SWEEP: _sweep,
    EventKind.END: _end,
    EventKind.FAIL: _fail,
    EventKind.ABANDON: _abandon,
    EventKind.ACQUIRE: _acquire,
    EventKind.RENEW: _renew,
    EventKind.RELEASE: _release,
    EventKind.EVICT: _evict,
}
