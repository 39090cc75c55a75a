"""The change stream: one connection, read and decoded by the consumer's own thread.

While the consumer writes, the server waits on TCP; nothing is queued here, so memory is bounded by
one parcel. The server keeps its log by its own expiry, not for us: confirming does nothing (I2).
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator, Mapping
from typing import Final, Literal

from tidegate.connectors.changes import ChangeBatch
from tidegate.connectors.mysql import history, rollbacks
from tidegate.connectors.mysql.alone import Alone
from tidegate.connectors.mysql.anchor import Anchor
from tidegate.connectors.mysql.charsets import Charsets
from tidegate.connectors.mysql.connection import Connection, connect, session, variable
from tidegate.connectors.mysql.decoder import Decoder
from tidegate.connectors.mysql.discover import live, transactional
from tidegate.connectors.mysql.events import Span
from tidegate.connectors.mysql.failures import translated
from tidegate.connectors.mysql.looks import Looks
from tidegate.connectors.mysql.position import (
    FIRST_OFFSET,
    LAST_FILE,
    Epoch,
    Place,
    current,
    file_number,
    files,
    server_identity,
)
from tidegate.connectors.mysql.settings import MysqlSettings
from tidegate.connectors.mysql.skim import gtids_at
from tidegate.connectors.mysql.statement_effects import Taken
from tidegate.connectors.mysql.wire import SILENCE_SECONDS, Wire
from tidegate.envelope import log_rows
from tidegate.envelope.position import Position, boundary
from tidegate.errors import RetriableError
from tidegate.names import TableId
from tidegate.schema.table_facts import TableFacts

PARCEL_SHARE: Final = 8
"""A parcel holds 1/8 of ``capture.max_batch_bytes`` of raw log."""
WAKE_SECONDS: Final = 1.0
"""On a quiet source the consumer gets an empty batch this often."""


class MysqlStream:
    """Implements ``ChangeStream``; made by :func:`open_changes`."""

    def __init__(
        self,
        wire: Wire,
        alone: Alone,
        decoder: Decoder,
        looks: Looks,
        target: int | None,
        parcel_bytes: int,
    ) -> None:
        self._wire = wire
        self._alone = alone
        self._decoder = decoder
        self._looks = looks
        self._target = target
        self._parcel_bytes = parcel_bytes

    def __iter__(self) -> Iterator[ChangeBatch]:
        through: Position | None = self._decoder.through
        heard = time.monotonic()
        while not self._is_last(through):
            self._alone.renew()
            parcel = self._wire.read(self._parcel_bytes, WAKE_SECONDS)
            if parcel.events:
                heard = time.monotonic()
                batch = self._decoder.decode(parcel)
            else:
                if time.monotonic() - heard > SILENCE_SECONDS:
                    raise RetriableError(
                        "source.silent",
                        "neither changes nor heartbeats came from the source",
                        hint="the next attempt goes on where this one was",
                    )
                batch = ChangeBatch(log_rows.ARROW_SCHEMA.empty_table(), through=through)
            through = batch.through
            yield self._looks.told(batch, self._decoder.schemas)

    def confirm(self, position: Position) -> None:
        """The server does not ask."""

    def settle(self) -> None:
        """Nothing to wait for."""

    def look(self) -> Mapping[TableId, TableFacts]:
        found = self._looks.ripe(self._decoder.schemas)
        if self._looks.due(self._decoder.schemas):
            self._looks.take()
        return found

    def keep_alive(self) -> None:
        """The server waits for as long as ``connection.IDLE_SECONDS``."""
        self._alone.renew()

    def _is_last(self, through: Position | None) -> bool:
        return self._target is not None and through is not None and through.lsn >= self._target


@contextlib.contextmanager
def open_changes(
    settings: MysqlSettings, after: Position, until: Position | Literal["now"] | None
) -> Iterator[MysqlStream]:
    """Everything committed after ``after``, on one connection for the whole run."""
    sql = connect(settings)
    try:
        with translated(settings, "checking the binary log"):
            alone = Alone(sql, settings)
            joint = history.find(settings, sql, after)
            looks = Looks(sql, settings.table_ids, joint.term)
            looks.take()  # before the target: the log is read up to it
            target = _target(sql, until, joint.term)
            charsets = Charsets.read(sql)
            folded = (variable(sql, "lower_case_table_names") or "0") != "0"
            checksums = variable(sql, "binlog_checksum") == "CRC32"
        decoder = Decoder(
            after.epoch,
            Taken(frozenset(settings.table_ids), folded),
            charsets,
            lambda table: live(sql, table),
            _Undo(settings, sql, charsets),
            place=joint.place,
            anchor=joint.anchor,
            max_value_bytes=settings.max_value_bytes,
            checksums=checksums,
        )
        wire = Wire(settings)
        try:
            with translated(settings, "reading changes"):
                wire.start(joint.name, max(joint.place.offset, FIRST_OFFSET), settings.server_id)
                size = max(1, settings.batch_bytes // PARCEL_SHARE)
                yield MysqlStream(wire, alone, decoder, looks, target, size)
        finally:
            wire.close()
            alone.release()
    finally:
        sql.close()


class _Undo:
    """Implements ``Undo`` beside the stream."""

    def __init__(self, settings: MysqlSettings, sql: Connection, charsets: Charsets) -> None:
        self._settings, self._sql, self._charsets = settings, sql, charsets

    def ahead(self, volume: int, number: int) -> tuple[Span, ...]:
        wanted = volume & LAST_FILE
        name = next(log.name for log in files(self._sql) if log.number == wanted)
        return rollbacks.ahead(self._settings, self._charsets, name, number & 0xFFFFFFFF)

    def undoes(self, table: TableId) -> bool:
        return transactional(self._sql, table)


def new_epoch(settings: MysqlSettings) -> Position:
    """Where the log ends now, as the start of a new epoch."""
    with session(settings, "joining the binary log") as sql:
        name, offset = current(sql)
        born = history.born(settings, name)
        known = gtids_at(settings, sql, name, offset) if history.uses_gtids(sql) else None
        epoch = Epoch(server_identity(sql), file_number(name), born)
    anchor = Anchor(epoch.server, epoch.file, epoch.born).at(known)
    return boundary(str(epoch), Place(0, epoch.file, offset).number, str(anchor))


def _target(sql: Connection, until: Position | Literal["now"] | None, term: int) -> int | None:
    if until is None:
        return None
    if isinstance(until, Position):
        return until.lsn
    name, offset = current(sql)
    return Place(term, file_number(name), offset).number
