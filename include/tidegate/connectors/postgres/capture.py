"""The change stream: one replication connection, read by a thread, decoded by the consumer.

The thread keeps the walsender busy and answers it while the consumer decodes and writes; what waits
between the two is bounded (``PARCELS`` × ``parcel bytes``), so memory is too.
"""

from __future__ import annotations

import contextlib
import queue
import threading
from collections.abc import Callable, Iterator, Mapping
from typing import Final, Literal

from tidegate.connectors.changes import ChangeBatch
from tidegate.connectors.postgres import ddl_messages
from tidegate.connectors.postgres.connection import Connection, connect, connect_replication
from tidegate.connectors.postgres.decoder import Decoder
from tidegate.connectors.postgres.failures import translated
from tidegate.connectors.postgres.moments import Moment
from tidegate.connectors.postgres.publication import check_published, unpublished
from tidegate.connectors.postgres.reader import STATUS_SECONDS, Parcel, Reader
from tidegate.connectors.postgres.relations import Relations
from tidegate.connectors.postgres.settings import PostgresSettings
from tidegate.connectors.postgres.slot_checks import check_slot
from tidegate.connectors.postgres.table_facts import look, look_again
from tidegate.connectors.postgres.wire import Wire
from tidegate.connectors.postgres.witness import Witness
from tidegate.envelope import log_rows
from tidegate.envelope.position import Position, boundary, parse_lsn
from tidegate.errors import RetriableError
from tidegate.names import TableId
from tidegate.schema.table_facts import TableFacts

PARCELS: Final = 3
"""Parcels that may wait for the consumer."""
PARCEL_SHARE: Final = 8
"""A parcel holds 1/8 of ``capture.max_batch_bytes`` of raw log."""
SETTLE_SECONDS: Final = 30.0
WAKE_SECONDS: Final = 1.0
"""On a quiet source the consumer gets an empty batch this often."""


