"""The thread that reads the replication connection: takes messages, hands over parcels, answers.

It must never be what the walsender waits for, so its work per message is a copy and an append. A
parcel is handed over when it is full, when it has waited long enough, or when the source is quiet.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final, Protocol

from tidegate.connectors.postgres import pgoutput
from tidegate.connectors.postgres.wire import Wire

STATUS_SECONDS: Final = 5.0
"""A sign of life at least this often; wal_sender_timeout is 60 s by default."""
QUIET_SECONDS: Final = 0.02
"""Nothing to read for this long: the source is quiet, for now."""
LINGER_SECONDS: Final = 0.2
"""Whole transactions wait for others at most this long; small parcels decode slowly."""
ASK_SECONDS: Final = 0.1
"""How often a quiet server is asked how far it has looked."""


@dataclass(slots=True)
class Parcel:
    """Messages as they came. ``through`` is a boundary LSN if the last one ended there."""

    messages: list[bytes] = field(default_factory=list)
    size: int = 0
    through: int | None = None
    began: float = 0.0


class Consumer(Protocol):
    """Whom the reader works for; the fields are written by one side each."""

    flushed: int  # may be confirmed (I2); the consumer writes it

    def stopping(self) -> bool: ...

    def hand_over(self, parcel: Parcel) -> None:
        """May wait while the consumer is busy."""

    def told(self, flushed: int) -> None:
        """The server has answered to this confirmation."""


class Reader:
    """One connection's reader. ``is_last`` says whether a boundary ends the run."""

    def __init__(
        self,
        consumer: Consumer,
        wire: Wire,
        parcel_bytes: int,
        is_last: Callable[[int], bool] | None,
    ) -> None:
        self._consumer = consumer
        self._wire = wire
        self._limit = parcel_bytes
        self._is_last = is_last
        self._parcel = Parcel()
        self._delivered = consumer.flushed
        self._finished = False
        self._told_at = 0.0
        self._asked_at = 0.0
        self._told = consumer.flushed
        self._asked: int | None = None  # the confirmation an answer is awaited for
        self._answers = 0

    def run(self) -> None:
        """Until the consumer stops; a lost connection raises."""
        while not self._consumer.stopping():
            quiet = not self._drain() and not self._wire.wait(QUIET_SECONDS)
            if not self._finished:
                self._consider(quiet)
            self._status(ask=quiet and self._is_last is not None and not self._finished)

    def _drain(self) -> bool:
        """Take what is at hand, at most one parcel's worth; False: nothing was."""
        parcel = self._parcel
        room = 2 * self._limit - parcel.size
        taken = self._wire.read(parcel.messages, room)
        if not taken:
            return False
        if self._finished:  # only answers are of interest by now
            parcel.messages.clear()
            return True
        if not parcel.size:
            parcel.began = time.monotonic()
        parcel.size += taken
        last = parcel.messages[-1]
        parcel.through = pgoutput.commit_end(last) if last[0] == pgoutput.COMMIT else None
        return True

    def _consider(self, quiet: bool) -> None:
        """Hand the parcel over if its time has come."""
        parcel = self._parcel
        if quiet and (parcel.through is not None or not parcel.messages):
            # Outside a transaction, all that was sent before the last keepalive was taken.
            reached = max(parcel.through or 0, self._wire.sent_pointer)
            if reached > self._delivered:
                parcel.through = reached
                self._deliver()
        elif parcel.through is not None:
            full = parcel.size >= self._limit
            if full or self._reached(parcel.through) or self._lingered(parcel):
                self._deliver()
        elif parcel.size >= 2 * self._limit:  # a transaction larger than a parcel
            self._deliver()

    def _lingered(self, parcel: Parcel) -> bool:
        return time.monotonic() - parcel.began >= LINGER_SECONDS

    def _reached(self, through: int) -> bool:
        return self._is_last is not None and self._is_last(through)

    def _deliver(self) -> None:
        parcel, self._parcel = self._parcel, Parcel()
        if parcel.through is not None:
            self._delivered = parcel.through
            self._finished = self._reached(parcel.through)
        self._consumer.hand_over(parcel)

    def _status(self, *, ask: bool) -> None:
        """A status if there is news, an answer is wanted, or it is time for a sign of life."""
        if self._asked is not None and self._wire.answers > self._answers:
            self._told, self._asked = max(self._told, self._asked), None
            self._consumer.told(self._told)
        flushed = self._consumer.flushed
        news = flushed > self._told and self._asked is None
        now = time.monotonic()
        ask = ask and now - self._asked_at >= ASK_SECONDS
        if not (news or ask or now - self._told_at >= STATUS_SECONDS):
            return
        if news:
            self._asked, self._answers = flushed, self._wire.answers
        self._wire.status(flushed, ask=news or ask)
        self._told_at = now
        self._asked_at = now if ask or news else self._asked_at
