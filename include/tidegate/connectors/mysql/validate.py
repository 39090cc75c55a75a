"""What must be true of the source before it is captured, each finding with its fix."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from tidegate.connectors.mysql.charsets import Charsets
from tidegate.connectors.mysql.connection import (
    Connection,
    expiry_seconds,
    is_mariadb,
    query,
    session,
    variable,
)
from tidegate.connectors.mysql.settings import MysqlSettings
from tidegate.connectors.mysql.table_checks import check_table
from tidegate.connectors.protocol import Problem, Severity, ValidationReport

SHORTEST_KEEP_SECONDS: Final = 86_400
"""A log that goes sooner is lost by a night without captures."""
_OLDEST: Final = {True: (10, 5), False: (8, 0)}
_ALL: Final = ("ALL PRIVILEGES",)
_REPLICATION: Final = ("REPLICATION SLAVE", "REPLICATION REPLICA")
_CLIENT: Final = ("REPLICATION CLIENT", "BINLOG MONITOR", "SUPER")
_LOCKS: Final = ("LOCK TABLES",)
_GRANT: Final = re.compile(r"GRANT (?P<what>.+?) ON (?P<where>\S+) TO", re.IGNORECASE)
_IN_PART: Final = "{}; what only the server can compute holds its table until it is swept"


def validate(settings: MysqlSettings) -> ValidationReport:
    """Nothing is changed. A source that cannot be reached raises what to do about it."""
    with session(settings, "validating") as connection:
        return ValidationReport(tuple(_problems(connection, settings)))


def _problems(connection: Connection, settings: MysqlSettings) -> Iterator[Problem]:
    mariadb = is_mariadb(connection)
    yield from _version(connection, mariadb)
    if variable(connection, "log_bin") != "ON":
        yield _error(
            "log_bin",
            "the server writes no binary log",
            "log_bin = binlog in the server's configuration, then restart it",
        )
        return
    yield from _log_form(connection)
    yield from _expiry(connection)
    yield from _gtid(connection, mariadb)
    yield from _privileges(connection, settings, mariadb)
    if not settings.tables:
        yield _error("no_tables", "source.tables lists no table")
    charsets = Charsets.read(connection)
    for table in settings.table_ids:
        yield from check_table(connection, settings, table, charsets)


def _version(connection: Connection, mariadb: bool) -> Iterator[Problem]:
    text = str(query(connection, "SELECT version()")[0][0])
    match = re.match(r"(?:5\.5\.5-)?(\d+)\.(\d+)", text)
    found = (int(match[1]), int(match[2])) if match else (0, 0)
    oldest = _OLDEST[mariadb]
    if found < oldest:
        name = "MariaDB" if mariadb else "MySQL"
        yield _error("version", f"{name} {text} is too old: {oldest[0]}.{oldest[1]} or newer")


def _log_form(connection: Connection) -> Iterator[Problem]:
    for say, name, wanted, why in (
        (_error, "binlog_format", "ROW", "rows are not in the log"),
        (_warning, "binlog_row_image", "FULL", _IN_PART.format("the log holds a part of each row")),
        (_error, "binlog_row_metadata", "FULL", "the log does not name columns, signs and keys"),
    ):
        found = (variable(connection, name) or "").upper()
        if found != wanted:
            yield say(
                name,
                f"{name} is {found or 'not known to this server'}: {why}",
                f"SET GLOBAL {name} = '{wanted}' (and in the server's configuration; sessions"
                " that are open keep the old value until they reconnect)",
            )
    options = variable(connection, "binlog_row_value_options")
    if options:
        yield _warning(
            "binlog_row_value_options",
            f"binlog_row_value_options is {options}: "
            + _IN_PART.format("the log holds parts of documents"),
            "SET GLOBAL binlog_row_value_options = ''",
        )
    if (variable(connection, "encrypt_binlog") or "OFF").upper() == "ON":
        yield _warning("encrypt_binlog", "the log is encrypted on disk; it is sent decrypted")


def _expiry(connection: Connection) -> Iterator[Problem]:
    seconds = expiry_seconds(connection)
    if seconds is not None and seconds < SHORTEST_KEEP_SECONDS:
        yield _warning(
            "expiry",
            f"the server drops its log after {seconds:.0f} s: a capture that is later than that"
            " loses changes, and every table must be swept",
            "SET GLOBAL binlog_expire_logs_seconds = 259200",
        )


def _gtid(connection: Connection, mariadb: bool) -> Iterator[Problem]:
    if mariadb:
        return  # always on
    if (variable(connection, "gtid_mode") or "OFF").upper() != "ON":
        yield _warning(
            "gtid_mode",
            "gtid_mode is not ON: positions are file and offset all the same, but a replica could"
            " never take this server's place without sweeps",
            "SET GLOBAL gtid_mode = ON (by steps, see MySQL's manual)",
        )


def _privileges(
    connection: Connection, settings: MysqlSettings, mariadb: bool
) -> Iterator[Problem]:
    granted: set[str] = set()
    everywhere: set[str] = set()
    for (line,) in query(connection, "SHOW GRANTS"):
        match = _GRANT.match(str(line))
        if match is None:
            continue
        what = {part.strip().upper() for part in match["what"].split(",")}
        granted |= what
        if match["where"] == "*.*":
            everywhere |= what
    user = f"'{settings.username}'@'%'"
    wanted = [
        (_REPLICATION, "REPLICATION SLAVE", "follow the log"),
        (_CLIENT, "REPLICATION CLIENT" if not mariadb else "BINLOG MONITOR", "see where it ends"),
    ]
    for any_of, name, purpose in wanted:
        if not everywhere & {*any_of, *_ALL}:
            message = f"{settings.username} may not {purpose}"
            fix = f"GRANT {name} ON *.* TO {user}"
            yield _error(name.split(" ", 1)[-1].lower().replace(" ", "_"), message, fix)
    if not mariadb and not granted & {*_LOCKS, *_ALL}:
        yield _error(
            "lock_tables",
            f"{settings.username} may not lock tables, which MySQL needs for a moment at each cut",
            f"GRANT LOCK TABLES ON {settings.database}.* TO {user}",
        )


def _error(code: str, message: str, fix: str | None = None) -> Problem:
    return Problem(f"mysql.{code}", Severity.ERROR, message, None, fix)


def _warning(code: str, message: str, fix: str | None = None) -> Problem:
    return Problem(f"mysql.{code}", Severity.WARNING, message, None, fix)
