"""Rows of the log that never happened.

A server writes a transaction that is rolled back, or a part of one, where it cannot just forget it
(MariaDB: after a temporary table was made or dropped in it). Such a group ends with ROLLBACK, or
holds SAVEPOINT and ROLLBACK TO; the rows before them are in the log all the same. What was
changed in tables without transactions lies in groups of its own, on both servers.
"""

from __future__ import annotations

import time
from typing import Final, Protocol

from tidegate.connectors.mysql import events
from tidegate.connectors.mysql.charsets import Charsets
from tidegate.connectors.mysql.events import Mark, Savepoints, Span
from tidegate.connectors.mysql.query_events import Statement, statement
from tidegate.connectors.mysql.settings import MysqlSettings
from tidegate.connectors.mysql.sql_lexer import Kind, Token
from tidegate.connectors.mysql.wire import (
    HEARTBEAT_SECONDS,
    RECEIVE_BYTES,
    SILENCE_SECONDS,
    Wire,
    ended,
)
from tidegate.names import TableId

BEGINNING: Final[Mark] = (0, 0)
UNCERTAIN: Final = (
    "has rows of a transaction that was rolled back in part, and to where cannot be told"
)


KEPT: Final = (
    "has rows that a rolled-back transaction changed all the same: its engine is not InnoDB"
)


class Undo(Protocol):
    """What the decoder asks about transactions that are rolled back."""

    def ahead(self, volume: int, number: int) -> tuple[Span, ...]:
        """Of a transaction whose end was not read yet: which parts of it did not happen."""
        ...

    def undoes(self, table: TableId) -> bool:
        """Whether the table's engine takes back what a rolled-back transaction did."""
        ...


def control_word(said: Statement) -> tuple[str, str]:
    """``BEGIN``, ``COMMIT``, ``ROLLBACK``, ``SAVEPOINT``, ``ROLLBACK TO``, ``RELEASE`` or nothing,
    and the savepoint's name."""
    words = said.tokens or ()
    found = [token.word for token in words[:2]]
    match found:
        case ["BEGIN" | "COMMIT" | "ROLLBACK" as word]:
            return word, ""
        case ["XA", "START" | "BEGIN"]:
            return "XA", ""
        case ["SAVEPOINT", *_] if len(words) == 2:
            return "SAVEPOINT", _name(words[1])
        case ["ROLLBACK", "TO"] if len(words) >= 3:
            return "ROLLBACK TO", _name(words[-1])
        case ["RELEASE", "SAVEPOINT"]:
            return "RELEASE", _name(words[-1])
    return "", ""


def _name(token: Token) -> str:
    """Savepoints are told apart without regard to case."""
    return token.text.lower() if token.kind in (Kind.NAME, Kind.WORD) else ""


def ahead(settings: MysqlSettings, charsets: Charsets, file: str, offset: int) -> tuple[Span, ...]:
    """Read the transaction at ``offset`` up to its end, which is in the log as soon as its
    beginning is, for what of it was rolled back."""
    wire, heard = Wire(settings), time.monotonic()
    savepoints = Savepoints()
    spans: list[Span] = []
    try:
        wire.start(file, offset, settings.other_server_id)
        checksums = False
        while time.monotonic() - heard < SILENCE_SECONDS:
            parcel = wire.read(RECEIVE_BYTES, HEARTBEAT_SECONDS)
            data = parcel.data
            for start, end in parcel.events:
                heard = time.monotonic()
                kind = data[start + 4]
                if kind == events.FORMAT:
                    checksums = events.checksummed(data[start:end])
                if kind in (events.XID, events.XA_PREPARE):
                    return tuple(spans)
                if kind not in (events.QUERY, events.MARIADB_QUERY):
                    continue
                said = statement(data, start, end - 4 if checksums else end, charsets)
                mark = (events.begins_at(data, start), 0)
                word, name = control_word(said)
                if word == "SAVEPOINT":
                    savepoints.set(name, mark)
                elif word == "ROLLBACK TO":
                    spans.append(savepoints.back_to(name, mark)[0])
                elif word == "ROLLBACK":
                    return (*spans, (BEGINNING, mark))
                elif word == "COMMIT":
                    return tuple(spans)
    finally:
        wire.close()
    raise ended("the log was not sent up to the end of a transaction")
