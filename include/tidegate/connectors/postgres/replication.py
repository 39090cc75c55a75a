"""The replication protocol over libpq: commands, and the slot a cut is made with.

The driver's own cursor is not used: the confirmations a server gets are exactly those we send.
"""

from __future__ import annotations

import select
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import psycopg
from psycopg import pq

from tidegate.connectors.postgres.connection import Connection
from tidegate.envelope.position import parse_lsn

_CANCEL_SECONDS: Final = 5.0
SAY_SECONDS: Final = 10.0
"""Whoever waits for the source says so this often."""
Waiting = Callable[[float], None]
"""Told, now and then, for how many seconds a command has been waiting."""


class CommandTimeoutError(Exception):
    """A replication command did not end in time; it was cancelled."""


@dataclass(frozen=True, slots=True)
class System:
    """What IDENTIFY_SYSTEM says."""

    identifier: str
    timeline: int
    flushed: int  # LSN


@dataclass(frozen=True, slots=True)
class NewSlot:
    """What CREATE_REPLICATION_SLOT says."""

    name: str
    consistent_point: int
    snapshot: str | None


def identify(connection: Connection) -> System:
    row = command(connection, "IDENTIFY_SYSTEM", timeout=60.0)
    return System(row[0] or "", int(row[1] or "0"), parse_lsn(row[2] or "0/0"))


def create_temporary_slot(
    connection: Connection, name: str, timeout: float, waiting: Waiting
) -> NewSlot:
    """A slot that lives with the connection, its snapshot exported until the next command."""
    sql = f"CREATE_REPLICATION_SLOT {name} TEMPORARY LOGICAL pgoutput EXPORT_SNAPSHOT"
    row = command(connection, sql, timeout=timeout, waiting=waiting)
    return NewSlot(name, parse_lsn(row[1] or "0/0"), row[2])


def command(
    connection: Connection, sql: str, timeout: float, waiting: Waiting = lambda _: None
) -> list[str | None]:
    """Run a command that answers with one row; bounded, because slots wait for transactions."""
    pgconn = connection.pgconn
    began = said = time.monotonic()
    pgconn.send_query(sql.encode())
    poll = select.poll()
    poll.register(pgconn.socket, select.POLLIN)
    row: list[str | None] = []
    while True:
        while pgconn.is_busy():
            left = began + timeout - time.monotonic()
            quiet = said + SAY_SECONDS - time.monotonic()
            if poll.poll(max(0.0, min(left, quiet)) * 1000):
                pgconn.consume_input()
            elif left <= quiet:
                connection.cancel_safe(timeout=_CANCEL_SECONDS)
                raise CommandTimeoutError(sql.partition(" ")[0])
            else:
                said = time.monotonic()
                waiting(said - began)
        result = pgconn.get_result()
        if result is None:
            return row
        row = _row(connection, result) or row


def _row(connection: Connection, result: pq.abc.PGresult) -> list[str | None]:
    if result.status not in (pq.ExecStatus.TUPLES_OK, pq.ExecStatus.COMMAND_OK):
        raise psycopg.errors.error_from_result(result, encoding="utf-8")
    if not result.ntuples:
        return []
    values = [result.get_value(0, column) for column in range(result.nfields)]
    return [None if value is None else value.decode() for value in values]
