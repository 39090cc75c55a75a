"""Looks at the catalog, as a second witness beside the log's statements.

A look is taken with the place where the log ended right after it: once the log is read up to
there, every statement that made the catalog what it showed has been read. What is different from
the look before, with no statement in between, came in a way that the log does not tell.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from tidegate.connectors.changes import ChangeBatch, SchemaSeen, TableHold
from tidegate.connectors.mysql import discover
from tidegate.connectors.mysql.connection import Connection, query, server_version
from tidegate.connectors.mysql.position import Place, current, file_number, server_identity
from tidegate.connectors.mysql.schemas_in_force import SchemasInForce
from tidegate.connectors.mysql.statement_effects import CASCADES, NOT_INNODB
from tidegate.connectors.mysql.types import SUPPORTED, column
from tidegate.names import TableId
from tidegate.schema.table import TableSchema
from tidegate.schema.table_facts import TableFacts

PRESENT: Final = 1
"""MySQL numbers no tables that everyone may see; that one exists is all there is to tell."""
LOOK_SECONDS: Final = 30.0
"""As often at most, unless a statement concerned a table that is taken."""
_CASCADES_SQL: Final = """
SELECT constraint_name FROM information_schema.referential_constraints
WHERE constraint_schema = %s AND table_name = %s
  AND NOT (delete_rule IN ('RESTRICT', 'NO ACTION') AND update_rule IN ('RESTRICT', 'NO ACTION'))
"""


@dataclass(frozen=True, slots=True)
class Seen:
    """One table at one moment."""

    facts: TableFacts
    schema: TableSchema | None = None  # None: it is gone, or has a type that is not taken
    trouble: str | None = None  # why its changes cannot be taken from the log


def server(connection: Connection) -> str:
    """Another release may print the same catalog otherwise."""
    return f"{server_identity(connection)}/{server_version(connection).replace(' ', '')}"


def see(connection: Connection, table: TableId, where: str) -> Seen:
    """``where``: :func:`server`."""
    found = discover.relation(connection, table)
    if found is None:
        return Seen(TableFacts(None))
    taken = all(c.base in SUPPORTED for c in found.columns)
    schema = TableSchema(table, tuple(map(column, found.columns))) if taken else None
    trouble = None if found.undoes else NOT_INNODB
    if trouble is None and cascades(connection, table):
        trouble = CASCADES
    return Seen(TableFacts(PRESENT, catalog=f"{where} {found.digest}"), schema, trouble)


def cascades(connection: Connection, table: TableId) -> list[str]:
    """Foreign keys by which InnoDB changes the table's rows below the log: a replica makes such
    changes again by itself, we cannot."""
    return [str(name) for (name,) in query(connection, _CASCADES_SQL, table)]


@dataclass(slots=True)
class Looks:
    """Of one stream. The first look is taken before the stream knows how far it goes, so that
    every stream reads up to it."""

    connection: Connection
    tables: Sequence[TableId]
    term: int
    _seen: dict[TableId, Seen] = field(default_factory=dict)
    _end: int | None = None  # where the log ended then; None: no look waits for the log
    _read_end: int = 0  # the same of the last look that the log was read up to
    _taken_at: float = 0.0
    _told: bool = True  # of what trouble there is
    _ripe: dict[TableId, TableFacts] = field(default_factory=dict)

    def take(self) -> None:
        where = server(self.connection)
        self._seen = {table: see(self.connection, table, where) for table in self.tables}
        name, offset = current(self.connection)
        self._end = Place(self.term, file_number(name), offset).number
        self._taken_at, self._told = time.monotonic(), False

    def due(self, schemas: SchemasInForce) -> bool:
        waited = time.monotonic() - self._taken_at >= LOOK_SECONDS
        return self._end is None and (waited or schemas.altered_after(self._read_end))

    def told(self, batch: ChangeBatch, schemas: SchemasInForce) -> ChangeBatch:
        """``batch`` with what the last look says at its end."""
        holds: tuple[TableHold, ...] = ()
        if not self._told:
            self._told = True
            holds = tuple(
                TableHold(str(table), seen.trouble, standing=True)
                for table, seen in self._seen.items()
                if seen.trouble is not None
            )
        batch = replace(batch, holds=batch.holds + holds)
        if self._end is None or batch.through is None or batch.through.lsn < self._end:
            return batch
        sure = {t: s for t, s in self._seen.items() if not schemas.altered(t, self._end)}
        self._read_end, self._end = self._end, None
        self._ripe = {table: seen.facts for table, seen in sure.items()}
        unseen = [
            SchemaSeen(seen.schema, batch.through)
            for table, seen in sure.items()
            if seen.schema is not None and schemas.settle(table, seen.schema)
        ]
        return replace(batch, schemas=(*batch.schemas, *unseen))

    def ripe(self, schemas: SchemasInForce) -> Mapping[TableId, TableFacts]:
        """What the log has been read up to since the last call, and is so still."""
        found, self._ripe = self._ripe, {}
        return {t: facts for t, facts in found.items() if not schemas.altered(t, self._read_end)}
