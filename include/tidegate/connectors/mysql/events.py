"""Events of the binary log that are not rows: what they say, byte by byte."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Final

HEADER: Final = 19
"""Timestamp 4, type 1, server 4, size 4, end in the file 4, flags 2."""

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
GTIDS: Final = (33, 34)  # MySQL's, with and without a name
XA_PREPARE: Final = 38
PARTIAL_JSON: Final = 39
PAYLOAD: Final = 40  # a whole transaction, compressed
MARIADB_GTID: Final = 162
MARIADB_ENCRYPTED: Final = 164
MARIADB_COMPRESSED: Final = tuple(range(165, 172))

ROWS_V2: Final = (30, 31, 32)
ROWS: Final = frozenset({*WRITE, *UPDATE, *DELETE})

ARTIFICIAL: Final = 0x20
"""Flag of events that the server made up for us: they have no place in the file."""

_STANDALONE: Final = 1
_PREPARED_XA: Final = 64
_POST_GTID: Final = struct.Struct("<B16sq")


@dataclass(slots=True)
class Transaction:
    """The group of events that a GTID began."""

    number: int  # file and offset of its first byte
    micros: int  # since 1970
    tx_id: int
    begun: bool  # False: a single statement follows, and the group ends with it
    xa: bool = False  # prepared only: whether it commits is decided later


def rotate(body: bytes) -> tuple[str, int]:
    """The next file and the offset in it."""
    (offset,) = struct.unpack_from("<Q", body)
    return body[8:].decode(), offset


def mariadb_gtid(body: bytes, seconds: int, number: int) -> Transaction:
    sequence, _domain, flags = struct.unpack_from("<QIB", body)
    return Transaction(
        number,
        seconds * 1_000_000,
        sequence & 0x7FFFFFFFFFFFFFFF,
        begun=not flags & _STANDALONE,
        xa=bool(flags & _PREPARED_XA),
    )


def mysql_gtid(body: bytes, seconds: int, number: int) -> Transaction:
    _flags, _uuid, sequence = _POST_GTID.unpack_from(body)
    micros = seconds * 1_000_000
    logical = _POST_GTID.size
    if len(body) >= logical + 24 and body[logical] == 2:
        # The time of this commit; bit 55 says that the original's time follows.
        micros = int.from_bytes(body[logical + 17 : logical + 24], "little") & ~(1 << 55)
    return Transaction(number, micros, sequence, begun=False)


@dataclass(frozen=True, slots=True)
class Statement:
    """SQL text in the log. It may hold values: never log it (I9)."""

    database: str
    sql: str


def statement(body: bytes) -> Statement:
    _thread, _seconds, database, _error, variables = struct.unpack_from("<IIBHH", body)
    at = 13 + variables
    name = body[at : at + database].decode("utf-8", "replace")
    return Statement(name, body[at + database + 1 :].decode("utf-8", "replace"))


def checksummed(format_body: bytes) -> bool:
    """Whether events end with a CRC32: the byte before the format event's own."""
    return len(format_body) >= 5 and format_body[-5] == 1
