"""Row events of one parcel, grouped so that each group is decoded at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tidegate.connectors.mysql import events
from tidegate.connectors.mysql.charsets import Charsets
from tidegate.connectors.mysql.discover import Absent, absent
from tidegate.connectors.mysql.events import Mark, Span, Transaction
from tidegate.connectors.mysql.row_images import (
    Image,
    Table,
    check_key,
    completed,
    image_slots,
    patched,
    told,
)
from tidegate.connectors.mysql.rows import Payload, Walked, walk
from tidegate.envelope import gather, log_rows
from tidegate.envelope.change import Op
from tidegate.names import TableId
from tidegate.schema.table import TableSchema

_UPDATES: Final = (*events.UPDATE, events.PARTIAL_JSON)


@dataclass(slots=True)
class _Group:
    """Events of one table, kind and set of columns."""

    table: Table
    op: Op
    images: tuple[tuple[int, ...], ...]  # slots that each image holds
    partial: bool = False  # JSON columns may have diffs
    starts: list[int] = field(default_factory=list)  # of the rows
    ends: list[int] = field(default_factory=list)
    offsets: list[int] = field(default_factory=list)  # of the rows' bytes in their transaction
    transactions: list[Transaction] = field(default_factory=list)
    marks: list[Mark] = field(default_factory=list)

    def without(self, undone: Transaction, span: Span) -> None:
        """Forget the rows of a part of a transaction."""
        low, high = span
        kept = [
            n
            for n, (transaction, mark) in enumerate(zip(self.transactions, self.marks, strict=True))
            if transaction is not undone or not low <= mark < high
        ]
        self.starts = [self.starts[n] for n in kept]
        self.ends = [self.ends[n] for n in kept]
        self.offsets = [self.offsets[n] for n in kept]
        self.transactions = [self.transactions[n] for n in kept]
        self.marks = [self.marks[n] for n in kept]


@dataclass(frozen=True, slots=True)
class _Places:
    """Of every row: its transaction and its offset there."""

    number: npt.NDArray[np.uint64]
    index: npt.NDArray[np.uint64]
    micros: npt.NDArray[np.int64]
    tx_id: npt.NDArray[np.int64]


class Groups:
    """Collects, then decodes."""

    def __init__(self, epoch: str, data: bytes, charsets: Charsets, max_value: int) -> None:
        self._epoch, self._data = epoch, data
        self._charsets, self._max_value = charsets, max_value
        self._groups: dict[tuple[int, int, bytes], _Group] = {}
        self._made: dict[str, list[pa.RecordBatch]] = {}
        self._absent: dict[TableId, Absent] = {}
        self.holds: dict[TableId, str] = {}

    def add(
        self,
        table: Table,
        kind: int,
        start: int,
        end: int,
        offset: int,
        transaction: Transaction,
        mark: Mark,
    ) -> None:
        """A row event; ``offset`` is the event's own in its transaction."""
        data, at = self._data, events.columns_at(self._data, start, kind)
        count, bitmap = len(table.slots), (len(table.slots) + 7) // 8
        first = at + (1 if count < 251 else 3)
        last = first + bitmap * (2 if kind in _UPDATES else 1)
        key = (id(table), kind, data[first:last])
        group = self._groups.get(key)
        if group is None:
            images = image_slots(data[first:last], count, bitmap)
            group = _Group(table, _OPS[kind], images, kind == events.PARTIAL_JSON)
            self._groups[key] = group
        group.starts.append(last)
        group.ends.append(end)
        group.offsets.append(offset + last - start)
        group.transactions.append(transaction)
        group.marks.append(mark)

    def undo(self, transaction: Transaction, span: Span) -> None:
        """Take back what was added of a part of a transaction."""
        for group in self._groups.values():
            group.without(transaction, span)

    def truncate(self, schema: TableSchema, transaction: Transaction, offset: int) -> None:
        places = _Places(
            np.array([transaction.number], np.uint64),
            np.array([offset], np.uint64),
            np.array([transaction.micros], np.int64),
            np.array([transaction.tx_id], np.int64),
        )
        self._keep(schema, self._batch(schema, Op.TRUNCATE, places))

    def rows(self) -> pa.Table:
        """All rows; those of one table in log order."""
        payload = Payload(self._data) if self._groups else None
        for group in filter(lambda g: g.starts, self._groups.values()):
            assert payload is not None
            self._keep(group.table.schema, self._decoded(payload, group))
        parts = [batch for made in self._made.values() for batch in _in_log_order(made)]
        return pa.Table.from_batches(parts, schema=log_rows.ARROW_SCHEMA)

    def _keep(self, schema: TableSchema, batch: pa.RecordBatch) -> None:
        self._made.setdefault(str(schema.table), []).append(batch)

    def _decoded(self, payload: Payload, group: _Group) -> pa.RecordBatch:
        table = group.table
        starts, ends = np.array(group.starts, np.int64), np.array(group.ends, np.int64)
        shapes = [[table.slots[slot] for slot in image] for image in group.images]
        json_columns = len(table.json_slots) if group.partial else None
        walked = walk(payload, starts, ends, shapes, json_columns)
        rows = len(walked.starts)
        images = [
            Image.read(payload, table, image, columns, rows, self._charsets, self._max_value)
            for image, columns in zip(group.images, told(table, group.images, walked), strict=True)
        ]
        keys = table.key_slots
        old = images[0] if group.op is not Op.CREATE else None
        new = images[-1] if group.op is not Op.DELETE else None
        addressed = old or new
        assert addressed is not None
        check_key(table, addressed)
        if new is not None and new.missing:
            new = self._noted(table, completed(table, group.op, new, self._of_absent(table)))
        if new is not None and walked.partial.any():
            new = self._noted(table, patched(payload, table, group.images, walked, new))
        columns = {"key": _lists([addressed.texts[slot] for slot in keys], rows)}
        if old is not None and not old.missing:
            columns["before"] = _lists(old.texts, rows)
        if new is not None:
            columns["after"] = _lists(new.texts, rows)
            columns["unchanged"] = new.unchanged(rows)
        return self._batch(table.schema, group.op, _places(group, walked, starts), **columns)

    def _of_absent(self, table: Table) -> Absent:
        name = table.schema.table
        if name not in self._absent:
            assert self._charsets.connection is not None
            self._absent[name] = absent(self._charsets.connection, name)
        return self._absent[name]

    def _noted(self, table: Table, made: tuple[Image, str | None]) -> Image:
        image, held = made
        if held is not None:
            self.holds[table.schema.table] = held
        return image

    def _batch(
        self, schema: TableSchema, op: Op, places: _Places, **columns: pa.Array
    ) -> pa.RecordBatch:
        rows = len(places.number)
        made = {
            "epoch": log_rows.constant(self._epoch, rows),
            "shard": log_rows.constant(log_rows.SHARD, rows),
            "position": log_rows.places(places.number, places.index),
            "tx_id": pa.array(places.tx_id),
            "commit_ts": log_rows.instants(places.micros),
            "captured_at": log_rows.now(rows),
            "table": log_rows.constant(str(schema.table), rows),
            "op": log_rows.constant(op.value, rows),
            "schema_id": log_rows.constant(schema.schema_id, rows),
            "event_id": log_rows.event_ids(self._epoch, places.number, places.index),
            **columns,
        }
        arrays = [made.get(f.name, pa.nulls(rows, f.type)) for f in log_rows.ARROW_SCHEMA]
        return pa.RecordBatch.from_arrays(arrays, schema=log_rows.ARROW_SCHEMA)


