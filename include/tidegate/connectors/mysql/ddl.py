"""What a statement in the log means for the tables that are taken.

Row events describe their own tables, so DDL is not needed to read them. It matters where values
change and no row is sent: then the table is held until it is swept. TRUNCATE is a change like any
other. Every statement is one of: known to concern no table that is taken; known to do this to
these; or not understood, and then every table that it may concern is held (I8).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Set
from typing import Final

from tidegate.connectors.mysql.alter_table import alteration
from tidegate.connectors.mysql.query_events import Statement
from tidegate.connectors.mysql.sql_cursor import Cursor, Named, NotUnderstood
from tidegate.connectors.mysql.sql_lexer import Kind
from tidegate.connectors.mysql.statement_effects import (
    DROPPED,
    KEY,
    NOT_UNDERSTOOD,
    RENAMED,
    REWRITES,
    STATEMENT,
    Effects,
    Taken,
)
from tidegate.names import TableId

_NO_TABLE: Final = frozenset(
    {"BEGIN", "COMMIT", "ROLLBACK", "SAVEPOINT", "RELEASE", "XA", "FLUSH", "GRANT", "REVOKE"}
    | {"INSTALL", "UNINSTALL", "KILL", "CHANGE", "RESET", "PURGE", "STOP", "LOCK", "UNLOCK", "USE"}
    | {"SHUTDOWN", "BACKUP"}
)
_UPKEEP: Final = frozenset({"OPTIMIZE", "REPAIR", "CHECK", "CHECKSUM", "ANALYZE"})
"""Of tables: they may be built anew, and every row is what it was."""
_CHANGES_ROWS: Final = frozenset(
    {"INSERT", "REPLACE", "UPDATE", "DELETE", "LOAD", "SELECT", "DO", "CALL", "WITH", "VALUES"}
    | {"ANALYZE", "EXPLAIN", "DESCRIBE", "DESC", "EXECUTE", "HANDLER", "TABLE", "MERGE"}
)
_OTHER_OBJECTS: Final = frozenset(
    {"VIEW", "TRIGGER", "PROCEDURE", "FUNCTION", "EVENT", "USER", "ROLE", "SERVER", "PACKAGE"}
    | {"TABLESPACE", "UNDO", "LOGFILE", "RESOURCE", "INSTANCE", "AGGREGATE", "PREPARE", "LIBRARY"}
)
_INDEXES: Final = ("UNIQUE", "FULLTEXT", "SPATIAL")
_READ_ANEW: Final = frozenset({"SQL_MODE", "CHARACTER_SET_CLIENT"})
"""The event carries what SET STATEMENT set; the text was read with what was set before it."""


def effects(said: Statement, taken: Taken, hidden: Set[TableId] = frozenset()) -> Effects:
    """``hidden``: tables whose names mean temporary tables to the session."""
    if said.begins_only:
        return Effects()
    if said.tokens is None:
        result = Effects()
        result.hold(sorted(taken.tables), f"a statement {NOT_UNDERSTOOD}")
        return result
    return _Reader(said, taken, hidden).read()


class _Reader:
    """Reads one statement."""

    def __init__(self, said: Statement, taken: Taken, hidden: Set[TableId]) -> None:
        tokens = list(said.tokens or ())
        while tokens and tokens[-1].is_sign(";"):
            tokens.pop()
        self._said = said
        self._taken = taken
        self._hidden = hidden
        self._cursor = Cursor(tuple(tokens))
        self._result = Effects()

    def read(self) -> Effects:
        try:
            self._prefix()
            self._statement()
        except NotUnderstood:
            # No word of it is repeated: an unknown one may be a value (I9).
            self._result = Effects()
            self._result.hold(sorted(self._taken.tables), f"a statement {NOT_UNDERSTOOD}")
        return self._result

    def _prefix(self) -> None:
        """MariaDB's SET STATEMENT name = value, … FOR …"""
        while self._cursor.skip("SET", "STATEMENT"):
            while not self._cursor.skip("FOR"):
                if self._cursor.ended or self._cursor.take().text.upper() in _READ_ANEW:
                    raise NotUnderstood
                self._cursor.parentheses()

    def _statement(self) -> None:
        cursor = self._cursor
        if cursor.ended or cursor.one_of(_NO_TABLE):
            return
        if cursor.peek().is_sign("(") or cursor.peek().word in _CHANGES_ROWS:
            if not self._is_upkeep():
                self._changes_rows()
            return
        if self._is_upkeep():
            return
        reader = _READERS.get(cursor.take().word)
        if reader is None:
            raise NotUnderstood
        reader(self)

    def _is_upkeep(self) -> bool:
        """OPTIMIZE TABLE and its like: files may be others, rows are not."""
        cursor = self._cursor
        at = 1 + (cursor.peek(1).word in ("NO_WRITE_TO_BINLOG", "LOCAL"))
        if cursor.peek().word not in _UPKEEP or cursor.peek(at).word not in ("TABLE", "TABLES"):
            return False
        for _ in range(at + 1):
            cursor.take()
        for part in cursor.parts():
            self._touch(part.table())
        return True

    def _changes_rows(self) -> None:
        """Its text says less than it does: triggers, functions and views change other tables."""
        known = self._said.databases
        tables = sorted(self._taken.tables) if known is None else self._taken.inside(known)
        self._result.hold(tables, STATEMENT)

    def create(self) -> None:
        cursor = self._cursor
        replaces = cursor.skip("OR", "REPLACE")
        if cursor.skip("TEMPORARY"):
            if not cursor.one_of({"TABLE", "SEQUENCE"}):
                raise NotUnderstood
            cursor.skip("IF", "NOT", "EXISTS")
            self._result.hidden.update(self._tables(cursor.table()))
        elif cursor.one_of({"TABLE", "SEQUENCE"}):
            cursor.skip("IF", "NOT", "EXISTS")
            made = cursor.table()
            self._touch(made)
            if replaces:
                self._hold(made, DROPPED)
        elif cursor.one_of({"DATABASE", "SCHEMA"}):
            cursor.skip("IF", "NOT", "EXISTS")
            if replaces:
                self._result.hold(self._taken.inside([cursor.name()]), DROPPED)
        elif self._is_index():
            self._on_table(cursor)
        else:
            self._other_object()

    def drop(self) -> None:
        cursor = self._cursor
        if cursor.skip("TEMPORARY"):
            if not cursor.one_of({"TABLE", "TABLES", "SEQUENCE"}):
                raise NotUnderstood
            cursor.skip("IF", "EXISTS")
            for part in cursor.parts():
                self._result.shown.update(self._tables(part.table()))
        elif cursor.one_of({"TABLE", "TABLES", "SEQUENCE"}):
            cursor.skip("IF", "EXISTS")
            for part in cursor.parts():
                self._hold(part.table(), DROPPED)
        elif cursor.one_of({"DATABASE", "SCHEMA"}):
            cursor.skip("IF", "EXISTS")
            self._result.hold(self._taken.inside([cursor.name()]), DROPPED)
        elif cursor.skip("INDEX"):
            cursor.skip("IF", "EXISTS")
            primary = cursor.name().lower() == "primary"
            self._on_table(cursor, f"DROP INDEX {KEY}" if primary else None)
        else:
            self._other_object()

    def alter(self) -> None:
        cursor = self._cursor
        cursor.skip("ONLINE")
        ignore = cursor.skip("IGNORE")
        if cursor.skip("TABLE"):
            self._alter_table(ignore)
        elif cursor.one_of({"DATABASE", "SCHEMA"}):
            if any(token.word == "UPGRADE" for token in cursor.rest):
                raise NotUnderstood  # it renames the database
        elif not cursor.skip("SEQUENCE"):
            self._other_object()

    def _alter_table(self, ignore: bool) -> None:
        cursor = self._cursor
        cursor.skip("IF", "EXISTS")
        subject = cursor.table()
        cursor.skip_wait()
        if self._is_temporary(subject):
            if any(token.word == "RENAME" for token in cursor.rest):
                self._result.shown.update(self._tables(subject))
            return
        mentioned = [t.text for t in cursor.rest if t.kind in (Kind.NAME, Kind.WORD)]
        found = alteration(cursor, explicit_timestamps=self._said.explicit_timestamps)
        why = found.why
        if ignore:  # rows that a new unique key has no place for are gone
            why = why or f"ALTER IGNORE TABLE {REWRITES}"
        self._touch(subject)
        if why is not None:
            self._hold(subject, why)
        for other in found.others:
            self._hold(other, RENAMED if why == RENAMED else why or RENAMED)
        if why is not None and why.endswith(NOT_UNDERSTOOD):
            self._result.hold(self._taken.called(mentioned), why)
        for table in self._tables(subject):
            if found.left:
                self._result.left[table] = frozenset(found.left)
            if found.came:
                self._result.came[table] = frozenset(found.came)

    def rename(self) -> None:
        cursor = self._cursor
        if cursor.skip("USER"):
            return
        if not cursor.one_of({"TABLE", "TABLES"}):
            raise NotUnderstood
        cursor.skip("IF", "EXISTS")
        for part in cursor.parts():
            self._hold(part.table(), RENAMED)
            part.skip_wait()
            if not part.skip("TO"):
                raise NotUnderstood
            self._hold(part.table(), RENAMED)
            part.end()

    def truncate(self) -> None:
        self._cursor.skip("TABLE")
        named = self._cursor.table()
        self._cursor.skip_wait()
        self._cursor.end()
        if not self._is_temporary(named):
            self._touch(named)
            self._result.truncated += self._tables(named)

    def set(self) -> None:
        """What a session sets is not logged, but for what is stored about users."""
        if not self._cursor.one_of({"PASSWORD", "DEFAULT", "ROLE"}):
            raise NotUnderstood

    def _is_index(self) -> bool:
        cursor = self._cursor
        if not cursor.skip("INDEX"):
            if cursor.peek().word not in _INDEXES or cursor.peek(1).word != "INDEX":
                return False
            cursor.skip(cursor.peek().word, "INDEX")
        cursor.skip("IF", "NOT", "EXISTS")
        cursor.name()
        if cursor.skip("USING"):
            cursor.name()
        return True

    def _on_table(self, cursor: Cursor, why: str | None = None) -> None:
        """CREATE INDEX and DROP INDEX … ON a table."""
        if not cursor.skip("ON"):
            raise NotUnderstood
        named = cursor.table()
        if self._is_temporary(named):
            return
        self._touch(named)
        if why is not None:
            self._hold(named, why)

    def _other_object(self) -> None:
        """What holds no rows; between the verb and its kind may stand who it belongs to."""
        cursor = self._cursor
        while not cursor.ended:
            if cursor.one_of(_OTHER_OBJECTS) or cursor.has("SPATIAL", "REFERENCE"):
                return
            if cursor.skip("ALGORITHM"):
                cursor.value()
            elif cursor.skip("SQL", "SECURITY"):
                cursor.name()
            elif cursor.skip("DEFINER"):
                cursor.value()
                cursor.parentheses()
                if cursor.sign("@"):
                    cursor.value()
            else:
                break
        raise NotUnderstood

    def _is_temporary(self, named: Named) -> bool:
        return any(table in self._hidden for table in self._tables(named))

    def _tables(self, named: Named) -> list[TableId]:
        return self._taken.named(named, self._said.database)

    def _touch(self, named: Named) -> None:
        self._result.touched.update(self._tables(named))

    def _hold(self, named: Named, why: str) -> None:
        self._result.hold(self._tables(named), why)


_READERS: Final[Mapping[str, Callable[[_Reader], None]]] = {
    "CREATE": _Reader.create,
    "DROP": _Reader.drop,
    "ALTER": _Reader.alter,
    "RENAME": _Reader.rename,
    "TRUNCATE": _Reader.truncate,
    "SET": _Reader.set,
}
