"""Events of the binary log that are not rows: what they say, byte by byte."""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Final
from uuid import UUID

from tidegate.names import TableId

HEADER: Final = 19
"""Timestamp 4, type 1, server 4, size 4, end in the file 4, flags 2."""
HEAD: Final = struct.Struct("<IBIIIH")

QUERY: Final = 2
ROTATE: Final = 4
FORMAT: Final = 15
XID: Final = 16
TABLE_MAP: Final = 19
WRITE: Final = (23, 30)  # before and since MySQL 5.6; MariaDB writes the former
UPDATE: Final = (24, 31)
DELETE: Final = (25, 32)
INCIDENT: Final = 26
HEARTBEATS: Final = (27, 41)
GTID: Final = 33
GTIDS: Final = (GTID, 34)  # MySQL's, with and without a name
TAGGED_GTID: Final = 42  # since MySQL 8.3, and only where someone tags transactions
XA_PREPARE: Final = 38
PARTIAL_JSON: Final = 39
PAYLOAD: Final = 40  # a whole transaction, compressed
MARIADB_GTID: Final = 162
MARIADB_ENCRYPTED: Final = 164
MARIADB_QUERY: Final = 165  # compressed
MARIADB_ROWS: Final = {166: 23, 167: 24, 168: 25, 169: 30, 170: 31, 171: 32}
"""Compressed row events, and what they are otherwise."""

ROWS_V2: Final = (30, 31, 32, PARTIAL_JSON)
ROWS: Final = frozenset({*WRITE, *UPDATE, *DELETE, PARTIAL_JSON})

LOADS: Final = (6, 9, 10, 11, 12, 17, 18)
"""LOAD DATA as a statement, and the file that it reads, in every form there was."""
WITHOUT_ROWS: Final = frozenset(
    {0, 3, 5, 7, 13, 14, FORMAT, *HEARTBEATS, 28, 29, 35, 36, 37}  # both servers
    | {160, 161, 163, MARIADB_ENCRYPTED}  # MariaDB's
)
"""What says nothing of rows by itself: variables of a statement, notes of the server's own."""

IGNORABLE: Final = 0x80
"""Flag of events that a reader who does not know them may pass over."""
ARTIFICIAL: Final = 0x20
"""Flag of events that the server made up for us: they have no place in the file."""

_TABLE_BYTES: Final = 8
_STANDALONE: Final = 1
_PREPARED_XA: Final = 64
_POST_GTID: Final = struct.Struct("<B16sq")
_MARIADB_GTID: Final = struct.Struct("<QIB")


Mark = tuple[int, int]
"""An event's offset in its file, then inside of a compressed event."""
Span = tuple[Mark, Mark]
"""From the first mark on, up to and without the second."""


@dataclass(slots=True)
class Savepoints:
    """Of one transaction, in the order they were set."""

    _set: list[tuple[str, Mark]] = field(default_factory=list)

    def set(self, name: str, mark: Mark) -> None:
        self._set.append((name, mark))

    def back_to(self, name: str, mark: Mark) -> tuple[Span, bool]:
        """What is undone, and whether that is certain: a savepoint that is set again replaces the
        first, but for one that a stored function set, which hides it for a while."""
        own = [at for at, (known, _) in enumerate(self._set) if known == name]
        if not own:
            return ((0, 0), mark), False
        del self._set[own[-1] + 1 :]
        return (self._set[own[-1]][1], mark), len(own) == 1


@dataclass(slots=True)
class Transaction:
    """The group of events that a GTID began."""

    number: int  # file and offset of its first byte
    micros: int  # since 1970
    tx_id: int
    begun: bool  # False: a single statement follows, and the group ends with it
    xa: bool = False  # prepared only: whether it commits is decided later
    gtid: Any = None  # of the server's own kind (``gtid``)
    known: bool = False  # captured before: nothing of it is taken
    inflated: int = 0  # bytes that its compressed events have grown by so far
    rows: set[TableId] = field(default_factory=set)  # tables of which it has some
    savepoints: Savepoints = field(default_factory=Savepoints)
    undone: tuple[Span, ...] | None = None  # what did not happen; None: its end was not looked at


def columns_at(data: bytes, start: int, kind: int) -> int:
    """Where a row event names its columns: behind the table's number, flags, and what is extra."""
    at = start + HEADER + _TABLE_BYTES
    return at + int.from_bytes(data[at : at + 2], "little") if kind in ROWS_V2 else at


def rotate(body: bytes) -> tuple[str, int]:
    """The next file and the offset in it."""
    (offset,) = struct.unpack_from("<Q", body)
    return body[8:].decode(), offset


def transaction(data: bytes, start: int, end: int, number: int) -> Transaction:
    """What a GTID event begins, at ``number``."""
    seconds, kind, server, *_ = HEAD.unpack_from(data, start)
    if kind != MARIADB_GTID:
        return _mysql(data[start + HEADER : end], kind, seconds, number)
    sequence, domain, flags = _MARIADB_GTID.unpack_from(data, start + HEADER)
    return Transaction(
        number,
        seconds * 1_000_000,
        sequence & 0x7FFFFFFFFFFFFFFF,
        not flags & _STANDALONE,
        bool(flags & _PREPARED_XA),
        (domain, server, sequence),
    )


@lru_cache(maxsize=64)
def _source(octets: bytes) -> str:
    return str(UUID(bytes=octets))


def _mysql(body: bytes, kind: int, seconds: int, number: int) -> Transaction:
    _flags, source, sequence = _POST_GTID.unpack_from(body)
    micros = seconds * 1_000_000
    logical = _POST_GTID.size
    if len(body) >= logical + 24 and body[logical] == 2:
        # The time of this commit; bit 55 says that the original's time follows.
        micros = int.from_bytes(body[logical + 17 : logical + 24], "little") & ~(1 << 55)
    gtid = (_source(source), sequence) if kind == GTID else None
    return Transaction(number, micros, sequence, begun=False, gtid=gtid)


def begins_at(data: bytes, start: int) -> int:
    """The event's own offset in its file."""
    _, _, _, size, ends_at, _ = HEAD.unpack_from(data, start)
    return int(ends_at - size)


def checksummed(format_body: bytes) -> bool:
    """Whether events end with a CRC32: the byte before the format event's own."""
    return len(format_body) >= 5 and format_body[-5] == 1
