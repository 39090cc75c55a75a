"""Events of the binary log → rows of the change log, columnwise.

Feed it parcels in the order they arrived; it keeps what lasts longer than one call: the file, the
open transaction, the tables' descriptions. Row events of one table and kind are collected and
decoded together, however many transactions they belong to.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, Final

from tidegate.connectors.changes import ChangeBatch, SchemaSeen, TableHold
from tidegate.connectors.mysql import ddl, events, inflate
from tidegate.connectors.mysql.anchor import Anchor
from tidegate.connectors.mysql.charsets import Charsets
from tidegate.connectors.mysql.events import HEADER, Transaction
from tidegate.connectors.mysql.position import Place, file_number, number_of, volume, way_back
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
    inner: inflate.Inner
    view: memoryview
    seen: list[SchemaSeen] = field(default_factory=list)
    holds: dict[TableId, str] = field(default_factory=dict)
    transactions: int = 0


class Decoder:
    """One stream's decoder. Transactions that began before ``place`` are durable and dropped, and
    so are those that another server's log repeats (``anchor``)."""

    def __init__(
        self,
        epoch: str,
        tables: tuple[TableId, ...],
        charsets: Charsets,
        live: Live,
        *,
        place: Place,
        anchor: Anchor,
        max_value_bytes: int,
        checksums: bool,
    ) -> None:
        self._epoch = epoch
        self._anchor = anchor
        self._gtids, self._repeated = anchor.known, anchor.before
        self._taken = frozenset(tables)
        self._charsets = charsets
        self._live = live
        self._max_value = max_value_bytes
        self._floor = place.number
        self._term = place.term
        self._volume = volume(place.term, place.file)
        self._passed = place.number  # the last boundary
        self._at = 0  # where the event at hand begins in its file
        self._open: Transaction | None = None
        self._checksums = checksums  # of what comes before the first format event
        self._described: dict[bytes, Table | None] = {}
        self._by_id: dict[bytes, Table | None] = {}
        self._last: dict[TableId, TableSchema] = {}  # what the log used last
        self._handlers: dict[int, Callable[[bytes, int, int, int, _Batch], None]] = {
            **dict.fromkeys(events.ROWS, self._row_event),
            **dict.fromkeys((*events.MARIADB_ROWS, events.PAYLOAD), self._inflated),
            **dict.fromkeys((events.MARIADB_GTID, *events.GTIDS), self._begin),
            **dict.fromkeys((events.QUERY, events.MARIADB_QUERY), self._query_event),
            **dict.fromkeys((events.XID, events.XA_PREPARE), self._end_event),
            events.TABLE_MAP: self._map_event,
            events.ROTATE: self._rotate,
            events.INCIDENT: self._incident,
        }

    @property
    def through(self) -> Position:
        """The last boundary that was passed."""
        anchor = self._anchor.at(self._gtids)
        return boundary(self._epoch, self._passed, str(anchor))

    def decode(self, parcel: Parcel) -> ChangeBatch:
        """Everything in ``parcel``; ``through`` is set if it ends between transactions."""
        data, inner = inflate.inflate(parcel)
        groups = Groups(self._epoch, data, self._charsets, self._max_value)
        batch = _Batch(groups, inner, memoryview(data))
        for start, end in parcel.events:
            self._event(data, start, end, batch)
        rows = batch.groups.rows()
        batch.holds |= batch.groups.holds
        return ChangeBatch(
            rows=rows,
            schemas=tuple(batch.seen),
            through=None if self._open is not None else self.through,
            transactions=batch.transactions,
            raw_bytes=len(parcel.data),
            holds=tuple(TableHold(str(t), why) for t, why in batch.holds.items()),
        )

    def _event(self, data: bytes, start: int, end: int, batch: _Batch) -> None:
        _, kind, _, size, ends_at, flags = events.HEAD.unpack_from(data, start)
        if kind == events.FORMAT:
            self._checksums = events.checksummed(data[start:end])
        if self._checksums:
            check_crc(batch.view, start, end)
            end -= 4
        self._at = ends_at - size
        handle = self._handlers.get(kind)
        if handle is None:
            self._other(kind, flags, ends_at)
        else:
            handle(data, start, end, ends_at, batch)

    def _row_event(self, data: bytes, start: int, end: int, ends_at: int, batch: _Batch) -> None:
        self._rows(data, start, end, self._offset(), batch)

    def _map_event(self, data: bytes, start: int, end: int, ends_at: int, batch: _Batch) -> None:
        self._table_map(data[start + HEADER : end], self._offset(), batch)

    def _query_event(self, data: bytes, start: int, end: int, ends_at: int, batch: _Batch) -> None:
        packed = data[start + 4] == events.MARIADB_QUERY
        body = data[start + HEADER : end]
        said = events.statement(body, inflate.text) if packed else events.statement(body)
        self._statement(said, ends_at, batch)

    def _end_event(self, data: bytes, start: int, end: int, ends_at: int, batch: _Batch) -> None:
        self._end(ends_at, batch)

    def _rotate(self, data: bytes, start: int, end: int, ends_at: int, batch: _Batch) -> None:
        name, offset = events.rotate(data[start + HEADER : end])
        self._volume = volume(self._term, file_number(name))
        self._pass(offset)

    def _incident(self, data: bytes, start: int, end: int, ends_at: int, batch: _Batch) -> None:
        batch.holds |= dict.fromkeys(self._taken, INCIDENT)

    def _begin(self, data: bytes, start: int, end: int, ends_at: int, batch: _Batch) -> None:
        number = number_of(self._volume, self._at)
        begun = self._open = events.transaction(data, start, end, number)
        begun.known = number < self._floor
        if self._repeated is not None:
            begun.known = begun.known or self._repeats(begun.gtid)

    def _repeats(self, gtid: Any) -> bool:
        """Whether an earlier term's server told of it already."""
        if gtid is None:
            raise FatalError(
                "source.other_system",
                "the server that took over has transactions without a GTID in its log: which of"
                " them were captured cannot be told",
                hint=way_back(tuple(map(str, sorted(self._taken)))),
            )
        return self._repeated is not None and self._repeated.has(gtid)

    def _end(self, ends_at: int, batch: _Batch) -> None:
        if self._open is not None:
            self._note(self._open)
        self._open = None
        batch.transactions += 1
        self._pass(ends_at)

    def _note(self, ended: Transaction) -> None:
        """What is captured, by its name on every server."""
        if self._gtids is None or ended.known:
            return
        if ended.gtid is None:
            self._gtids = None  # gtid_mode was turned off meanwhile
        else:
            self._gtids.add(ended.gtid)

    def _pass(self, offset: int) -> None:
        if offset:
            self._passed = max(self._passed, number_of(self._volume, offset))

    def _offset(self) -> int:
        """The event's own, from where its transaction begins, as if nothing were compressed."""
        begun = self._open
        if begun is None:
            return 0
        return number_of(self._volume, self._at) - begun.number + begun.inflated

    def _inflated(self, data: bytes, start: int, end: int, ends_at: int, batch: _Batch) -> None:
        """What a compressed event holds, at the offsets that it has when inflated."""
        offset, inner = self._offset(), batch.inner[start]
        base = inner[0][0]
        for first, last in inner:
            kind, at = data[first + 4], offset + first - base
            if kind in events.ROWS:
                self._rows(data, first, last, at, batch)
            elif kind == events.TABLE_MAP:
                self._table_map(data[first + HEADER : last], at, batch)
            elif kind == events.QUERY:
                self._statement(events.statement(data[first + HEADER : last]), ends_at, batch)
            elif kind in (events.XID, events.XA_PREPARE):
                self._end(ends_at, batch)
            else:
                self._other(kind, events.ARTIFICIAL, ends_at)
        if self._open is not None:
            self._open.inflated += max(0, inner[-1][1] - base - (end - start))

    def _other(self, kind: int, flags: int, ends_at: int) -> None:
        if kind == events.TAGGED_GTID:
            raise FatalError(
                "capture.log_form",
                "the log holds transactions with a tagged GTID, which are not read",
                hint="set gtid_next without a tag, then `tidegate recover`",
            )
        made_up = flags & events.ARTIFICIAL and kind not in events.HEARTBEATS
        if self._open is None and not made_up:
            self._pass(ends_at)

    def _statement(self, said: events.Statement, ends_at: int, batch: _Batch) -> None:
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
        if transaction is None or not transaction.known:
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
            offset = number_of(self._volume, ends_at) - self._open.number
            self._in_force(schema, offset - 1, batch)
            batch.groups.truncate(schema, self._open, offset)

    def _table_map(self, body: bytes, offset: int, batch: _Batch) -> None:
        number, description = body[:6], body[6:]
        if description not in self._described:
            self._described[description] = self._describe(body)
        table = self._described[description]
        self._by_id[number] = table
        if table is None or self._open is None or self._open.known:
            return
        if self._open.xa:
            batch.holds[table.schema.table] = XA
        self._in_force(table.schema, offset, batch)

    def _in_force(self, schema: TableSchema, offset: int, batch: _Batch) -> None:
        """Note a schema that differs from the last one, right before the rows that follow: the
        same place on every re-read."""
        last = self._last.get(schema.table)
        if self._open is None or last is schema or last == schema:
            return
        self._last[schema.table] = schema
        place = lsn_place(self._open.number, offset)
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

    def _rows(self, data: bytes, start: int, end: int, offset: int, batch: _Batch) -> None:
        """``offset`` is the event's own in its transaction."""
        body = start + HEADER
        try:
            table = self._by_id[data[body : body + 6]]
        except KeyError:
            if data[body : body + 6] == b"\xff\xff\xff\xff\xff\xff":
                return  # the end of a statement without rows
            raise FatalError(
                "capture.unknown_table",
                "a row event names a table that the log did not describe",
                hint="run capture again; if it stays, report this with the server's version",
            ) from None
        if table is None:
            return
        transaction = self._open
        if transaction is None:
            raise FatalError(
                "capture.log_form",
                f"rows of {table.schema.table} lie outside of a transaction",
                hint="report this with the server's version",
            )
        if not transaction.xa and not transaction.known:
            batch.groups.add(table, data[start + 4], start, end, offset, transaction)
