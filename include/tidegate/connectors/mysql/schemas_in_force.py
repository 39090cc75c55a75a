"""Which columns each table has at the place that the log was read to."""

from __future__ import annotations

from dataclasses import replace

from tidegate.connectors.changes import Altered, SchemaSeen
from tidegate.connectors.mysql import ddl
from tidegate.connectors.mysql.decoded_batch import Batch
from tidegate.connectors.mysql.described_tables import Live
from tidegate.connectors.mysql.events import Transaction
from tidegate.connectors.mysql.query_events import Statement
from tidegate.connectors.mysql.statement_effects import DROPPED, Taken
from tidegate.connectors.mysql.temporary_tables import TemporaryTables
from tidegate.envelope.position import Position, boundary, lsn_place
from tidegate.names import TableId
from tidegate.schema.table import TableSchema


class SchemasInForce:
    """Of one stream."""

    def __init__(self, epoch: str, taken: Taken, live: Live) -> None:
        self._epoch = epoch
        self._taken = taken
        self._live = live
        self._temporary = TemporaryTables()
        self._last: dict[TableId, TableSchema] = {}  # what the log used last
        self._altered: dict[TableId, int] = {}  # where a statement changed a table last
        self._unseen: set[TableId] = set()  # altered, and no row tells its columns yet

    def use(self, schema: TableSchema, transaction: Transaction, offset: int, batch: Batch) -> None:
        """Note a schema that differs from the last one, right before the rows that follow: the
        same place on every re-read."""
        last = self._last.get(schema.table)
        self._unseen.discard(schema.table)
        if last is schema or last == schema:
            return
        self._last[schema.table] = schema
        place = lsn_place(transaction.number, offset)
        batch.seen.append(SchemaSeen(schema, Position(self._epoch, place)))

    def change(
        self, said: Statement, transaction: Transaction | None, behind: int, batch: Batch
    ) -> None:
        """What a statement does; ``behind`` is the number of the place where it ends."""
        found = ddl.effects(said, self._taken, self._temporary.hidden(said))
        self._temporary.follow(said, found)
        for table, why in found.held.items():
            batch.hold([table], why)
        for table in (*found.left, *found.truncated):
            # No row names its columns here. Nothing is read by them, so today's will do.
            schema = self._last.get(table) or self._live(table)
            if schema is None or transaction is None:
                batch.hold([table], DROPPED)
                continue
            # Columns that left are noted at once: others of their names may come before a row.
            left = found.left.get(table, frozenset())
            kept = tuple(c for c in schema.columns if c.name.lower() not in left)
            offset = behind - transaction.number
            self.use(replace(schema, columns=kept), transaction, offset - 1, batch)
            if table in found.truncated:
                batch.groups.truncate(schema, transaction, offset)
        for table in sorted(found.touched):
            self._altered[table] = behind
            self._unseen.add(table)
            left, came = (of.get(table, frozenset()) for of in (found.left, found.came))
            at = boundary(self._epoch, behind)
            batch.altered.append(Altered(table, at, left, came))

    def hidden(self) -> list[TableId]:
        """Tables of which statements to come may mean a temporary one."""
        return self._temporary.open()

    def altered_after(self, number: int) -> bool:
        return any(place > number for place in self._altered.values())

    def altered(self, table: TableId, after: int) -> bool:
        """Whether a statement that lies behind ``after`` changed the table."""
        return self._altered.get(table, 0) > after

    def settle(self, table: TableId, schema: TableSchema) -> bool:
        """``schema`` is what the table has now. Whether that is news which no row told: a column
        may have come back under the name of one that left."""
        news = table in self._unseen and self._last.get(table) != schema
        self._unseen.discard(table)
        if news:
            self._last[table] = schema
        return news
