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
from tidegate.connectors.mysql.charsets import Charsets
from tidegate.connectors.mysql.connection import Connection, connect, session, variable
from tidegate.connectors.mysql.decoder import Decoder
from tidegate.connectors.mysql.discover import live
from tidegate.connectors.mysql.failures import translated
from tidegate.connectors.mysql.position import (
    FIRST_OFFSET,
    Epoch,
    LogFile,
    check_history,
    current,
    file_named,
    file_number,
    files,
    number_of,
    place_of,
    reborn,
    server_identity,
)
from tidegate.connectors.mysql.settings import MysqlSettings
from tidegate.connectors.mysql.wire import SILENCE_SECONDS, Wire, first_event_seconds
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
        self, wire: Wire, decoder: Decoder, epoch: str, target: int | None, parcel_bytes: int
    ) -> None:
        self._wire = wire
        self._decoder = decoder
        self._epoch = epoch
        self._target = target
        self._parcel_bytes = parcel_bytes

    def __iter__(self) -> Iterator[ChangeBatch]:
        through: Position | None = boundary(self._epoch, self._decoder.through)
        heard = time.monotonic()
        while not self._is_last(through):
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
            yield batch

    def confirm(self, position: Position) -> None:
        """The server does not ask."""

    def settle(self) -> None:
        """Nothing to wait for."""

    def look(self) -> Mapping[TableId, TableFacts]:
        return {}  # the log carries every DDL

    def keep_alive(self) -> None:
        """The server waits for as long as ``connection.IDLE_SECONDS``."""

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
            verify_history(settings, sql, after)
            target = _target(sql, until)
            charsets = Charsets.read(sql)
            checksums = variable(sql, "binlog_checksum") == "CRC32"
            number, offset = place_of(after)
            name = file_named(sql, number)
        decoder = Decoder(
            after.epoch,
            settings.table_ids,
            charsets,
            lambda table: live(sql, table),
            floor=after.lsn,
            max_value_bytes=settings.max_value_bytes,
            checksums=checksums,
        )
        wire = Wire(settings)
        try:
            with translated(settings, "reading changes"):
                wire.start(name, max(offset, FIRST_OFFSET), settings.server_id)
                size = max(1, settings.batch_bytes // PARCEL_SHARE)
                yield MysqlStream(wire, decoder, after.epoch, target, size)
        finally:
            wire.close()
    finally:
        sql.close()


def verify_history(settings: MysqlSettings, sql: Connection, after: Position) -> None:
    """FatalError if the server's log does not continue ours."""
    epoch, present = Epoch.parse(after.epoch), files(sql)
    check_history(epoch, after, server_identity(sql), present, settings.tables)
    began = next((log for log in present if log.number == epoch.file), None)
    if began is not None:
        reborn(epoch, _born(settings, began), settings.tables)


def new_epoch(settings: MysqlSettings) -> Position:
    """Where the log ends now, as the start of a new epoch."""
    with session(settings, "joining the binary log") as sql:
        name, offset = current(sql)
        born = _born(settings, LogFile(name, offset))
        epoch = Epoch(server_identity(sql), file_number(name), born)
    return boundary(str(epoch), number_of(epoch.file, offset))


def _born(settings: MysqlSettings, file: LogFile) -> int:
    return first_event_seconds(settings, file.name, FIRST_OFFSET)


def _target(sql: Connection, until: Position | Literal["now"] | None) -> int | None:
    if until is None:
        return None
    if isinstance(until, Position):
        return until.lsn
    name, offset = current(sql)
    return number_of(file_number(name), offset)
