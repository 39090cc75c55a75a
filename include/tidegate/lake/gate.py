"""The gate: per table open, sweeping or held, and who is writing to it right now.

Order: the journal's commit order is the order of all events. Duplicates: an event lands once.
Durability: ``sweeping`` and ``held`` outlive every process; leases end with theirs. Concurrency:
any number of processes; at most one holds a table (I4).
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from pyiceberg.catalog import Catalog

from tidegate.config.pipeline import PipelineConfig
from tidegate.config.platform import GateConfig
from tidegate.envelope.position import Position
from tidegate.errors import ConfigError, HeldError
from tidegate.lake.change_log import ChangeLog
from tidegate.lake.gate_fold import (
    APPLY,
    SWEEP,
    Event,
    EventKind,
    Fold,
    GateState,
    Hold,
    LeaseInfo,
    admits,
)
from tidegate.lake.gate_journal import GateJournal
from tidegate.lake.lease import Lease, Watch, busy
from tidegate.lake.owner import is_gone, me

__all__ = ["Gate", "GateState", "Lease", "LeaseInfo", "TableGate"]

PUBLISHED: Final = "published"
_POLL_SECONDS: Final = 0.5


@dataclass(frozen=True, slots=True)
class Held:
    """A hold that is not the gate's last word."""

    reason: str | None
    actor: str | None
    since: datetime


@dataclass(frozen=True, slots=True)
class Failed:
    """A sweep's attempt that ended without publishing."""

    reason: str | None
    at: datetime


@dataclass(frozen=True, slots=True)
class TableGate:
    """One table's gate, as everyone shows it."""

    state: GateState
    run: str | None = None
    reason: str | None = None
    actor: str | None = None
    since: datetime | None = None
    lease: LeaseInfo | None = None
    floor: Position | None = None
    """While sweeping: log rows after this may still be needed."""
    before: Held | None = None
    """The hold that a sweep found, or that another hold came on top of."""
    failed: Failed | None = None
    """Of a sweep: how its last attempt ended. It goes on with the next one, or is abandoned."""


