"""The replication protocol on one connection: start, receive, answer.

Nothing is confirmed that was not asked for (I2): the driver underneath knows no replication, every
status message is made here.
"""

from __future__ import annotations

import contextlib
import select
import struct
import time
from typing import Final

import psycopg
from psycopg import pq

from tidegate.connectors.postgres.connection import Connection
from tidegate.connectors.postgres.pgoutput import (
    COMMIT,
    MESSAGE,
    POSTGRES_EPOCH_US,
    TRANSACTIONAL,
)
from tidegate.envelope.position import format_lsn
from tidegate.errors import RetriableError
from tidegate.names import quote_sql

_DATA: Final = ord("w")
_HEADER: Final = 25  # w, start, end, clock
_KEEPALIVE: Final = struct.Struct(">cQQ?")
_STATUS: Final = struct.Struct(">cQQQQ?")
_END_SECONDS: Final = 1.0
"""A walsender in the middle of a large transaction hears nothing; then it is left to notice."""


class Wire:
    """Messages of one START_REPLICATION. One thread at a time."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._libpq = connection.pgconn
        self.sent_pointer = 0  # the server has decoded everything before this LSN
        self.answers = 0  # keepalives received so far
        self._streaming = False

    def start(self, slot: str, publication: str, lsn: int, *, messages: bool = False) -> None:
        """``messages``: those of ``pg_logical_emit_message`` as well."""
        names = publication.replace("'", "''")
        publications = quote_sql(names) if "," in publication else names
        command = (
            f"START_REPLICATION SLOT {quote_sql(slot)} LOGICAL {format_lsn(lsn)}"
            f" (proto_version '1', publication_names '{publications}'"
            + (", messages 'true')" if messages else ")")
        )
        result = self._libpq.exec_(command.encode())
        if result.status != pq.ExecStatus.COPY_BOTH:
            raise self._failed(result.error_message.decode(errors="replace"))
        self._libpq.nonblocking = 1
        self._streaming = True

    def read(self, messages: list[bytes], room: int) -> int:
        """Append the change messages at hand, up to a COMMIT or ``room`` bytes; their size.

        The socket is asked only when the buffer is empty, and without waiting: waiting would give
        the interpreter to another thread for milliseconds, each time for a few rows.
        """
        get, append = self._libpq.get_copy_data, messages.append
        taken, dry = 0, False
        while taken < room:
            size, data = get(1)
            if size > 0:
                dry = False
                if data[0] != _DATA:
                    self._keepalive(data)
                    continue
                kind = data[_HEADER]
                if kind == MESSAGE and not data[_HEADER + 1] & TRANSACTIONAL:
                    continue  # between transactions, and none of ours
                append(bytes(data[_HEADER:]))
                taken += size
                if kind == COMMIT:
                    break
            elif size < 0:
                raise self._failed(self._ending())
            elif dry:
                break
            else:
                self._libpq.consume_input()
                dry = True
        return taken

    def _keepalive(self, data: memoryview) -> None:
        _, self.sent_pointer, _, _ = _KEEPALIVE.unpack_from(data)
        self.answers += 1

    def wait(self, seconds: float) -> bool:
        """Until something can be read (True), or ``seconds`` are over."""
        return bool(select.select([self._libpq.socket], [], [], seconds)[0])

    def status(self, flushed: int, *, ask: bool) -> None:
        """Tell how far we are durably; ``ask`` for an answer with the sent pointer."""
        clock = int(time.time() * 1_000_000) - POSTGRES_EPOCH_US
        received = max(flushed, self.sent_pointer)
        message = _STATUS.pack(b"r", received, flushed, flushed, clock, ask)
        self._libpq.put_copy_data(message)
        while self._libpq.flush():
            select.select([], [self._libpq.socket], [], 1.0)

    def end(self) -> None:
        """End the stream and wait, not for long, until the server has let go of the slot: who
        only closes the connection may find it "active" when he comes back at once."""
        if not self._streaming:
            return
        self._streaming = False
        with contextlib.suppress(psycopg.Error):  # a lost connection has ended already
            self._libpq.put_copy_end()
            deadline = time.monotonic() + _END_SECONDS
            while self._libpq.flush() or not self._ended():
                left = deadline - time.monotonic()
                if left <= 0:
                    return
                self.wait(left)
                self._libpq.consume_input()

    def _ended(self) -> bool:
        """Whether the server has said its last word; what it sent before it was not asked for."""
        while (size := self._libpq.get_copy_data(1)[0]) > 0:
            pass
        if size == 0 or self._libpq.is_busy():
            return False
        while not self._libpq.is_busy():
            if self._libpq.get_result() is None:
                return True
        return False

    def close(self) -> None:
        self._connection.close()

    def _ending(self) -> str:
        result = self._libpq.get_result()
        text = result.error_message if result is not None else b"the server ended the stream"
        return text.decode(errors="replace")

    def _failed(self, text: str) -> RetriableError:
        reason = " ".join(text.split())
        if "is active for PID" in reason:
            return RetriableError(
                "capture.slot_active",
                f"another capture reads the replication slot: {reason}",
                hint="only one capture runs per pipeline: wait for the other one, or end it",
            )
        return RetriableError(
            "source.stream_lost",
            f"the replication stream ended: {reason}",
            hint="the next attempt goes on after the last durable position",
        )