_OPS: Final = {
    **dict.fromkeys(events.WRITE, Op.CREATE),
    **dict.fromkeys(_UPDATES, Op.UPDATE),
    **dict.fromkeys(events.DELETE, Op.DELETE),
}


def _places(group: _Group, walked: Walked, starts: npt.NDArray[np.int64]) -> _Places:
    of = walked.events
    offsets = np.array(group.offsets, np.int64)
    index = offsets[of] + walked.starts - starts[of]
    numbers = np.array([t.number for t in group.transactions], np.uint64)
    micros = np.array([t.micros for t in group.transactions], np.int64)
    tx_ids = np.array([t.tx_id for t in group.transactions], np.int64)
    return _Places(numbers[of], index.astype(np.uint64), micros[of], tx_ids[of])


def _lists(texts: Sequence[pa.Array], rows: int) -> pa.Array:
    """One list per row out of one array per column."""
    columns = len(texts)
    everything = np.ones(rows, np.bool_)
    if not columns:
        return gather.lists(pa.array([], pa.string()), np.zeros(rows, np.int32), everything)
    if columns == 1:
        return gather.lists(texts[0], np.ones(rows, np.int32), everything)
    order = np.arange(rows, dtype=np.int32)[:, None] + np.arange(columns, dtype=np.int32) * rows
    values = pa.concat_arrays(list(texts)).take(pa.array(order.ravel()))
    return gather.lists(values, np.full(rows, columns, np.int32), everything)


def _in_log_order(batches: list[pa.RecordBatch]) -> list[pa.RecordBatch]:
    if len(batches) == 1:
        return batches
    joined = pa.Table.from_batches(batches)
    sorted_: list[pa.RecordBatch] = joined.sort_by("position").combine_chunks().to_batches()
    return sorted_
