"""Places in the binary log, and the epoch: one server's log, from the file it was joined at on.

A place's number is the file's number (32 bits) and the offset (32 bits) at which a transaction
begins. Events of the same transaction stand at their rows' offsets from there, which are the same
on every re-read and for every choice of tables.
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
from tidegate.envelope.position import BINLOG, Position, boundary
from tidegate.errors import FatalError, SetupError

FIRST_OFFSET: Final = 4
"""Behind a file's magic number."""
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


def number_of(file: int, offset: int) -> int:
    """What a place's text holds."""
    return (file << 32) | offset


def place_of(position: Position) -> tuple[int, int]:
    """File number and offset."""
    return position.lsn >> 32, position.lsn & 0xFFFFFFFF


def files(connection: Connection) -> list[LogFile]:
    """The server's binary log, oldest first."""
    rows = query(connection, "SHOW BINARY LOGS")
    return [LogFile(str(row[0]), int(row[1])) for row in rows]


def file_named(connection: Connection, number: int) -> str:
    """The name of a file that the server has."""
    for file in files(connection):
        if file.number == number:
            return file.name
    raise FatalError(
        "capture.log_purged",
        f"the binary log file number {number} is not on the server any more",
        hint=way_back(()),
    )


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


def position(epoch: str, name: str, offset: int) -> Position:
    return boundary(epoch, number_of(file_number(name), offset))


def check_history(
    epoch: Epoch, after: Position, server: str, present: list[LogFile], tables: tuple[str, ...]
) -> None:
    """Refuse to go on where the server's log no longer continues ours, and say which of the ways
    that can happen it was."""
    if server != epoch.server:
        raise FatalError(
            "source.other_system",
            f"the source is server {server}, but the change log was taken from {epoch.server}"
            " (a failover, or another address): file names and offsets mean nothing there",
            hint=way_back(tables),
        )
    file, offset = place_of(after)
    numbers = {log.number: log for log in present}
    if not numbers or file > max(numbers) or (file in numbers and numbers[file].size < offset):
        raise FatalError(
            "capture.log_reset",
            f"the binary log ends before the place the change log has reached (file {file}, offset"
            f" {offset}): it was reset, or restored from a backup",
            hint=way_back(tables),
        )
    if file not in numbers:
        raise FatalError(
            "capture.log_purged",
            f"the server has purged binary log file {file} before it was captured; its oldest is"
            f" {min(numbers)}",
            hint=f"{way_back(tables)}. Keep files longer than captures are apart"
            " (expire_logs_days, binlog_expire_logs_seconds)",
        )


def reborn(epoch: Epoch, born: int, tables: tuple[str, ...]) -> None:
    """Refuse a file of the known number that began at another time: the log was reset."""
    if born != epoch.born:
        raise FatalError(
            "capture.log_reset",
            f"binary log file {epoch.file} is not the one the change log began in: the log was"
            " reset",
            hint=way_back(tables),
        )


def way_back(tables: tuple[str, ...]) -> str:
    """What to do when the log's continuation is gone."""
    return (
        "changes after the last captured position are not in the source's log any more:"
        " `tidegate recover` begins a new log and sweeps"
        f" {', '.join(tables) or 'every table'} (--dry-run says which, and why)"
    )
