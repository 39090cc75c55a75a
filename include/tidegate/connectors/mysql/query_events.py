"""Query events: a statement's text, and the settings of the session that it must be read with.

The text is in the client's own character set, and what quotes a name or escapes a character in it
is a matter of the session's ``sql_mode``; the event carries both.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum
from typing import Final

from tidegate.connectors.mysql import events, inflate
from tidegate.connectors.mysql.charsets import UTF8, Charsets
from tidegate.connectors.mysql.sql_lexer import Dialect, Token, Unreadable, tokens

_POST_HEADER: Final = struct.Struct("<IIBHH")
_LOAD_BYTES: Final = 13
"""What EXECUTE_LOAD_QUERY has between its header and the session's variables."""
_THREAD_SPECIFIC: Final = 0x4
"""Header flag: a temporary table was used, or the connection's number; by the statement, or by
another of the same procedure."""


class _Variable(IntEnum):
    """Those that are read."""

    FLAGS = 0
    SQL_MODE = 1
    CHARSET = 4
    DATABASES = 12
    EXPLICIT_TIMESTAMPS = 16
    PHASE = 130  # MariaDB's


_CATALOG, _CALLER = 2, 11
_SIZES: Final = {
    _Variable.FLAGS: 4,
    _Variable.SQL_MODE: 8,
    3: 4,  # auto_increment
    _Variable.CHARSET: 6,
    7: 2,  # names of months
    8: 2,  # the database's collation
    9: 8,  # tables of a multi-table update
    10: 4,
    13: 3,  # microseconds
    _Variable.EXPLICIT_TIMESTAMPS: 1,
    17: 8,  # transaction number of DDL
    18: 2,
    19: 1,
    20: 1,
    128: 3,  # MariaDB's, from here on
    129: 8,
}
_NAMED: Final = frozenset({5, 6})  # a length and that many bytes
_ANSI_QUOTES, _MSSQL, _NO_BACKSLASH = 1 << 2, 1 << 10, 1 << 20
_MARIADB_EXPLICIT: Final = 1 << 24
_START_ALTER, _COMMIT_ALTER, _ROLLBACK_ALTER = 2, 4, 8
_LETTERS_FOR_QUOTES: Final = "swe7"
"""The one character set of a client that is not ASCII below 128."""
_MOST_DATABASES: Final = 16
"""The server lists no more; another number says that there are."""


@dataclass(frozen=True, slots=True)
class Statement:
    """A statement of the log. Its text may hold values: never log it (I9)."""

    tokens: tuple[Token, ...] | None  # None: its text cannot be read
    database: str  # what a name without a database means
    thread: int = 0  # the session's number
    temporary: bool = False
    """It may have used a temporary table, or something before it in the same procedure did."""
    explicit_timestamps: bool = True  # a timestamp column may be null unless it says otherwise
    databases: frozenset[str] | None = None
    """All whose tables it changed, where the server tells."""
    begins_only: bool = False
    """MariaDB logs a long ALTER when it begins and again when it is done; or when it gave up."""


@dataclass(slots=True)
class _Session:
    sql_mode: int = 0
    charset: int | None = None
    explicit_timestamps: bool | None = None
    flags: int = 0
    phase: int = 0
    databases: frozenset[str] | None = None


def statement(
    data: bytes, start: int, end: int, charsets: Charsets, *, load: bool = False
) -> Statement:
    """The event in ``data[start:end]``, without its checksum. ``load``: a LOAD DATA."""
    body = data[start + events.HEADER : end]
    thread, _seconds, length, _error, size = _POST_HEADER.unpack_from(body)
    at = _POST_HEADER.size + (_LOAD_BYTES if load else 0)
    session = _session(body[at : at + size])
    at += size
    text = body[at + length + 1 :]
    if data[start + 4] == events.MARIADB_QUERY:
        text = inflate.text(text)
    explicit = session.explicit_timestamps
    if charsets.mariadb:
        explicit = bool(session.flags & _MARIADB_EXPLICIT)
    flags = int.from_bytes(data[start + 17 : start + 19], "little")
    return Statement(
        _tokens(text, session, charsets),
        body[at : at + length].decode("utf-8", "replace"),
        thread,
        bool(flags & _THREAD_SPECIFIC),
        explicit is not False,
        session.databases,
        bool(session.phase & (_START_ALTER | _ROLLBACK_ALTER)),
    )


def _tokens(text: bytes, session: _Session, charsets: Charsets) -> tuple[Token, ...] | None:
    mode = session.sql_mode
    dialect = Dialect(
        ansi_quotes=bool(mode & _ANSI_QUOTES),
        backslash_escapes=not mode & _NO_BACKSLASH,
        brackets=bool(mode & _MSSQL) and charsets.mariadb,
        mariadb=charsets.mariadb,
    )
    try:
        return tokens(_decoded(text, session.charset, charsets), dialect)
    except Unreadable:
        return None


def _decoded(text: bytes, collation: int | None, charsets: Charsets) -> str:
    charset = UTF8 if collation is None else charsets.name(collation)
    if text.isascii() and charset != _LETTERS_FOR_QUOTES:
        return text.decode("ascii")
    if not charsets.supported(charset):
        raise Unreadable
    (decoded,) = charsets.decoded([text], charset)
    assert decoded is not None
    return decoded


def _session(variables: bytes) -> _Session:
    found = _Session()
    for code, value in _variables(variables):
        match code:
            case _Variable.FLAGS:
                found.flags = int.from_bytes(value, "little")
            case _Variable.SQL_MODE:
                found.sql_mode = int.from_bytes(value, "little")
            case _Variable.CHARSET:
                found.charset = int.from_bytes(value[:2], "little")
            case _Variable.DATABASES:
                found.databases = frozenset(
                    name.decode("utf-8", "replace") for name in value.split(b"\0")[:-1]
                )
            case _Variable.EXPLICIT_TIMESTAMPS:
                found.explicit_timestamps = bool(value[0])
            case _Variable.PHASE:
                found.phase = value[0]
    return found


def _variables(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Up to the first that is not known: those that are needed come before newer ones."""
    at = 0
    while at < len(data):
        code, at = data[at], at + 1
        size = _size(code, data, at)
        if size is None:
            return
        skipped = 1 if code in (*_NAMED, _CATALOG, _Variable.DATABASES) else 0
        yield code, data[at + skipped : at + size]
        at += size


def _size(code: int, data: bytes, at: int) -> int | None:
    if code in _SIZES:
        return _SIZES[code]
    if code in _NAMED:
        return 1 + data[at]
    if code == _Variable.PHASE:  # an end names its beginning
        return 9 if data[at] & (_COMMIT_ALTER | _ROLLBACK_ALTER) else 1
    if code == _CATALOG:
        return 2 + data[at]
    if code == _CALLER:  # user and host
        user = 1 + data[at]
        return user + 1 + data[at + user]
    if code == _Variable.DATABASES:
        return _databases_size(data, at)
    return None


def _databases_size(data: bytes, at: int) -> int | None:
    if data[at] > _MOST_DATABASES:
        return None
    behind = at + 1
    for _ in range(data[at]):
        behind = data.index(b"\0", behind) + 1
    return behind - at
