"""Which columns each table has at the place that the log was read to, and what statements do to it."""

from __future__ import annotations

from dataclasses import replace

from tidegate.connectors.changes import SchemaSeen
from tidegate.connectors.mysql import ddl
from tidegate.connectors.mysql.decoded_batch import Batch
from tidegate.connectors.mysql.described_tables import Live
from tidegate.connectors.mysql.events import Transaction
from tidegate.connectors.mysql.query_events import Statement
from tidegate.connectors.mysql.statement_effects import DROPPED, Taken
from tidegate.envelope.position import Position, lsn_place
from tidegate.names import TableId
from tidegate.schema.table import TableSchema


class SchemasInForce:
    """Of one stream."""

    def __init__(self, epoch: str, taken: Taken, live: Live) -> None:
        self._epoch = epoch
        self._taken = taken
        self._live = live
        self._last: dict[TableId, TableSchema] = {}  # what the log used last

    def use(self, schema: TableSchema, transaction: Transaction, offset: int, batch: Batch) -> None:
        """Note a schema that differs from the last one, right before the rows that follow: the
        same place on every re-read."""
        last = self._last.get(schema.table)
        if last is schema or last == schema:
            return
        self._last[schema.table] = schema
        place = lsn_place(transaction.number, offset)
        batch.seen.append(SchemaSeen(schema, Position(self._epoch, place)))

    def change(
        self, said: Statement, transaction: Transaction | None, behind: int, batch: Batch
    ) -> None:
        """What a statement does; ``behind`` is the number of the place where it ends."""
        found = ddl.effects(said, self._taken)
        for table, why in found.held.items():
            batch.hold([table], why)
        for table in (*found.dropped_columns, *found.truncated):
            # No row names its columns here. Nothing is read by them, so today's will do.
            schema = self._last.get(table) or self._live(table)
            if schema is None or transaction is None:
                batch.hold([table], DROPPED)
                continue
            # Columns that left are noted at once: others of their names may come before a row.
            left = found.dropped_columns.get(table, frozenset())
            kept = tuple(c for c in schema.columns if c.name.lower() not in left)
            offset = behind - transaction.number
            self.use(replace(schema, columns=kept), transaction, offset - 1, batch)
            if table in found.truncated:
                batch.groups.truncate(schema, transaction, offset)