class Gate:
    """A pipeline's gate."""

    def __init__(self, catalog: Catalog, pipeline: PipelineConfig, settings: GateConfig) -> None:
        self._journal = GateJournal(catalog, pipeline)
        self._log = ChangeLog(catalog, pipeline)
        self._pipeline = pipeline
        self._settings = settings
        self._watch = Watch(settings.lease_seconds)

    @property
    def identifier(self) -> tuple[str, str]:
        return self._journal.identifier

    def states(self, tables: Iterable[object] | None = None) -> dict[str, TableGate]:
        """The gates of ``tables``; by default of every table of the pipeline or the journal."""
        fold = self._journal.fold()
        if tables is None:
            names = list(self._pipeline.source.tables)
            names += sorted(set(fold.tables) - set(names))
        else:
            names = [str(table) for table in tables]
        return {name: _table_gate(fold, name) for name in names}

    def refuse_swept(self, tables: Iterable[object]) -> None:
        """Raise before anything is taken away from under a sweep."""
        self._refuse_sweeping(self._journal.fold(), [str(table) for table in tables])

    def hold(self, tables: Iterable[object], reason: str, actor: str) -> None:
        """Close the gates until someone opens them. A running apply finishes its batch first."""
        names = self._names(tables)

        def decide(fold: Fold) -> Event:
            self._refuse_sweeping(fold, names)
            return _event(EventKind.HOLD, names, reason=reason, actor=actor)

        self._journal.write(decide)

    def open(
        self, tables: Iterable[object], reason: str, actor: str, *, abandon: bool = False
    ) -> None:
        """Open held gates. A table being swept is refused unless its sweep is to be abandoned."""
        names = self._names(tables)
        if abandon:
            self.abandon(names, actor, reason)

        def decide(fold: Fold) -> Event | None:
            self._refuse_sweeping(fold, names)
            if all(fold.state(name) is GateState.OPEN for name in names):
                return None
            return _event(EventKind.OPEN, names, reason=reason, actor=actor)

        self._journal.write(decide)

    def begin_sweep(
        self,
        run: str,
        tables: Iterable[object],
        actor: str,
        reason: str | None = None,
        wait_seconds: float | None = None,
    ) -> None:
        """Set ``sweeping`` (durably, so no new apply gets in), then wait for writers in flight.

        Again by the same run: a resume, nothing changes. If writers do not end in time, the gates
        this call closed go back to what they were and ``gate.busy`` is raised.
        """
        names = self._names(tables)
        floor = str(self._log.head().captured_through) if self._log.exists() else None

        resumed = False

        def decide(fold: Fold) -> Event | None:
            nonlocal resumed
            resumed = all(fold.sweeping(name, run) for name in names)
            if resumed and not any(fold.tables[name].failed for name in names):
                return None
            self._refuse_sweeping(fold, names, but=run)
            return _event(EventKind.SWEEP, names, run=run, reason=reason, actor=actor, floor=floor)

        self._journal.write(decide)
        try:
            self._wait_for_writers(run, names, wait_seconds)
        except HeldError:
            if not resumed:
                self.end_sweep(run, names, "busy")
            raise

    def end_sweep(
        self, run: str, tables: Iterable[object], outcome: str, lease: Lease | None = None
    ) -> None:
        """``published`` opens the gates; any other outcome restores what was before the sweep.

        The sweep's ``lease`` ends with the same event.
        """
        names = tuple(str(table) for table in tables)
        token = lease.stop() if lease is not None else None

        def decide(fold: Fold) -> Event | None:
            own = tuple(name for name in names if fold.sweeping(name, run))
            return (
                _event(EventKind.END, own, run=run, outcome=outcome, token=token) if own else None
            )

        self._journal.write(decide)

    def fail_sweep(self, run: str, tables: Iterable[object], reason: str) -> None:
        """Note that an attempt ended; the gates stay ``sweeping`` for the next one."""
        names = tuple(str(table) for table in tables)

        def decide(fold: Fold) -> Event | None:
            own = tuple(name for name in names if fold.sweeping(name, run))
            return _event(EventKind.FAIL, own, run=run, reason=reason) if own else None

        self._journal.write(decide)

    def abandon(self, what: str | Iterable[object], actor: str, reason: str) -> tuple[str, ...]:
        """Give a sweep up: of a run (text), or of tables. Its process, if it lives, cannot publish.

        Returns the tables whose sweep ended.
        """
        run = what if isinstance(what, str) else None
        names = () if isinstance(what, str) else tuple(str(table) for table in what)
        ended: tuple[str, ...] = ()

        def decide(fold: Fold) -> Event | None:
            nonlocal ended
            ended = tuple(
                name
                for name, known in fold.tables.items()
                if known.state is GateState.SWEEPING and (known.run == run or name in names)
            )
            if not ended:
                return None
            return _event(EventKind.ABANDON, ended, reason=reason, actor=actor)

        self._journal.write(decide)
        return ended

    def lease(
        self,
        run: str,
        tables: Iterable[object],
        purpose: str,
        wait_seconds: float | None = None,
    ) -> Lease:
        """Hold ``tables`` against every other writer until released.

        Waits up to ``wait_seconds`` (``gate.wait_seconds``) for writers in flight, and takes over
        from dead ones. Raises ``gate.closed`` at once if a table's state does not let ``purpose``
        in: ``apply`` needs open gates, ``sweep`` its own run's, others any that is not swept.
        """
        names = self._names(tables)
        token = uuid.uuid4().hex
        deadline = self._deadline(wait_seconds)
        while True:
            blocking: list[LeaseInfo] = []

            def decide(fold: Fold, blocking: list[LeaseInfo] = blocking) -> Event | None:
                if token in fold.leases:
                    return None  # landed although the answer was lost
                self._refuse_closed(fold, names, purpose, run)
                others = fold.leases_on(names)
                dead = self._watch.dead(others)
                if len(dead) < len(others):
                    blocking.extend(others)
                    return None
                return _event(
                    EventKind.ACQUIRE,
                    names,
                    run=run,
                    token=token,
                    purpose=purpose,
                    owner=me(),
                    evicts=tuple((lease.token, lease.renewal) for lease in dead),
                )

            info = self._journal.write(decide).leases.get(token)
            if info is not None:
                return Lease(self._journal, info, self._settings.lease_seconds)
            self._pause(deadline, blocking)

    def at_work(self) -> tuple[str, ...]:
        """What holds a lease and lives, as far as can be told: ``apply``, ``sweep``. For people; a
        capture needs no lease, so none is no proof that nothing runs."""
        silent = self._journal.silent_seconds()
        if silent is None or silent > self._settings.lease_seconds:
            return ()  # whoever lives renews
        leases = self._journal.fold().leases.values()
        return tuple(sorted({lease.purpose for lease in leases if not is_gone(lease.owner)}))

    def timeline(self, limit: int = 100) -> list[Event]:
        """What happened at the gates, oldest first."""
        return self._journal.timeline(limit)

    def checkpoint(self) -> None:
        """Fold the journal into one file and expire its past."""
        self._journal.checkpoint()

    def drop(self) -> bool:
        """Remove the journal: every gate is open after it."""
        return self._journal.drop()

    def _wait_for_writers(
        self, run: str, names: tuple[str, ...], wait_seconds: float | None
    ) -> None:
        deadline = self._deadline(wait_seconds)
        while True:
            blocking: list[LeaseInfo] = []

            def decide(fold: Fold, blocking: list[LeaseInfo] = blocking) -> Event | None:
                others = [lease for lease in fold.leases_on(names) if lease.run != run]
                dead = self._watch.dead(others)
                if len(dead) < len(others):
                    blocking.extend(others)
                if not dead:
                    return None
                evicts = tuple((lease.token, lease.renewal) for lease in dead)
                return _event(EventKind.EVICT, names, run=run, evicts=evicts)

            self._journal.write(decide)
            if not blocking:
                return
            self._pause(deadline, blocking)

    def _deadline(self, wait_seconds: float | None) -> float:
        wait = self._settings.wait_seconds if wait_seconds is None else wait_seconds
        return time.monotonic() + wait

    def _pause(self, deadline: float, blocking: list[LeaseInfo]) -> None:
        left = deadline - time.monotonic()
        if left <= 0:
            raise busy(blocking)
        time.sleep(min(_POLL_SECONDS, self._settings.lease_seconds / 10, left))

    def _names(self, tables: Iterable[object]) -> tuple[str, ...]:
        names = tuple(dict.fromkeys(str(table) for table in tables))
        known = set(self._pipeline.source.tables)
        if not known.issuperset(names):  # a table that left the pipeline may still be closed
            known |= set(self._journal.fold().tables)
        unknown = [name for name in names if name not in known]
        if unknown or not names:
            raise ConfigError(
                "gate.unknown_table",
                f"pipeline {self._pipeline.pipeline_id} has no table {', '.join(unknown) or '–'}",
                hint=f"its tables are {', '.join(sorted(known))}",
            )
        return names

    def _refuse_sweeping(self, fold: Fold, names: Iterable[str], but: str | None = None) -> None:
        busy = [
            name
            for name in names
            if fold.state(name) is GateState.SWEEPING and not fold.sweeping(name, but)
        ]
        if busy:
            runs = sorted({str(fold.tables[name].run) for name in busy})
            raise HeldError(
                "gate.sweeping",
                f"{', '.join(busy)} is being swept by run {', '.join(runs)}",
                hint="wait for that sweep, resume it if its process died, or abandon it:"
                " `tidegate gate open --abandon`",
            )

    def _refuse_closed(self, fold: Fold, names: Iterable[str], purpose: str, run: str) -> None:
        closed = [name for name in names if not admits(fold, name, purpose, run)]
        if not closed:
            return
        states = ", ".join(f"{name} ({fold.state(name)})" for name in closed)
        needs = {APPLY: "open", SWEEP: f"sweeping by run {run}"}.get(purpose, "not sweeping")
        raise HeldError(
            "gate.closed",
            f"{purpose} needs gates that are {needs}: {states}",
            hint="`tidegate gate show` says who closed them and why",
        )


def _event(kind: EventKind, tables: tuple[str, ...], **facts: object) -> Event:
    return Event(kind, datetime.now(UTC), tables=tables, **facts)  # type: ignore[arg-type]


def _table_gate(fold: Fold, name: str) -> TableGate:
    lease = next(iter(fold.leases_on([name])), None)
    known = fold.tables.get(name)
    if known is None:
        return TableGate(GateState.OPEN, lease=lease)
    return TableGate(
        known.state,
        known.run,
        known.reason,
        known.actor,
        _moment(known.since),
        lease,
        None if known.floor is None else Position.parse(known.floor),
        _held(known.held_before if known.state is GateState.SWEEPING else known.earlier),
        None if known.failed is None else Failed(known.failed[0], _moment(known.failed[1])),
    )


def _held(hold: Hold | None) -> Held | None:
    return None if hold is None else Held(hold[0], hold[1], _moment(hold[2]))


def _moment(text: str) -> datetime:
    return datetime.fromisoformat(text)
