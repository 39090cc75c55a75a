"""Connections to the file, and SQLite's errors in Tidegate's words."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tidegate.errors import ConfigError, RetriableError, TidegateError
from tidegate_sqlite.settings import SqliteSettings

_PASSING = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_IOERR)


@contextmanager
def session(settings: SqliteSettings, doing: str) -> Iterator[sqlite3.Connection]:
    """A connection in autocommit mode; it never makes the file."""
    with translated(settings, doing):
        connection = sqlite3.connect(
            f"{Path(settings.database).absolute().as_uri()}?mode=rw",
            uri=True,
            timeout=settings.lock_timeout_seconds,
            isolation_level=None,
        )
        try:
            yield connection
        finally:
            connection.close()


@contextmanager
def writing(connection: sqlite3.Connection) -> Iterator[None]:
    """A transaction that holds the one write lock: everything committed before is visible in it,
    everything else comes after it."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
    except BaseException:
        connection.execute("ROLLBACK")
        raise
    connection.execute("COMMIT")


@contextmanager
def translated(settings: SqliteSettings, doing: str) -> Iterator[None]:
    """By what one can do about it; SQLite's messages name tables and columns, never values."""
    try:
        yield
    except sqlite3.Error as error:
        raise _translate(error, settings, doing) from error


def _translate(error: sqlite3.Error, settings: SqliteSettings, doing: str) -> TidegateError:
    message = f"{doing} in {settings.database} failed: {error}"
    code = (getattr(error, "sqlite_errorcode", 0) or 0) & 0xFF  # without the extended part
    if code in _PASSING:
        return RetriableError(
            "sqlite.busy", message, hint="another process holds the file; the next attempt goes on"
        )
    if code in (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_NOTADB):
        return ConfigError("sqlite.file", message, hint="source.database is the file's path")
    return ConfigError("sqlite.sql", message, hint="`tidegate validate` says what is missing")
