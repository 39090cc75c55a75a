"""What ``validate`` asks of a table."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import pymysql

from tidegate.connectors.mysql import discover, looks
from tidegate.connectors.mysql.charsets import BINARY, Charsets
from tidegate.connectors.mysql.connection import Connection
from tidegate.connectors.mysql.settings import MysqlSettings
from tidegate.connectors.mysql.types import SUPPORTED
from tidegate.connectors.protocol import Problem, Severity
from tidegate.names import TableId

_HALVES: Final = "ucs2"
_OLD: Final = "/* mariadb-5.3 */"


def check_table(
    connection: Connection, settings: MysqlSettings, table: TableId, charsets: Charsets
) -> Iterator[Problem]:
    """Every problem of one table."""
    found = discover.relation(connection, table)
    if found is None:
        refused = [*_access(connection, settings, table)]
        yield from refused
        if not refused:
            yield _error("table_missing", table, "the table does not exist")
        return
    if found.kind.upper() != "BASE TABLE":
        kind = found.kind.lower()
        yield _error("table_kind", table, f"a {kind} is not captured; list a base table")
        return
    yield from _engine(found)
    yield from _access(connection, settings, table)
    yield from _key(found, settings)
    yield from _cascades(connection, table)
    yield from _columns(found, charsets)


def _engine(found: discover.Relation) -> Iterator[Problem]:
    if not found.undoes:
        yield _error(
            "engine",
            found.table,
            f"its engine is {found.engine}, which has neither transactions nor snapshots: rows"
            " could be lost between a sweep and the log",
            f"ALTER TABLE {shown(found.table)} ENGINE = InnoDB",
        )


def _access(connection: Connection, settings: MysqlSettings, table: TableId) -> Iterator[Problem]:
    try:
        discover.check_readable(connection, table)
    except pymysql.MySQLError as error:
        if error.args[0] == discover.NO_SUCH_TABLE:
            return
        fix = f"GRANT SELECT ON {shown(table)} TO '{settings.username}'@'%'"
        message = f"{settings.username} may not read all of it ({error.args[-1]})"
        yield _error("select_privilege", table, message, fix)


def _key(found: discover.Relation, settings: MysqlSettings) -> Iterator[Problem]:
    table = found.table
    if not found.key:
        yield _error(
            "no_key",
            table,
            "without a primary key its rows can neither be merged nor swept in parts that the log"
            " completes",
            f"ALTER TABLE {shown(table)} ADD PRIMARY KEY (…)",
        )
    if str(table) in settings.not_upsert:
        yield _error(
            "write_mode",
            table,
            "MySQL's sweeps are completed from the log, which write_mode append and history and"
            " soft_delete do not allow yet",
            "write_mode: upsert without soft_delete for this table",
        )


def _cascades(connection: Connection, table: TableId) -> Iterator[Problem]:
    for name in looks.cascades(connection, table):
        yield _error(
            "cascade",
            table,
            f"the foreign key {name} changes or deletes its rows without a trace in the log",
            f"ALTER TABLE {shown(table)} DROP FOREIGN KEY …, and add it again with RESTRICT; let"
            " the application, or a trigger of the other table, change these rows",
        )


def _columns(found: discover.Relation, charsets: Charsets) -> Iterator[Problem]:
    table = found.table
    for column in found.columns:
        declared = found.declared[column.name].lower()
        name = backticked(column.name)
        if _OLD in declared:
            message = f"{column.name} is stored in the format of MySQL 5.5"
            yield _error("old_temporal", table, message, f"ALTER TABLE {shown(table)} FORCE")
        elif column.base not in SUPPORTED:
            fix = f"ALTER TABLE {shown(table)} MODIFY {name} …"
            message = f"the type of {column.name}, {declared}, is not supported yet"
            yield _error("type", table, message, fix)
        elif column.charset and column.charset != BINARY and not charsets.supported(column.charset):
            yield _error(
                "charset",
                table,
                f"text in {column.charset} ({column.name}) cannot be taken exactly",
                f"ALTER TABLE {shown(table)} CONVERT TO CHARACTER SET utf8mb4",
            )
        elif column.charset == _HALVES:
            # I6: nothing in Iceberg holds them, and they are not counted: so it is said before.
            yield Problem(
                "mysql.half_pairs",
                Severity.WARNING,
                f"{_HALVES} ({column.name}) may hold halves of surrogate pairs, which are no"
                " characters: each becomes U+FFFD in the lake",
                str(table),
                f"ALTER TABLE {shown(table)} CONVERT TO CHARACTER SET utf8mb4",
            )


def shown(table: TableId) -> str:
    """As an administrator's session takes it: only ours are set to the standard's quotes."""
    return f"{backticked(table.schema)}.{backticked(table.name)}"


def backticked(name: str) -> str:
    return f"`{name.replace('`', '``')}`"


def _error(code: str, table: TableId, message: str, fix: str | None = None) -> Problem:
    return Problem(f"mysql.{code}", Severity.ERROR, message, str(table), fix)
