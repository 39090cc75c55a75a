"""A lease: a running writer's hold on its tables, kept alive by a thread (I4)."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterable
from datetime import UTC, datetime
from types import TracebackType
from typing import Final

from tidegate.errors import HeldError, RetriableError, TidegateError
from tidegate.lake.gate_fold import Event, EventKind, Fold, LeaseInfo
from tidegate.lake.gate_journal import GateJournal
from tidegate.lake.owner import is_gone
from tidegate.observability import log

_LOG: Final = log.get(__name__)

RENEWALS_PER_LEASE: Final = 3
"""So that two may fail before anyone may take over."""


class Lease:
    """Made by ``Gate.lease``; leave the ``with`` block, or call :meth:`release`, to end it."""

    def __init__(self, journal: GateJournal, info: LeaseInfo, seconds: float) -> None:
        self._journal = journal
        self.token: Final = info.token
        self.run: Final = info.run
        self.purpose: Final = info.purpose
        self.tables: Final = info.tables
        self._seconds = seconds
        self._renewed = time.monotonic()
        self._released = False
        self._ended = threading.Event()
        self._thread = threading.Thread(
            target=self._keep, name=f"lease-{self.token[:8]}", daemon=True
        )
        self._thread.start()

    def __enter__(self) -> Lease:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            self.release()
        except RetriableError as failed:
            # The work is done or has its own error; unreleased, the lease lapses by itself.
            log.event(
                _LOG,
                "lease not released",
                level=logging.WARNING,
                run=self.run,
                code=failed.code,
            )

    def check(self, tables: Iterable[object] | None = None) -> None:
        """Raise ``gate.lease_lost`` unless this lease still holds ``tables`` (all by default).

        Asks the journal. Call it right before publishing: what follows a lost lease is stale.
        """
        wanted = self.tables if tables is None else tuple(str(table) for table in tables)
        if time.monotonic() - self._renewed > self._seconds / 2:
            fold = self._renew()  # nobody may judge us dead between this look and the commit
        else:
            fold = self._journal.fold()
        held = fold.leases.get(self.token)
        if held is None or not set(wanted) <= set(held.tables):
            raise _lost(self)

    def release(self) -> None:
        """End the lease. Harmless if it is lost or released already."""
        if self._released:
            return
        self.stop()
        if self.token in self._journal.fold().leases:  # a dropped journal is not made again
            self._journal.write(self._end)
        self._released = True

    def stop(self) -> str:
        """Renew no more; the token, for an event that ends the lease together with its work."""
        self._ended.set()
        self._thread.join()
        return self.token

    def _keep(self) -> None:
        pause = self._seconds / RENEWALS_PER_LEASE
        while not self._ended.wait(pause):
            try:
                self._renew()
            except HeldError as error:
                log.event(_LOG, "lease lost", level=logging.WARNING, run=self.run, code=error.code)
                return
            except (TidegateError, OSError) as error:
                # Tried again at the next turn; check() meets the same error if it lasts.
                log.event(
                    _LOG,
                    "lease not renewed",
                    level=logging.WARNING,
                    run=self.run,
                    reason=str(error),
                )

    def _renew(self) -> Fold:
        began = time.monotonic()
        fold = self._journal.write(self._renewal)
        self._renewed = began
        return fold

    def _end(self, fold: Fold) -> Event | None:
        if self.token not in fold.leases:
            return None
        return Event(
            EventKind.RELEASE,
            datetime.now(UTC),
            tables=self.tables,
            run=self.run,
            token=self.token,
            purpose=self.purpose,
        )

    def _renewal(self, fold: Fold) -> Event:
        held = fold.leases.get(self.token)
        if held is None:
            raise _lost(self)
        return Event(
            EventKind.RENEW,
            datetime.now(UTC),
            run=self.run,
            token=self.token,
            renewal=held.renewal + 1,
        )


class Watch:
    """One observer's view of other leases: dead are those silent for the lease time.

    Only this process's monotonic clock counts, so clocks of hosts need not agree. A process that
    is certainly gone (same host) is dead at once.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._seen: dict[str, tuple[int, float]] = {}

    def dead(self, leases: Iterable[LeaseInfo]) -> list[LeaseInfo]:
        """Those of ``leases`` that may be taken over now."""
        now = time.monotonic()
        result = []
        for lease in leases:
            renewal, since = self._seen.get(lease.token, (-1, now))
            if renewal != lease.renewal:
                self._seen[lease.token] = (lease.renewal, now)
                since = now
            if is_gone(lease.owner) or now - since >= self._seconds:
                result.append(lease)
        return result


def busy(leases: Iterable[LeaseInfo]) -> HeldError:
    """Other writers still run."""
    names = ", ".join(
        sorted(f"{lease.purpose} of run {lease.run} ({lease.owner})" for lease in leases)
    )
    return HeldError(
        "gate.busy",
        f"another writer holds the tables: {names}",
        hint="it goes on when that run ends; a run that died is taken over after"
        " gate.lease_seconds",
    )


def _lost(lease: Lease) -> HeldError:
    return HeldError(
        "gate.lease_lost",
        f"run {lease.run} lost its hold on {', '.join(lease.tables)} to another writer",
        hint="this run stops without publishing; the other one goes on. Was this process paused"
        " for longer than gate.lease_seconds?",
    )
