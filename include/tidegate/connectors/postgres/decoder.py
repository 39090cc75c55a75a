"""pgoutput messages → rows of the change log, columnwise.

Feed it messages in the order they arrived; it keeps what lasts longer than one call: the open
transaction and the tables' descriptions. An event's index counts every row event of its
transaction, also of tables that are not taken: positions do not depend on configuration.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from tidegate.config.platform import MAX_VALUE_BYTES
from tidegate.connectors.changes import SchemaSeen
from tidegate.connectors.postgres import ddl_messages, pgoutput, tuples
from tidegate.connectors.postgres.ddl_messages import Relaid, Rewritten, Told
from tidegate.connectors.postgres.pgoutput import RelationMessage
from tidegate.connectors.postgres.tuples import Payload, Tuples
from tidegate.envelope import log_rows
from tidegate.envelope.change import Op
from tidegate.envelope.position import Position, lsn_place
from tidegate.names import TableId
from tidegate.schema.table import TableSchema

SEGMENT_ROWS: Final = 16_384
"""Rows walked at once: their cursors and bytes stay in the processor's cache."""

_OPS: Final = {
    pgoutput.INSERT: Op.CREATE,
    pgoutput.UPDATE: Op.UPDATE,
    pgoutput.DELETE: Op.DELETE,
}
_OP_LETTER: Final = np.zeros(256, dtype=np.uint8)
for _kind, _op in _OPS.items():
    _OP_LETTER[_kind] = ord(_op.value)

Resolve = Callable[[RelationMessage], TableSchema | None]
Tell = Callable[[Told], TableSchema | None]
Hear = Callable[[Told | Rewritten | Relaid, int], None]
Astray = Callable[[RelationMessage], TableId | None]


@dataclass(frozen=True, slots=True)
class Decoded:
    rows: pa.Table
    schemas: tuple[SchemaSeen, ...]
    transactions: int
    rewritten: tuple[tuple[TableId, Position], ...] = ()
    """Tables whose old rows got other values without an event, and where."""
    astray: tuple[tuple[TableId, Position], ...] = ()
    """Tables with rows under a name that is not taken, and where."""


@dataclass(slots=True)
class _Transaction:
    """The transaction the last message belonged to."""

    lsn: int = 0
    micros: int = 0
    xid: int = 0
    events: int = 0


@dataclass(frozen=True, slots=True)
class _Relation:
    raw: bytes
    schema: TableSchema | None  # None: not a table of this pipeline
    key_slots: list[int]


@dataclass(frozen=True, slots=True)
class _Events:
    """Per message: which transaction it belongs to and the index of its (first) event."""

    lsn: npt.NDArray[np.uint64]
    micros: npt.NDArray[np.int64]
    xid: npt.NDArray[np.int64]
    index: npt.NDArray[np.uint64]


