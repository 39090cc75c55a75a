"""Places in the binary log, and the epoch: one log, from the file it was joined at on.

A place's number is the term (8 bits), the file's number (24 bits) and the offset (32 bits) at which
a transaction begins. Events of the same transaction stand at their rows' offsets from there, which
are the same on every re-read and for every choice of tables. A term begins where another server
takes over and its log continues ours by GTID (``history``): its files have numbers of their own.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from tidegate.connectors.mysql.connection import (
    Connection,
    is_mariadb,
    named,
    query,
    server_version,
    variable,
)
from tidegate.connectors.mysql.distance import FIRST_OFFSET as FIRST_OFFSET
from tidegate.envelope.position import BINLOG, Position, boundary
from tidegate.errors import FatalError, SetupError

_FILE_BITS: Final = 24
LAST_FILE: Final = (1 << _FILE_BITS) - 1
_LAST_TERM: Final = 255
_NAME: Final = re.compile(r"(?P<base>.+)\.(?P<number>\d{6,})\Z")
_EPOCH: Final = re.compile(
    rf"{BINLOG}(?P<server>[0-9a-z-]+)_(?P<file>[0-9a-f]+)_(?P<born>[0-9a-f]+)\Z"
)


@dataclass(frozen=True, slots=True)
class LogFile:
    """One file of the server's binary log."""

    name: str
    size: int

    @property
    def number(self) -> int:
        return file_number(self.name)


@dataclass(frozen=True, slots=True)
class Epoch:
    """An incarnation: which server, the file its log was joined in, when that file began."""

    server: str
    file: int
    born: int  # seconds, as the file's own first event has them

    def __str__(self) -> str:
        return f"{BINLOG}{self.server}_{self.file:x}_{self.born:x}"

    @classmethod
    def parse(cls, text: str) -> Epoch:
        match = _EPOCH.match(text)
        if match is None:
            raise FatalError(
                "source.other_system",
                f"the change log was taken from another kind of source ({text})",
                hint="give the pipeline another pipeline_id, or undeploy it first",
            )
        return cls(match["server"], int(match["file"], 16), int(match["born"], 16))


def file_number(name: str) -> int:
    match = _NAME.match(name)
    if match is None:
        raise SetupError(
            "source.log_name",
            f"{name!r} is not the name of a binary log file",
            hint="the server's log_bin_basename must end in a name that files are numbered by",
        )
    return int(match["number"])


@dataclass(frozen=True, slots=True)
class Place:
    """What a position's number says."""

    term: int
    file: int
    offset: int

    @classmethod
    def of(cls, position: Position) -> Place:
        high, offset = position.lsn >> 32, position.lsn & 0xFFFFFFFF
        return cls(high >> _FILE_BITS, high & LAST_FILE, offset)

    @property
    def number(self) -> int:
        return number_of(volume(self.term, self.file), self.offset)


def volume(term: int, file: int) -> int:
    """A file of a term: what comes before the offset."""
    if file > LAST_FILE or term > _LAST_TERM:
        raise FatalError(
            "position.exhausted",
            f"there is no place for term {term} and binary log file {file}",
            hint="`tidegate recover` after RESET MASTER (RESET BINARY LOGS AND GTIDS), which"
            " numbers files from 1",
        )
    return term << _FILE_BITS | file


def number_of(volume: int, offset: int) -> int:
    """What a place's text holds."""
    return (volume << 32) | offset


def files(connection: Connection) -> list[LogFile]:
    """The server's binary log, oldest first."""
    rows = query(connection, "SHOW BINARY LOGS")
    return [LogFile(str(row[0]), int(row[1])) for row in rows]


def position(epoch: str, term: int, name: str, offset: int) -> Position:
    return boundary(epoch, Place(term, file_number(name), offset).number)


def current(connection: Connection) -> tuple[str, int]:
    """Where the log ends now. What stands before it need not be visible to a reader yet."""
    mariadb = is_mariadb(connection)
    statement = "SHOW MASTER STATUS"
    if not mariadb and not server_version(connection).startswith(("5.", "8.0", "8.1")):
        statement = "SHOW BINARY LOG STATUS"
    rows = named(connection, statement)
    if not rows:
        raise SetupError(
            "source.no_log",
            "the server writes no binary log",
            hint="set log_bin in the server's configuration and restart it",
        )
    return str(rows[0]["file"]), int(rows[0]["position"])


def server_identity(connection: Connection) -> str:
    """MySQL's UUID; MariaDB has none, so its server and domain numbers stand in."""
    uuid = variable(connection, "server_uuid")
    if uuid:
        return uuid.lower()
    domain = variable(connection, "gtid_domain_id") or "0"
    return f"{domain}-{variable(connection, 'server_id')}"


def way_back(tables: tuple[str, ...]) -> str:
    """What to do when the log's continuation is gone."""
    return (
        "changes after the last captured position are not in the source's log any more:"
        " `tidegate recover` begins a new log and sweeps"
        f" {', '.join(tables) or 'every table'} (--dry-run says which, and why)"
    )
