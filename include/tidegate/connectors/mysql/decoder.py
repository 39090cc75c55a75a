"""Events of the binary log → rows of the change log, columnwise.

Feed it parcels in the order they arrived; it keeps what lasts longer than one call: the file, the
open transaction, the tables' descriptions. Row events of one table and kind are collected and
decoded together, however many transactions they belong to.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Final

from tidegate.connectors.changes import ChangeBatch, SchemaSeen, TableHold
from tidegate.connectors.mysql import ddl, events
from tidegate.connectors.mysql.charsets import Charsets
from tidegate.connectors.mysql.events import HEADER, Transaction
from tidegate.connectors.mysql.position import file_number, number_of
from tidegate.connectors.mysql.row_groups import Groups
from tidegate.connectors.mysql.row_images import Table
from tidegate.connectors.mysql.table_map import Slot, parse, table_name
from tidegate.connectors.mysql.types import BYTES_OF_TEXT, column
from tidegate.connectors.mysql.wire import Parcel, check_crc
from tidegate.envelope.position import Position, boundary, lsn_place
from tidegate.errors import FatalError
from tidegate.names import TableId
from tidegate.schema.table import TableSchema

Live = Callable[[TableId], TableSchema | None]
"""A table's columns as the catalog has them now."""

XA: Final = "was changed by a prepared (XA) transaction, which is not followed"
INCIDENT: Final = "the server noted an incident: changes may be missing from its log"
_COMMIT: Final = ("COMMIT", "ROLLBACK")


@dataclass(slots=True)
class _Batch:
    """What one parcel gives."""

    groups: Groups
    seen: list[SchemaSeen] = field(default_factory=list)
    holds: dict[TableId, str] = field(default_factory=dict)
    transactions: int = 0