class Decoder:
    """One stream's decoder. ``resolve`` describes a table, or says None: not taken.

    Transactions that committed before ``floor`` are durable already and are dropped. The server
    skips them by itself; that it does is not what exactly-once should rest on (I3).
    """

    def __init__(
        self,
        epoch: str,
        resolve: Resolve,
        *,
        floor: int = 0,
        max_value_bytes: int = MAX_VALUE_BYTES,
        prefix: str | None = None,
        tell: Tell | None = None,
        astray: Astray | None = None,
        hear: Hear = lambda message, transaction: None,
    ) -> None:
        self._heard = hear  # by whom: files of partitions
        self._rewritten: list[tuple[TableId, Position]] = []
        self._astray: list[tuple[TableId, Position]] = []
        self._whose = astray  # table of ours that has another name now
        self._prefix = prefix  # of messages that tell a table's columns
        self._tell = tell
        self._epoch = epoch
        self._max_value = max_value_bytes
        self._resolve = resolve
        self._floor = floor
        self._open = _Transaction()
        self._relations: dict[int, _Relation] = {}

    def decode(self, messages: Sequence[bytes]) -> Decoded:
        """All row events among ``messages``."""
        parts: list[pa.RecordBatch] = []
        seen: list[SchemaSeen] = []
        transactions = 0
        for run in self._runs(messages, seen):
            batches, count = self._run(run)
            parts += batches
            transactions += count
        rows = pa.Table.from_batches(parts, schema=log_rows.ARROW_SCHEMA)
        rewritten, self._rewritten = tuple(self._rewritten), []
        astray, self._astray = tuple(self._astray), []
        return Decoded(_in_log_order(rows), tuple(seen), transactions, rewritten, astray)

    def _runs(self, messages: Sequence[bytes], seen: list[SchemaSeen]) -> Iterator[Sequence[bytes]]:
        """Stretches in which no table changes its description."""
        first = 0
        for at, message in enumerate(messages):
            if message[0] == pgoutput.RELATION and self._is_new(message):
                yield messages[first:at]
                self._describe(message, seen)
                first = at + 1
            elif message[0] == pgoutput.MESSAGE and self._prefix is not None:
                yield messages[first:at]
                self._hear(message, seen)
                first = at + 1
        yield messages[first:]

    def _is_new(self, message: bytes) -> bool:
        known = self._relations.get(pgoutput.relation_id(message))
        return known is None or known.raw != message

    def _describe(self, message: bytes, seen: list[SchemaSeen]) -> None:
        relation = replace(pgoutput.parse_relation(message), xid=self._open.xid)
        schema = self._resolve(relation)
        slots: list[int] = []
        # Right before the next event: in force from there on, the same on every re-read.
        at = Position(self._epoch, lsn_place(self._open.lsn, self._open.events))
        if schema is not None:
            names = [column.name for column in schema.columns]
            slots = [names.index(column.name) for column in schema.key_columns]
            seen.append(SchemaSeen(schema, at))
        elif self._whose is not None and self._open.lsn >= self._floor:
            lost = self._whose(relation)  # a description is followed by rows
            self._astray += [] if lost is None else [(lost, at)]
        self._relations[relation.relid] = _Relation(message, schema, slots)

    def _hear(self, message: bytes, seen: list[SchemaSeen]) -> None:
        """Someone's message; ours tells a table's columns from here on, rows or not."""
        said = pgoutput.parse_message(message)
        if said.prefix != self._prefix or self._tell is None or self._open.lsn < self._floor:
            return
        told = ddl_messages.parse(said)
        place = lsn_place(self._open.lsn, self._open.events)
        if isinstance(told, Rewritten):
            self._rewritten.append((told.table, Position(self._epoch, place)))
            return
        if told is not None:
            self._heard(told, self._open.lsn)
        schema = self._tell(told) if isinstance(told, Told) else None
        if schema is None or not isinstance(told, Told):
            return
        at = Position(self._epoch, place)
        # Of several changes before one event only the last one is ever used.
        seen[:] = [s for s in seen if (s.schema.table, s.at) != (schema.table, at)]
        seen.append(SchemaSeen(schema, at))
        known = self._relations.get(told.relid)
        if known is not None:
            # Its next description counts as new even if it reads the same: a column may have been
            # dropped and added again.
            self._relations[told.relid] = replace(known, raw=b"")

    def _run(self, messages: Sequence[bytes]) -> tuple[list[pa.RecordBatch], int]:
        if not messages:
            return [], 0
        payload = Payload.of(b"".join(messages))
        sizes = np.fromiter(map(len, messages), dtype=np.int64, count=len(messages))
        starts = np.cumsum(sizes) - sizes
        kinds = payload.octets[starts]
        events = self._events(payload, starts, kinds)
        batches = []
        fresh = events.lsn >= self._floor
        row_like = np.flatnonzero((_OP_LETTER[kinds] != 0) & fresh)
        relids = payload.int32[starts[row_like] + 1]
        for relid in np.unique(relids):
            which = row_like[relids == relid]
            relation = self._relation(int(relid) & 0xFFFFFFFF)
            if relation.schema is None:
                continue
            for at in range(0, len(which), SEGMENT_ROWS):
                part = which[at : at + SEGMENT_ROWS]
                batches.append(
                    self._rows(payload, relation, relation.schema, part, starts, kinds, events)
                )
        for place in np.flatnonzero(kinds == pgoutput.TRUNCATE):
            at = int(place)
            batches += self._truncates(messages[at], at, events)
        return batches, int(np.count_nonzero(kinds == pgoutput.COMMIT))

    def _events(
        self, payload: Payload, starts: npt.NDArray[np.int64], kinds: npt.NDArray[np.uint8]
    ) -> _Events:
        begins = kinds == pgoutput.BEGIN
        at = starts[begins] + 1
        # Slot 0 is the transaction that was open when these messages began.
        lsn = np.concatenate([[self._open.lsn], payload.int64[at].astype(np.int64)])
        micros = np.concatenate([[self._open.micros], payload.int64[at + 8].astype(np.int64)])
        xid = np.concatenate(
            [[self._open.xid], payload.int32[at + 16].astype(np.int64) & 0xFFFFFFFF]
        )
        counts = (_OP_LETTER[kinds] != 0).astype(np.int64)
        for truncate in np.flatnonzero(kinds == pgoutput.TRUNCATE):
            counts[truncate] = payload.int32[starts[truncate] + 1]
        transaction = np.cumsum(begins)
        before = np.cumsum(counts) - counts
        base = np.concatenate([[-self._open.events], before[begins]])
        index = before - base[transaction] + 1
        last = int(transaction[-1])
        self._open = _Transaction(
            int(lsn[last]),
            int(micros[last]),
            int(xid[last]),
            int(index[-1] - 1 + counts[-1]),
        )
        return _Events(
            lsn[transaction].astype(np.uint64),
            micros[transaction] + pgoutput.POSTGRES_EPOCH_US,
            xid[transaction],
            index.astype(np.uint64),
        )

    def _rows(
        self,
        payload: Payload,
        relation: _Relation,
        schema: TableSchema,
        which: npt.NDArray[np.int64],
        starts: npt.NDArray[np.int64],
        kinds: npt.NDArray[np.uint8],
        events: _Events,
    ) -> pa.RecordBatch:
        kind = kinds[which]
        cursors = starts[which] + 5
        old, new, marker = _images(payload, cursors, kind, len(schema.columns))
        old, new = old.without_larger(self._max_value), new.without_larger(self._max_value)
        has_old = (marker == ord("K")) | (marker == ord("O"))
        has_new = kind != pgoutput.DELETE
        whole = marker == ord("O")
        large = old.kinds == tuples.TOO_LARGE
        new = new.filled_from(old, (old.kinds == tuples.TEXT) | large | whole[:, None])
        if not relation.key_slots:
            # Without a key the old row is what a row is known by: all of it, or it is not given.
            whole &= ~large.any(axis=1)
        return self._batch(
            schema,
            which,
            events,
            op=log_rows.fixed_width_strings(_OP_LETTER[kind].reshape(-1, 1)),
            key=_keys(payload, old, new, has_old, relation.key_slots),
            before=tuples.text_lists(payload, old, whole),
            after=tuples.text_lists(payload, new, has_new),
            unchanged=tuples.slot_lists(new),
        )

    def _truncates(self, message: bytes, at: int, events: _Events) -> list[pa.RecordBatch]:
        batches = []
        for offset, relid in enumerate(pgoutput.parse_truncate(message)):
            schema = self._relation(relid).schema
            if schema is None:
                continue
            one = _Events(
                events.lsn[[at]],
                events.micros[[at]],
                events.xid[[at]],
                events.index[[at]] + np.uint64(offset),
            )
            batches.append(
                self._batch(schema, np.array([0]), one, op=pa.array([Op.TRUNCATE.value]))
            )
        return batches

    def _batch(
        self,
        schema: TableSchema,
        which: npt.NDArray[np.int64],
        events: _Events,
        **columns: pa.Array,
    ) -> pa.RecordBatch:
        rows = len(which)
        lsn, index = events.lsn[which], events.index[which]
        made = {
            "epoch": log_rows.constant(self._epoch, rows),
            "shard": log_rows.constant(log_rows.SHARD, rows),
            "position": log_rows.places(lsn, index),
            "tx_id": pa.array(events.xid[which]),
            "commit_ts": log_rows.instants(events.micros[which]),
            "captured_at": log_rows.now(rows),
            "table": log_rows.constant(str(schema.table), rows),
            "schema_id": log_rows.constant(schema.schema_id, rows),
            "event_id": log_rows.event_ids(self._epoch, lsn, index),
            **columns,
        }
        arrays = [
            made.get(field.name, pa.nulls(rows, field.type)) for field in log_rows.ARROW_SCHEMA
        ]
        return pa.RecordBatch.from_arrays(arrays, schema=log_rows.ARROW_SCHEMA)

    def _relation(self, relid: int) -> _Relation:
        relation = self._relations.get(relid)
        if relation is None:
            raise pgoutput.unknown_relation(relid)
        return relation


