"""The change stream: one replication connection, read by a thread, decoded by the consumer.

The thread keeps the walsender busy and answers it while the consumer decodes and writes; what waits
between the two is bounded (``PARCELS`` × ``parcel bytes``), so memory is too.
"""

from __future__ import annotations

import contextlib
import queue
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final, Literal

from tidegate.connectors.postgres import pgoutput
from tidegate.connectors.postgres.connection import Connection, connect, connect_replication
from tidegate.connectors.postgres.decoder import Decoder
from tidegate.connectors.postgres.failures import translated
from tidegate.connectors.postgres.publication import check_published
from tidegate.connectors.postgres.relations import Relations
from tidegate.connectors.postgres.settings import PostgresSettings
from tidegate.connectors.postgres.slot_checks import check_slot
from tidegate.connectors.postgres.wire import Wire
from tidegate.connectors.protocol import ChangeBatch
from tidegate.envelope import log_rows
from tidegate.envelope.position import Position, boundary, parse_lsn
from tidegate.errors import RetriableError

PARCELS: Final = 3
"""Parcels that may wait for the consumer."""
PARCEL_SHARE: Final = 8
"""A parcel holds 1/8 of ``capture.max_batch_bytes`` of raw log."""
STATUS_SECONDS: Final = 5.0
"""A sign of life at least this often; wal_sender_timeout is 60 s by default."""
QUIET_SECONDS: Final = 0.2
"""With nothing to read for this long, what was read is handed over."""
SETTLE_SECONDS: Final = 30.0
WAKE_SECONDS: Final = 1.0
"""On a quiet source the consumer gets an empty batch this often."""


@dataclass(slots=True)
class _Parcel:
    """Messages as they came. ``through`` is a boundary LSN if the last one ended there."""

    messages: list[bytes] = field(default_factory=list)
    size: int = 0
    through: int | None = None


class PostgresStream:
    """Implements ``ChangeStream``; made by :func:`open_changes`."""

    def __init__(self, wire: Wire, decoder: Decoder, after: Position, target: int | None) -> None:
        self._wire = wire
        self._decoder = decoder
        self._epoch = after.epoch
        self._target = target
        self._parcel_bytes = 1
        self._parcels: queue.Queue[_Parcel | BaseException] = queue.Queue(PARCELS)
        self._flushed = after.lsn
        self._told = after.lsn  # the last confirmation the server has answered to
        self._settled = threading.Condition()
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._read, name="capture-reader", daemon=True)

    def start(self, parcel_bytes: int) -> None:
        self._parcel_bytes = parcel_bytes
        self._thread.start()

    def __iter__(self) -> Iterator[ChangeBatch]:
        through: int | None = self._flushed
        while not self._is_last(through):
            try:
                parcel = self._parcels.get(timeout=WAKE_SECONDS)
            except queue.Empty:
                parcel = _Parcel(
                    through=through
                )  # nothing new: lets the consumer look at its clock
            if isinstance(parcel, BaseException):
                raise parcel
            through = parcel.through
            yield self._decode(parcel)

    def confirm(self, position: Position) -> None:
        """Takes effect with the reader's next message; :meth:`settle` waits for it."""
        self._flushed = max(self._flushed, position.lsn)

    def settle(self) -> None:
        with self._settled:
            if not self._settled.wait_for(
                lambda: self._told >= self._flushed or not self._thread.is_alive(), SETTLE_SECONDS
            ):
                raise RetriableError(
                    "capture.not_settled",
                    "the source did not answer the last confirmation in time",
                    hint="nothing is lost: the next capture confirms it again",
                )

    def keep_alive(self) -> None:
        """The reader thread does that by itself."""

    def close(self) -> None:
        self._stopping.set()
        with contextlib.suppress(queue.Empty):  # make room for a reader that waits to hand over
            while True:
                self._parcels.get_nowait()
        if self._thread.is_alive():
            self._thread.join(STATUS_SECONDS)
        self._wire.close()

    def _decode(self, parcel: _Parcel) -> ChangeBatch:
        through = None if parcel.through is None else boundary(self._epoch, parcel.through)
        if not parcel.messages:
            return ChangeBatch(log_rows.ARROW_SCHEMA.empty_table(), through=through)
        decoded = self._decoder.decode(parcel.messages)
        return ChangeBatch(
            decoded.rows, decoded.schemas, through, decoded.transactions, parcel.size
        )

    def _is_last(self, through: int | None) -> bool:
        return self._target is not None and through is not None and through >= self._target

    def _read(self) -> None:
        """The thread: never raises, hands its error over instead."""
        try:
            _Reader(self, self._wire, self._parcel_bytes).run()
        except BaseException as error:  # noqa: BLE001 - the consumer raises it
            self._hand_over(error)
        with self._settled:
            self._settled.notify_all()

    def _hand_over(self, item: _Parcel | BaseException) -> None:
        while not self._stopping.is_set():
            try:
                self._parcels.put(item, timeout=1.0)
                return
            except queue.Full:
                # The consumer is busy; the server wants to hear from us meanwhile.
                self._wire.status(self._flushed, ask=False)


