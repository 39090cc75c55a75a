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
        self._emptied: dict[TableId, list[tuple[Transaction, int]]] = {}
        """By a TRUNCATE before which no row told the table's columns."""
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
        for emptied, before in self._emptied.get(schema.table, [])[:1]:
            transaction, offset = emptied, before - 1
        self._last[schema.table] = schema
        place = lsn_place(transaction.number, offset)
        batch.seen.append(SchemaSeen(schema, Position(self._epoch, place)))
        self._truncate(schema, batch)

    def finish(self, batch: Batch) -> None:
        """No row names the columns of a TRUNCATE. Nothing is read by them, so those of the first
        rows behind it will do, or today's."""
        for table, emptied in list(self._emptied.items()):
            schema = self._live(table)
            if schema is None:
                batch.hold([table], DROPPED)
                del self._emptied[table]
            else:
                self.use(schema, *emptied[0], batch)

    def _truncate(self, schema: TableSchema, batch: Batch) -> None:
        for transaction, offset in self._emptied.pop(schema.table, []):
            batch.groups.truncate(schema, transaction, offset)

    def change(
        self, said: Statement, transaction: Transaction | None, behind: int, batch: Batch
    ) -> None:
        """What a statement does; ``behind`` is the number of the place where it ends."""
        found = ddl.effects(said, self._taken, self._temporary.hidden(said))
        self._temporary.follow(said, found)
        for table, why in found.held.items():
            batch.hold([table], why)
        if transaction is None:
            batch.hold(found.truncated, DROPPED)
            return
        offset = behind - transaction.number
        for table, names in found.left.items():
            if (last := self._last.get(table)) is not None:
                kept = tuple(c for c in last.columns if c.name.lower() not in names)
                self.use(replace(last, columns=kept), transaction, offset - 1, batch)
        for table in found.truncated:
            self._emptied.setdefault(table, []).append((transaction, offset))
            if (last := self._last.get(table)) is not None:
                self._truncate(last, batch)
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