def _in_log_order(rows: pa.Table) -> pa.Table:
    """Truncates were made apart from rows; put them where they belong."""
    if not pc.any(pc.equal(rows["op"], Op.TRUNCATE.value)).as_py():
        return rows
    return rows.sort_by([("table", "ascending"), ("position", "ascending")])


def _images(
    payload: Payload, cursors: npt.NDArray[np.int64], kind: npt.NDArray[np.uint8], columns: int
) -> tuple[Tuples, Tuples, npt.NDArray[np.uint8]]:
    """Old and new image of every row, NULLs where there is none, and the first image's marker."""
    marker = payload.octets[cursors]
    has_old = marker != ord("N")
    has_new = kind != pgoutput.DELETE
    if not has_old.any():
        new, _ = tuples.walk(payload, cursors + 1, columns)
        return tuples.nothing(len(cursors), columns), new, marker
    old_part, behind = tuples.walk(payload, cursors[has_old] + 1, columns)
    at = cursors.copy()
    at[has_old] = behind
    new_part, _ = tuples.walk(payload, at[has_new] + 1, columns)
    return _spread(old_part, has_old), _spread(new_part, has_new), marker


def _spread(part: Tuples, where: npt.NDArray[np.bool_]) -> Tuples:
    """``part``'s rows at the places that ``where`` names, NULLs elsewhere."""
    if where.all():
        return part
    whole = tuples.nothing(len(where), part.kinds.shape[1])
    whole.kinds[where] = part.kinds
    whole.starts[where] = part.starts
    whole.lengths[where] = part.lengths
    return whole


def _keys(
    payload: Payload,
    old: Tuples,
    new: Tuples,
    has_old: npt.NDArray[np.bool_],
    slots: list[int],
) -> pa.Array:
    """The key of the row a change addresses: the old one where the source sent it."""
    from_old, from_new = old.take(slots), new.take(slots)
    use = has_old[:, None]
    chosen = Tuples(
        np.where(use, from_old.kinds, from_new.kinds),
        np.where(use, from_old.starts, from_new.starts),
        np.where(use, from_old.lengths, from_new.lengths),
    )
    return tuples.text_lists(payload, chosen, np.ones(len(has_old), dtype=np.bool_))
