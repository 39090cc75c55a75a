"""Events of the binary log → rows of the change log, columnwise.

Feed it parcels in the order they arrived; it keeps what lasts longer than one call: the file, the
open transaction, the tables' descriptions. Row events of one table and kind are collected and
decoded together, however many transactions they belong to.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from tidegate.connectors.changes import ChangeBatch, TableHold
from tidegate.connectors.mysql import events, inflate, rollbacks
from tidegate.connectors.mysql.anchor import Anchor
from tidegate.connectors.mysql.charsets import Charsets
from tidegate.connectors.mysql.decoded_batch import Batch
from tidegate.connectors.mysql.described_tables import DescribedTables, Live
from tidegate.connectors.mysql.events import HEADER, Mark, Span, Transaction
from tidegate.connectors.mysql.position import Place, file_number, number_of, volume, way_back
from tidegate.connectors.mysql.query_events import Statement, statement
from tidegate.connectors.mysql.row_groups import Groups
from tidegate.connectors.mysql.schemas_in_force import SchemasInForce
from tidegate.connectors.mysql.statement_effects import STATEMENT, Taken
from tidegate.connectors.mysql.temporary_tables import OPEN
from tidegate.connectors.mysql.wire import Parcel, check_crc
from tidegate.envelope.position import Position, boundary
from tidegate.errors import FatalError

XA: Final = "was changed by a prepared (XA) transaction, which is not followed"
INCIDENT: Final = "the server noted an incident: changes may be missing from its log"
NEW_EVENT: Final = "the log holds an event of a kind that is not known: it may change rows"


class Decoder:
    """One stream's decoder. Transactions that began before ``place`` are durable and dropped, and
    so are those that another server's log repeats (``anchor``)."""

    def __init__(
        self,
        epoch: str,
        taken: Taken,
        charsets: Charsets,
        live: Live,
        undo: rollbacks.Undo,
        *,
        place: Place,
        anchor: Anchor,
        max_value_bytes: int,
        checksums: bool,
    ) -> None:
        self._epoch = epoch
        self._anchor = anchor
        self._gtids, self._repeated = anchor.known, anchor.before
        self._taken = taken
        self._charsets = charsets
        self._undo = undo
        self._tables = DescribedTables(charsets, taken, live)
        self._max_value = max_value_bytes
        self._floor = place.number
        self._term = place.term
        self._volume = volume(place.term, place.file)
        self._passed = place.number  # the last boundary
        self._at = 0  # where the event at hand begins in its file
        self._open: Transaction | None = None
        self._checksums = checksums  # of what comes before the first format event
        self.schemas = SchemasInForce(epoch, taken, live)
        self._handlers: dict[int, Callable[[bytes, int, int, int, Batch], None]] = {
            **dict.fromkeys(events.ROWS, self._row_event),
            **dict.fromkeys((*events.MARIADB_ROWS, events.PAYLOAD), self._inflated),
            **dict.fromkeys((events.MARIADB_GTID, *events.GTIDS), self._begin),
            **dict.fromkeys((events.QUERY, events.MARIADB_QUERY), self._query_event),
            **dict.fromkeys(events.LOADS, self._load_event),
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
        batch = Batch(groups, inner, memoryview(data))
        for start, end in parcel.events:
            self._event(data, start, end, batch)
        if self._open is not None and self._open.rows and self._open.undone is None:
            self._foresee(self._open, batch)
        self.schemas.finish(batch)
        if self._open is None:
            batch.hold(self.schemas.hidden(), OPEN)
        rows = batch.groups.rows()
        batch.holds |= batch.groups.holds
        return ChangeBatch(
            rows=rows,
            schemas=tuple(batch.seen),
            through=None if self._open is not None else self.through,
            transactions=batch.transactions,
            raw_bytes=len(parcel.data),
            altered=tuple(batch.altered),
            holds=tuple(TableHold(str(t), why) for t, why in batch.holds.items()),
        )

    def _event(self, data: bytes, start: int, end: int, batch: Batch) -> None:
        _, kind, _, size, ends_at, flags = events.HEAD.unpack_from(data, start)
        if kind == events.FORMAT:
            self._checksums = events.checksummed(data[start:end])
        if self._checksums:
            check_crc(batch.view, start, end)
            end -= 4
        self._at = ends_at - size
        handle = self._handlers.get(kind)
        if handle is None:
            self._other(kind, flags, ends_at, batch)
        else:
            handle(data, start, end, ends_at, batch)

    def _row_event(self, data: bytes, start: int, end: int, ends_at: int, batch: Batch) -> None:
        self._rows(data, start, end, self._offset(), batch)

    def _map_event(self, data: bytes, start: int, end: int, ends_at: int, batch: Batch) -> None:
        self._table_map(data[start + HEADER : end], self._offset(), batch)

    def _query_event(self, data: bytes, start: int, end: int, ends_at: int, batch: Batch) -> None:
        self._statement(statement(data, start, end, self._charsets), self._offset(), ends_at, batch)

    def _load_event(self, data: bytes, start: int, end: int, ends_at: int, batch: Batch) -> None:
        """LOAD DATA as a statement: its rows are in the log as a file."""
        if self._open is None or not self._open.known:
            batch.hold(sorted(self._taken.tables), STATEMENT)

    def _end_event(self, data: bytes, start: int, end: int, ends_at: int, batch: Batch) -> None:
        self._end(ends_at, batch)

    def _rotate(self, data: bytes, start: int, end: int, ends_at: int, batch: Batch) -> None:
        name, offset = events.rotate(data[start + HEADER : end])
        self._volume = volume(self._term, file_number(name))
        self._pass(offset)

    def _incident(self, data: bytes, start: int, end: int, ends_at: int, batch: Batch) -> None:
        batch.hold(sorted(self._taken.tables), INCIDENT)

    def _begin(self, data: bytes, start: int, end: int, ends_at: int, batch: Batch) -> None:
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
                hint=way_back(tuple(map(str, sorted(self._taken.tables)))),
            )
        return self._repeated is not None and self._repeated.has(gtid)

    def _end(self, ends_at: int, batch: Batch) -> None:
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

    def _inflated(self, data: bytes, start: int, end: int, ends_at: int, batch: Batch) -> None:
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
                said = statement(data, first, last, self._charsets)
                self._statement(said, at, ends_at, batch)
            elif kind in (events.XID, events.XA_PREPARE):
                self._end(ends_at, batch)
            else:
                self._other(kind, events.ARTIFICIAL, ends_at, batch)
        if self._open is not None:
            self._open.inflated += max(0, inner[-1][1] - base - (end - start))

    def _other(self, kind: int, flags: int, ends_at: int, batch: Batch) -> None:
        if kind == events.TAGGED_GTID:
            raise FatalError(
                "capture.log_form",
                "the log holds transactions with a tagged GTID, which are not read",
                hint="set gtid_next without a tag, then `tidegate recover`",
            )
        if kind not in events.WITHOUT_ROWS and not flags & events.IGNORABLE:
            batch.hold(sorted(self._taken.tables), NEW_EVENT)
        made_up = flags & events.ARTIFICIAL and kind not in events.HEARTBEATS
        if self._open is None and not made_up:
            self._pass(ends_at)

    def _statement(self, said: Statement, offset: int, ends_at: int, batch: Batch) -> None:
        transaction = self._open
        word, name = rollbacks.control_word(said)
        if word in ("BEGIN", "XA"):
            if transaction is not None:
                transaction.begun = True
                transaction.xa = word == "XA"
        elif word in ("COMMIT", "ROLLBACK"):
            if word == "ROLLBACK" and transaction is not None:
                self._take_back(transaction, (rollbacks.BEGINNING, (self._at, offset)), batch)
            self._end(ends_at, batch)
        elif word and transaction is not None and transaction.begun:
            self._savepoint(transaction, word, name, (self._at, offset), batch)
        else:
            if transaction is None or not transaction.known:
                behind = number_of(self._volume, ends_at)
                self.schemas.change(said, transaction, behind, batch)
            if transaction is None or not transaction.begun:
                self._end(ends_at, batch)

    def _savepoint(
        self, transaction: Transaction, word: str, name: str, mark: Mark, batch: Batch
    ) -> None:
        if word == "SAVEPOINT":
            transaction.savepoints.set(name, mark)
        elif word == "ROLLBACK TO":
            span, certain = transaction.savepoints.back_to(name, mark)
            self._take_back(transaction, span, batch)
            if not certain:
                batch.hold(sorted(transaction.rows), rollbacks.UNCERTAIN)

    def _take_back(self, transaction: Transaction, span: Span, batch: Batch) -> None:
        """Drop what was rolled back. Rows of an engine without transactions have happened."""
        batch.groups.undo(transaction, span)
        kept = (t for t in sorted(transaction.rows) if not self._undo.undoes(t))
        batch.hold(kept, rollbacks.KEPT)

    def _foresee(self, transaction: Transaction, batch: Batch) -> None:
        """Rows are handed on before their transaction ends: look there first."""
        transaction.undone = self._undo.ahead(self._volume, transaction.number)
        for span in transaction.undone:
            batch.groups.undo(transaction, span)

    def _table_map(self, body: bytes, offset: int, batch: Batch) -> None:
        table = self._tables.take(body)
        if table is None or self._open is None or self._open.known:
            return
        if self._open.xa:
            batch.holds[table.schema.table] = XA
        self.schemas.use(table.schema, self._open, offset, batch)

    def _rows(self, data: bytes, start: int, end: int, offset: int, batch: Batch) -> None:
        """``offset`` is the event's own in its transaction."""
        table = self._tables.of(data[start + HEADER : start + HEADER + 6])
        if table is None:
            return
        transaction = self._open
        if transaction is None:
            raise FatalError(
                "capture.log_form",
                f"rows of {table.schema.table} lie outside of a transaction",
                hint="report this with the server's version",
            )
        if transaction.xa or transaction.known:
            return
        transaction.rows.add(table.schema.table)
        mark = (self._at, offset)
        if not any(low <= mark < high for low, high in transaction.undone or ()):
            batch.groups.add(table, data[start + 4], start, end, offset, transaction, mark)