class _Reader:
    """The reader thread's state."""

    def __init__(self, stream: PostgresStream, wire: Wire, parcel_bytes: int) -> None:
        self._stream = stream
        self._wire = wire
        self._limit = parcel_bytes
        self._parcel = _Parcel()
        self._inside = False  # between BEGIN and COMMIT
        self._delivered = stream._flushed
        self._told_at = 0.0
        self._asked: int | None = None  # the confirmation an answer is awaited for
        self._answers = 0

    def run(self) -> None:
        stream, wire = self._stream, self._wire
        finished = False
        while not stream._stopping.is_set():
            message = wire.receive()
            if message is not None:
                self._take(message)
                continue
            if not finished:
                self._quiet()
                finished = stream._is_last(self._delivered)
            self._status(ask=stream._target is not None and not finished)
            wire.wait(QUIET_SECONDS)

    def _take(self, message: bytes) -> None:
        parcel = self._parcel
        parcel.messages.append(message)
        parcel.size += len(message)
        kind = message[0]
        if kind == pgoutput.BEGIN:
            self._inside = True
        elif kind == pgoutput.COMMIT:
            self._inside = False
            parcel.through = pgoutput.commit_end(message)
            if parcel.size >= self._limit:
                self._deliver()
            return
        parcel.through = None
        if parcel.size >= 2 * self._limit:  # a transaction larger than a parcel
            self._deliver()

    def _quiet(self) -> None:
        """Nothing to read: hand over what is complete, and how far the server has looked."""
        if self._inside:
            return
        reached = self._wire.sent_pointer
        if reached > max(self._delivered, self._parcel.through or 0):
            self._parcel.through = reached
        if self._parcel.through is not None and self._parcel.through > self._delivered:
            self._deliver()

    def _deliver(self) -> None:
        parcel, self._parcel = self._parcel, _Parcel()
        if parcel.through is not None:
            self._delivered = parcel.through
        self._stream._hand_over(parcel)
        self._status(ask=False)

    def _status(self, *, ask: bool) -> None:
        """A status if there is news, an answer is wanted, or it is time for a sign of life."""
        stream = self._stream
        if self._asked is not None and self._wire.answers > self._answers:
            with stream._settled:
                stream._told, self._asked = max(stream._told, self._asked), None
                stream._settled.notify_all()
        flushed = stream._flushed
        news = flushed > stream._told and self._asked is None
        due = time.monotonic() - self._told_at >= STATUS_SECONDS
        if not (news or due or ask):
            return
        if news:
            self._asked, self._answers = flushed, self._wire.answers
        self._wire.status(flushed, ask=news or ask)
        self._told_at = time.monotonic()


@contextlib.contextmanager
def open_changes(
    settings: PostgresSettings,
    after: Position,
    until: Position | Literal["now"] | None,
) -> Iterator[PostgresStream]:
    """Everything committed after ``after``, on one connection for the whole run."""
    sql = connect(settings, "capture catalog")
    try:
        with translated(settings, "checking the slot"):
            check_slot(sql, settings, after)
            check_published(sql, settings.publication, settings.table_ids)
            target = _target(sql, until)
        wire = Wire(connect_replication(settings, "capture"))
        stream = _stream(settings, sql, wire, after, target)
        try:
            with translated(settings, "reading changes"):
                wire.start(settings.slot, settings.publication, after.lsn)
                stream.start(max(1, settings.batch_bytes // PARCEL_SHARE))
                yield stream
        finally:
            stream.close()
    finally:
        sql.close()


def _stream(
    settings: PostgresSettings, sql: Connection, wire: Wire, after: Position, target: int | None
) -> PostgresStream:
    decoder = Decoder(after.epoch, Relations(sql, settings.table_ids), floor=after.lsn)
    return PostgresStream(wire, decoder, after, target)


def _target(sql: Connection, until: Position | Literal["now"] | None) -> int | None:
    if until is None:
        return None
    if isinstance(until, Position):
        return until.lsn
    row = sql.execute("SELECT pg_catalog.pg_current_wal_flush_lsn()::text").fetchone()
    return parse_lsn(str(row[0])) if row else None