class PostgresStream:
    """Implements ``ChangeStream``; made by :func:`open_changes`."""

    def __init__(
        self,
        wire: Wire,
        decoder: Decoder,
        catalog: Connection,
        tables: tuple[TableId, ...],
        publication: str,
        after: Position,
        target: int | None,
        witness: Witness,
        told_by: Callable[[], str | None],
    ) -> None:
        self._witness = witness
        self._told_by = told_by
        self._wire = wire
        self._decoder = decoder
        self._catalog = catalog
        self._tables = tables
        self._publication = publication
        self._epoch = after.epoch
        self._target = target
        self._parcel_bytes = 1
        self._parcels: queue.Queue[Parcel | BaseException] = queue.Queue(PARCELS)
        self.flushed = after.lsn
        self._told = after.lsn  # the last confirmation the server has answered to
        self._settled = threading.Condition()
        self._settling = threading.Event()
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._read, name="capture-reader", daemon=True)

    def start(self, parcel_bytes: int) -> None:
        self._parcel_bytes = parcel_bytes
        self._thread.start()

    def __iter__(self) -> Iterator[ChangeBatch]:
        through: int | None = self.flushed
        while not self._is_last(through):
            try:
                parcel = self._parcels.get(timeout=WAKE_SECONDS)
            except queue.Empty:
                parcel = Parcel(through=through)  # lets the consumer look at its clock
            if isinstance(parcel, BaseException):
                raise parcel
            through = parcel.through
            yield self._decode(parcel)

    def confirm(self, position: Position) -> None:
        """Takes effect with the reader's next message; :meth:`settle` waits for it."""
        self.flushed = max(self.flushed, position.lsn)

    def settle(self) -> None:
        # Whoever settles takes no more: a reader that waits to hand over could not hear the answer.
        self._settling.set()
        self._clear()
        with self._settled:
            if not self._settled.wait_for(
                lambda: self._told >= self.flushed or not self._thread.is_alive(), SETTLE_SECONDS
            ):
                raise RetriableError(
                    "capture.not_settled",
                    "the source did not answer the last confirmation in time",
                    hint="nothing is lost: the next capture confirms it again",
                )

    def look(self) -> Mapping[TableId, TableFacts]:
        unsent = unpublished(self._catalog, self._publication, self._tables)
        return look(self._catalog, self._tables, unsent)

    def compare(
        self, known: Mapping[TableId, TableFacts], through: Position
    ) -> Mapping[TableId, TableFacts]:
        now = Moment.now(self._catalog)
        told_by, witness = self._told_by(), self._witness
        looks = look_again(self._catalog, self.look(), known, now, told_by, witness, through.lsn)
        witness.moments.append(now)
        return looks

    def keep_alive(self) -> None:
        """The reader thread does that by itself."""

    def close(self) -> None:
        self._stopping.set()
        self._clear()
        if self._thread.is_alive():
            self._thread.join(STATUS_SECONDS)
        if not self._thread.is_alive():  # one thread at a time
            self._wire.end()
        self._wire.close()

    def _clear(self) -> None:
        """Make room for a reader that waits to hand over."""
        with contextlib.suppress(queue.Empty):
            while True:
                self._parcels.get_nowait()

    def _decode(self, parcel: Parcel) -> ChangeBatch:
        through = None if parcel.through is None else boundary(self._epoch, parcel.through)
        if not parcel.messages:
            return ChangeBatch(log_rows.ARROW_SCHEMA.empty_table(), through=through)
        decoded = self._decoder.decode(parcel.messages)
        self._witness.read(decoded.rows)
        return ChangeBatch(
            decoded.rows,
            decoded.schemas,
            through,
            decoded.transactions,
            parcel.size,
            tuple((table, at) for table, at in decoded.rewritten if table in self._tables),
            decoded.astray,
        )

    def _is_last(self, through: int | None) -> bool:
        return self._target is not None and through is not None and through >= self._target

    def stopping(self) -> bool:
        return self._stopping.is_set()

    def told(self, flushed: int) -> None:
        with self._settled:
            self._told = flushed
            self._settled.notify_all()

    def hand_over(self, parcel: Parcel) -> None:
        self._put(parcel)

    def _read(self) -> None:
        """The thread: never raises, hands its error over instead."""
        ends = None if self._target is None else self._is_last
        try:
            Reader(self, self._wire, self._parcel_bytes, ends).run()
        except BaseException as error:  # noqa: BLE001 - the consumer raises it
            self._put(error, answer=False)
        with self._settled:
            self._settled.notify_all()

    def _put(self, item: Parcel | BaseException, *, answer: bool = True) -> None:
        while not (self._stopping.is_set() or self._settling.is_set()):
            try:
                self._parcels.put(item, timeout=1.0)
                return
            except queue.Full:
                if answer:  # the consumer is busy; the server wants to hear from us meanwhile
                    self._wire.status(self.flushed, ask=False)


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
            witness = Witness([Moment.now(sql)])  # before the place to read to is asked for
            target = _target(sql, until)
            messages = ddl_messages.installed(sql, settings)
        wire = Wire(connect_replication(settings, "capture"))
        stream = _stream(settings, sql, wire, after, target, messages, witness)
        try:
            with translated(settings, "reading changes"):
                wire.start(settings.slot, settings.publication, after.lsn, messages=messages)
                stream.start(max(1, settings.batch_bytes // PARCEL_SHARE))
                yield stream
        finally:
            stream.close()
    finally:
        sql.close()


def _stream(
    settings: PostgresSettings,
    sql: Connection,
    wire: Wire,
    after: Position,
    target: int | None,
    messages: bool,
    witness: Witness,
) -> PostgresStream:
    relations = Relations(sql, settings.table_ids)
    decoder = Decoder(
        after.epoch,
        relations,
        floor=after.lsn,
        max_value_bytes=settings.max_value_bytes,
        prefix=ddl_messages.prefix(settings) if messages else None,
        tell=relations.tell,
        astray=relations.astray,
        hear=witness.hear,
    )
    return PostgresStream(
        wire,
        decoder,
        sql,
        settings.table_ids,
        settings.publication,
        after,
        target,
        witness,
        lambda: ddl_messages.told_by(sql, settings) if messages else None,
    )


def _target(sql: Connection, until: Position | Literal["now"] | None) -> int | None:
    if until is None:
        return None
    if isinstance(until, Position):
        return until.lsn
    row = sql.execute("SELECT pg_catalog.pg_current_wal_flush_lsn()::text").fetchone()
    return parse_lsn(str(row[0])) if row else None