class Decoder:
    """One stream's decoder. Transactions that began before ``floor`` are durable and dropped."""

    def __init__(
        self,
        epoch: str,
        tables: tuple[TableId, ...],
        charsets: Charsets,
        live: Live,
        *,
        floor: int,
        max_value_bytes: int,
        checksums: bool,
    ) -> None:
        self._epoch = epoch
        self._taken = frozenset(tables)
        self._charsets = charsets
        self._live = live
        self._max_value = max_value_bytes
        self._floor = floor
        self._file = floor >> 32
        self.through = floor  # number of the last boundary that was passed
        self._open: Transaction | None = None
        self._checksums = checksums  # of what comes before the first format event
        self._described: dict[bytes, Table | None] = {}
        self._by_id: dict[bytes, Table | None] = {}
        self._last: dict[TableId, TableSchema] = {}  # what the log used last

    def decode(self, parcel: Parcel) -> ChangeBatch:
        """Everything in ``parcel``; ``through`` is set if it ends between transactions."""
        batch = _Batch(Groups(self._epoch, parcel.data, self._charsets, self._max_value))
        for start, end in parcel.events:
            self._event(parcel.data, start, end, batch)
        rows = batch.groups.rows()
        batch.holds |= batch.groups.holds
        return ChangeBatch(
            rows=rows,
            schemas=tuple(batch.seen),
            through=None if self._open is not None else boundary(self._epoch, self.through),
            transactions=batch.transactions,
            raw_bytes=len(parcel.data),
            holds=tuple(TableHold(str(t), why) for t, why in batch.holds.items()),
        )

    def _event(self, data: bytes, start: int, end: int, batch: _Batch) -> None:
        kind = data[start + 4]
        if kind == events.FORMAT:
            self._checksums = events.checksummed(data[start:end])
        if self._checksums:
            check_crc(data, start, end)
            end -= 4
        ends_at = int.from_bytes(data[start + 13 : start + 17], "little")
        if kind in events.ROWS or kind == events.PARTIAL_JSON:
            self._rows(data, start, end, ends_at, kind, batch)
            return
        body = data[start + HEADER : end]
        if kind == events.TABLE_MAP:
            self._table_map(body, ends_at, batch)
        elif kind in (events.MARIADB_GTID, *events.GTIDS):
            self._begin(kind, body, data, start, ends_at)
        elif kind == events.QUERY:
            self._statement(body, ends_at, batch)
        elif kind in (events.XID, events.XA_PREPARE):
            self._end(ends_at, batch)
        elif kind == events.ROTATE:
            name, offset = events.rotate(body)
            self._file = file_number(name)
            self._pass(offset)
        elif kind == events.INCIDENT:
            batch.holds |= dict.fromkeys(self._taken, INCIDENT)
        else:
            self._other(kind, data[start + 17], ends_at)

    def _begin(self, kind: int, body: bytes, data: bytes, start: int, ends_at: int) -> None:
        seconds = int.from_bytes(data[start : start + 4], "little")
        size = int.from_bytes(data[start + 9 : start + 13], "little")
        number = number_of(self._file, ends_at - size)
        read = events.mariadb_gtid if kind == events.MARIADB_GTID else events.mysql_gtid
        self._open = read(body, seconds, number)

    def _end(self, ends_at: int, batch: _Batch) -> None:
        self._open = None
        batch.transactions += 1
        self._pass(ends_at)

    def _pass(self, offset: int) -> None:
        if offset:
            self.through = max(self.through, number_of(self._file, offset))

    def _other(self, kind: int, flags: int, ends_at: int) -> None:
        if kind in (events.PAYLOAD, *events.MARIADB_COMPRESSED):
            raise FatalError(
                "capture.log_form",
                "the log holds compressed events, which are not read",
                hint="turn off binlog_transaction_compression and log_bin_compress, then"
                " `tidegate recover`",
            )
        made_up = flags & events.ARTIFICIAL and kind not in events.HEARTBEATS
        if self._open is None and not made_up:
            self._pass(ends_at)

    def _statement(self, body: bytes, ends_at: int, batch: _Batch) -> None:
        said = events.statement(body)
        word = said.sql[:12].strip().upper()
        transaction = self._open
        if word == "BEGIN" or word.startswith("XA START"):
            if transaction is not None:
                transaction.begun = True
                transaction.xa = word != "BEGIN"
            return
        if word in _COMMIT:
            self._end(ends_at, batch)
            return
        if transaction is None or transaction.number >= self._floor:
            self._effects(said, ends_at, batch)
        if transaction is None or not transaction.begun:
            self._end(ends_at, batch)

    def _effects(self, said: events.Statement, ends_at: int, batch: _Batch) -> None:
        found = ddl.effects(said.sql, said.database, self._taken)
        batch.holds |= found.held
        for table in found.truncated:
            # No row names its columns here. Nothing is read by them, so today's will do.
            schema = self._last.get(table) or self._live(table)
            if schema is None or self._open is None:
                batch.holds[table] = ddl.DROPPED
                continue
            self._in_force(schema, ends_at, batch)
            batch.groups.truncate(schema, self._open, number_of(self._file, ends_at))

    def _table_map(self, body: bytes, ends_at: int, batch: _Batch) -> None:
        number, description = body[:6], body[6:]
        if description not in self._described:
            self._described[description] = self._describe(body)
        table = self._described[description]
        self._by_id[number] = table
        if table is None or self._open is None or self._open.number < self._floor:
            return
        if self._open.xa:
            batch.holds[table.schema.table] = XA
        self._in_force(table.schema, ends_at, batch)

    def _in_force(self, schema: TableSchema, ends_at: int, batch: _Batch) -> None:
        """Note a schema that differs from the last one, right before the rows that follow: the
        same place on every re-read."""
        last = self._last.get(schema.table)
        if self._open is None or last is schema or last == schema:
            return
        self._last[schema.table] = schema
        offset = number_of(self._file, ends_at) - self._open.number
        place = lsn_place(self._open.number, offset - 1)
        batch.seen.append(SchemaSeen(schema, Position(self._epoch, place)))

    def _describe(self, body: bytes) -> Table | None:
        name = table_name(body)
        if name not in self._taken:
            return None
        slots = self._named(name, parse(body, self._charsets).slots)
        schema = TableSchema(name, tuple(column(slot.facts) for slot in slots))
        return Table(schema, slots)

    def _named(self, table: TableId, slots: tuple[Slot, ...]) -> tuple[Slot, ...]:
        """MariaDB logs uuid, inet4 and inet6 as binary(n): the catalog tells them from bytes. What
        changes a column's type holds the table, so today's catalog is right for its rows."""
        sizes = set(BYTES_OF_TEXT.values())
        if not self._charsets.mariadb or not any(
            s.facts.base == "binary" and s.facts.length in sizes for s in slots
        ):
            return slots
        live = self._live(table)
        types = {} if live is None else {c.name: c.source_type for c in live.columns}

        def named(slot: Slot) -> Slot:
            facts, type_ = slot.facts, types.get(slot.facts.name, "")
            if facts.base != "binary" or BYTES_OF_TEXT.get(type_) != facts.length:
                return slot
            return replace(slot, facts=replace(facts, base=type_, length=0, charset=None))

        return tuple(map(named, slots))

    def _rows(
        self, data: bytes, start: int, end: int, ends_at: int, kind: int, batch: _Batch
    ) -> None:
        body = start + HEADER
        try:
            table = self._by_id[data[body : body + 6]]
        except KeyError:
            if data[body : body + 6] == b"\xff\xff\xff\xff\xff\xff" or self._open is None:
                return  # the end of a statement without rows
            raise FatalError(
                "capture.unknown_table",
                "a row event names a table that the log did not describe",
                hint="run capture again; if it stays, report this with the server's version",
            ) from None
        transaction = self._open
        if table is None or transaction is None or transaction.xa:
            return
        if transaction.number < self._floor:
            return
        size = int.from_bytes(data[start + 9 : start + 13], "little")
        offset = number_of(self._file, ends_at - size) - transaction.number
        batch.groups.add(table, kind, start, end, offset, transaction)
