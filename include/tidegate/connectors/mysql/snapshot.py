"""One transaction's view of tables, and the exact place in the log it stands for.

"Note the end of the log, then read" would lose what is written to the log but not yet visible.
MariaDB tells the place of a consistent snapshot by itself. MySQL does not: there the tables are
locked for reading while the snapshot is made, which takes milliseconds once the transactions that
write them have ended; the wait is bounded (I11). No global lock is ever taken.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager

from tidegate.connectors.mysql import discover, history
from tidegate.connectors.mysql.connection import Connection, connect, is_mariadb, query
from tidegate.connectors.mysql.failures import translated
from tidegate.connectors.mysql.position import current, position
from tidegate.connectors.mysql.settings import MysqlSettings
from tidegate.envelope.position import Position
from tidegate.names import TableId


@contextmanager
def exact_snapshot(
    settings: MysqlSettings,
    holder: Connection,
    tables: tuple[TableId, ...],
    epoch: str,
    term: int,
) -> Iterator[Position]:
    """A snapshot on ``holder`` for as long as the context is open, and its position: a transaction
    on ``tables`` is visible if and only if it lies at or before it."""
    query(holder, "SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ")
    place = _mariadb(holder) if is_mariadb(holder) else _mysql(settings, holder, tables)
    try:
        yield position(epoch, term, *place)
    finally:
        if holder.open:  # a lost one has its own error already
            query(holder, "ROLLBACK")


@contextmanager
def joined(
    settings: MysqlSettings, tables: tuple[TableId, ...], head: Position
) -> Iterator[tuple[Connection, AbstractContextManager[Position]]]:
    """A connection, and the snapshot of ``tables`` that it can take at a position that continues
    ``head``."""
    connection = connect(settings)
    try:
        with translated(settings, "making the cut"):
            for table in tables:
                discover.discover(connection, table)
            term = history.term(settings, connection, head)
        yield connection, exact_snapshot(settings, connection, tables, head.epoch, term)
    finally:
        connection.close()


def _mariadb(holder: Connection) -> tuple[str, int]:
    query(holder, "START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY")
    rows = {str(k).lower(): v for k, v in query(holder, "SHOW STATUS LIKE 'binlog_snapshot_%'")}
    return str(rows["binlog_snapshot_file"]), int(rows["binlog_snapshot_position"])


def _mysql(
    settings: MysqlSettings, holder: Connection, tables: tuple[TableId, ...]
) -> tuple[str, int]:
    locker = connect(settings)
    try:
        seconds = max(1, int(settings.lock_timeout_seconds))
        query(locker, f"SET SESSION lock_wait_timeout = {seconds}")
        names = ", ".join(f"{table.sql} READ" for table in sorted(tables))
        query(locker, f"LOCK TABLES {names}")
        query(holder, "START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY")
        return current(locker)
    finally:
        locker.close()  # and with it the locks
