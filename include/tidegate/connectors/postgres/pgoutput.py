"""The messages of pgoutput, protocol version 1: what is rare is parsed one by one, here.

Rows (I, U, D) are not: ``tuples.py`` walks thousands of them by column.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Final

from tidegate.errors import FatalError
from tidegate.names import TableId

BEGIN: Final = ord("B")
COMMIT: Final = ord("C")
RELATION: Final = ord("R")
TRUNCATE: Final = ord("T")
INSERT: Final = ord("I")
UPDATE: Final = ord("U")
DELETE: Final = ord("D")
MESSAGE: Final = ord("M")
TRANSACTIONAL: Final = 1
"""The flag of a message that belongs to a transaction."""

POSTGRES_EPOCH_US: Final = 946_684_800_000_000
"""2000-01-01, from which PostgreSQL counts, in microseconds since 1970."""

_COMMIT_END: Final = struct.Struct(">Q")


@dataclass(frozen=True, slots=True)
class RelationColumn:
    name: str
    type_oid: int
    typmod: int
    identity: bool  # part of the replica identity


@dataclass(frozen=True, slots=True)
class RelationMessage:
    """A table as the log sends it from here on. Names, not attribute numbers."""

    relid: int
    table: TableId
    replica_identity: str  # d, f, i, n as in pg_class.relreplident
    columns: tuple[RelationColumn, ...]
    xid: int | None = None  # of the transaction that it stands in


@dataclass(frozen=True, slots=True)
class LogicalMessage:
    """What someone wrote to the log with pg_logical_emit_message."""

    prefix: str
    content: bytes


def commit_end(payload: bytes) -> int:
    """The LSN right after a commit record: the boundary after its transaction."""
    return int(_COMMIT_END.unpack_from(payload, 10)[0])


def relation_id(payload: bytes) -> int:
    return int.from_bytes(payload[1:5], "big")


def parse_relation(payload: bytes) -> RelationMessage:
    relid = relation_id(payload)
    schema, at = _text(payload, 5)
    name, at = _text(payload, at)
    identity = chr(payload[at])
    (count,) = struct.unpack_from(">H", payload, at + 1)
    at += 3
    columns = []
    for _ in range(count):
        flags = payload[at]
        column, at = _text(payload, at + 1)
        type_oid, typmod = struct.unpack_from(">Ii", payload, at)
        at += 8
        columns.append(RelationColumn(column, type_oid, typmod, bool(flags & 1)))
    # pgoutput writes an empty schema name for pg_catalog, which is never published.
    return RelationMessage(relid, TableId(schema or "pg_catalog", name), identity, tuple(columns))


def parse_message(payload: bytes) -> LogicalMessage:
    prefix, at = _text(payload, 10)
    (size,) = struct.unpack_from(">I", payload, at)
    return LogicalMessage(prefix, payload[at + 4 : at + 4 + size])


def parse_truncate(payload: bytes) -> tuple[int, ...]:
    """The relations one TRUNCATE empties."""
    (count,) = struct.unpack_from(">I", payload, 1)
    return struct.unpack_from(f">{count}I", payload, 6)


def unknown_relation(relid: int) -> FatalError:
    return FatalError(
        "capture.unknown_relation",
        f"the source sent a change of relation {relid} without describing it first",
        hint="run capture again; if it stays, report this with the server's version",
    )


def _text(payload: bytes, at: int) -> tuple[str, int]:
    end = payload.index(0, at)
    return payload[at:end].decode(), end + 1
