"""One connection that the server streams its binary log to: bytes in, whole events out.

The driver does the handshake and asks for the log; from then on the socket is read in large pieces
and cut into events by offsets, for the driver's own packets cost more than decoding them.
"""

from __future__ import annotations

import select
import struct
import time
import zlib
from dataclasses import dataclass, field
from typing import Any, Final

import pymysql

from tidegate.connectors.mysql.connection import connect, query
from tidegate.connectors.mysql.events import FORMAT, HEADER
from tidegate.connectors.mysql.settings import MysqlSettings
from tidegate.errors import FatalError, RetriableError

HEARTBEAT_SECONDS: Final = 1.0
SILENCE_SECONDS: Final = 60.0
"""Neither an event nor a heartbeat for so long: the connection is dead."""
LINGER_SECONDS: Final = 0.02
"""More of a busy log arrives within that; decoding many events at once is cheaper by far."""
RECEIVE_BYTES: Final = 1 << 20
_DUMP: Final = 0x12
_LARGEST: Final = 0xFFFFFF
"""A packet of this length goes on in the next."""
_PURGED: Final = 1236
_CRC: Final = struct.Struct("<I")


@dataclass(slots=True)
class Parcel:
    """Raw bytes and where the events in them begin and end."""

    data: bytes = b""
    events: list[tuple[int, int]] = field(default_factory=list)


class Wire:
    """Not thread-safe; the server is kept waiting by not reading (TCP)."""

    def __init__(self, settings: MysqlSettings) -> None:
        self._connection = connect(settings)
        self._rest = bytearray()
        self._parts: list[bytes] = []  # of an event that is longer than a packet

    def start(self, file: str, offset: int, server_id: int) -> None:
        """Ask for the log from ``offset`` of ``file`` on, as the replica ``server_id``."""
        wanted = int(HEARTBEAT_SECONDS * 1_000_000_000)
        query(self._connection, f"SET @master_heartbeat_period = {wanted}")
        query(self._connection, "SET @master_binlog_checksum = @@global.binlog_checksum")
        query(self._connection, "SET @mariadb_slave_capability = 4")
        body = struct.pack("<IHI", offset, 0, server_id) + file.encode()
        self._driver._execute_command(_DUMP, body)
        self._socket.settimeout(SILENCE_SECONDS)

    def close(self) -> None:
        # No goodbye: the server is streaming and would not read it.
        self._driver._force_close()

    def read(self, size: int, wait_seconds: float) -> Parcel:
        """About ``size`` bytes if they come without a pause; nothing after ``wait_seconds``."""
        deadline = time.monotonic() + wait_seconds
        while True:
            received = self._receive(size, deadline)
            parcel = self._cut()
            # An event may be longer than all that was wanted: then more of it is.
            if parcel.events or not received:
                return parcel

    def _receive(self, size: int, deadline: float) -> int:
        received = 0
        while received < size:
            pause = LINGER_SECONDS if received else max(0.0, deadline - time.monotonic())
            if not self._readable(pause):
                break
            piece = self._socket.recv(min(RECEIVE_BYTES, size))
            if not piece:
                raise ended("the server closed the connection")
            self._rest += piece
            received += len(piece)
        return received

    def _readable(self, seconds: float) -> bool:
        pending = getattr(self._socket, "pending", None)  # TLS may hold decrypted bytes
        if pending is not None and pending():
            return True
        return bool(select.select([self._socket], [], [], seconds)[0])

    def _cut(self) -> Parcel:
        """Whole events of what was received; the rest stays for the next call."""
        data = bytes(self._rest)
        size, at = len(data), 0
        events: list[tuple[int, int]] = []
        extra: list[bytes] = []
        behind = size
        while at + 4 <= size:
            length = data[at] | data[at + 1] << 8 | data[at + 2] << 16
            end = at + 4 + length
            if end > size:
                break
            if length == _LARGEST or self._parts:
                whole = self._long(data[at + 4 : end], last=length < _LARGEST)
                if whole is not None:
                    extra.append(whole)
                    events.append((behind + 1, behind + len(whole)))
                    behind += len(whole)
            elif data[at + 4] == 0:
                events.append((at + 5, end))
            else:
                raise _refused(data[at + 4 : end])
            at = end
        del self._rest[:at]
        return Parcel(b"".join((data, *extra)) if extra else data, events)

    def _long(self, part: bytes, *, last: bool) -> bytes | None:
        if not self._parts and part[0] != 0:
            raise _refused(part)
        self._parts.append(part)
        if not last:
            return None
        whole, self._parts = b"".join(self._parts), []
        return whole

    @property
    def _driver(self) -> Any:
        return self._connection

    @property
    def _socket(self) -> Any:
        return self._driver._sock


def check_crc(view: memoryview, start: int, end: int) -> None:
    """Refuse an event that is not what the server wrote."""
    (told,) = _CRC.unpack_from(view, end - 4)
    if zlib.crc32(view[start : end - 4]) != told:
        raise RetriableError(
            "capture.checksum",
            "an event of the binary log does not match its checksum",
            hint="if it stays, the server's log file is damaged: `tidegate recover`",
        )


def first_event_seconds(settings: MysqlSettings, file: str, offset: int) -> int:
    """When ``file`` began, by its own first event."""
    wire = Wire(settings)
    try:
        wire.start(file, offset, settings.other_server_id)
        deadline = time.monotonic() + SILENCE_SECONDS
        while time.monotonic() < deadline:
            parcel = wire.read(1, HEARTBEAT_SECONDS)
            for start, end in parcel.events:
                if parcel.data[start + 4] == FORMAT and end - start > HEADER:
                    return int.from_bytes(parcel.data[start : start + 4], "little")
    finally:
        wire.close()
    raise ended("the server did not say when its log file began")


def _refused(packet: bytes) -> Exception:
    if packet[0] == 0xFE:
        return ended("the server ended the stream")
    code = int.from_bytes(packet[1:3], "little")
    if code == _PURGED:
        return FatalError(
            "capture.log_refused",
            "the server cannot send its binary log from the place we know:"
            f" {packet[9:].decode('utf-8', 'replace')[:200]}",
            hint="`tidegate recover --dry-run` says whether history is lost, and of which tables",
        )
    return pymysql.err.OperationalError(code, packet[9:].decode("utf-8", "replace"))


def ended(what: str) -> RetriableError:
    return RetriableError(
        "source.unreachable", what, hint="the next attempt goes on where this one was"
    )
