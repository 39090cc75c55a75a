"""The images of rows: what the log has of each, and what is known of the rest."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tidegate.connectors.mysql import values
from tidegate.connectors.mysql.charsets import Charsets
from tidegate.connectors.mysql.discover import Absent
from tidegate.connectors.mysql.rows import Payload, Values, Walked
from tidegate.connectors.mysql.table_map import Slot
from tidegate.envelope import gather, log_rows
from tidegate.envelope.change import Op
from tidegate.errors import FatalError
from tidegate.schema.table import TableSchema

NOT_SENT: Final = (
    "has a row that was logged without a value that only the server can compute"
    " (binlog_row_image is not FULL)"
)
NO_DOCUMENT: Final = (
    "has a partial update of JSON without the document before it (binlog_row_image is not FULL)"
)


@dataclass(frozen=True, slots=True)
class Table:
    """A table as a table map describes it."""

    schema: TableSchema
    slots: tuple[Slot, ...]

    @property
    def key_slots(self) -> list[int]:
        names = [column.name for column in self.schema.columns]
        return [names.index(column.name) for column in self.schema.key_columns]

    @property
    def json_slots(self) -> list[int]:
        return [at for at, slot in enumerate(self.slots) if slot.facts.base == "json"]


@dataclass(frozen=True, slots=True)
class Image:
    """One image of many rows: a text array per column of the table."""

    texts: list[pa.Array]
    missing: tuple[int, ...]  # slots the source did not send
    large: dict[int, npt.NDArray[np.bool_]]  # rows whose value was left out for its size

    @classmethod
    def read(
        cls,
        payload: Payload,
        table: Table,
        sent: Sequence[int],
        columns: Sequence[Values],
        rows: int,
        charsets: Charsets,
        max_value: int,
    ) -> Image:
        texts = [pa.nulls(rows, pa.string()) for _ in table.slots]
        large: dict[int, npt.NDArray[np.bool_]] = {}
        for slot, found in zip(sent, columns, strict=True):
            too_large = values.sizes(payload, found, table.slots[slot]) > max_value
            if too_large.any():
                large[slot] = too_large
                found = Values(
                    found.starts, np.where(too_large, 0, found.lengths), found.valid & ~too_large
                )
            texts[slot] = values.texts(payload, found, table.slots[slot], charsets)
        missing = tuple(slot for slot in range(len(table.slots)) if slot not in set(sent))
        return cls(texts, missing, large)

    def unchanged(self, rows: int) -> pa.Array:
        """Slots that were not sent, or left out for their size (``envelope.log_rows``)."""
        if not self.missing and not self.large:
            return pa.nulls(rows, log_rows.ARROW_SCHEMA.field("unchanged").type)
        absent = np.zeros((rows, len(self.texts)), np.bool_)
        names = np.arange(len(self.texts), dtype=np.int32)
        absent[:, list(self.missing)] = True
        for slot, which in self.large.items():
            absent[:, slot] = which
            names[slot] = log_rows.too_large(slot)
        row, slots = np.nonzero(absent)
        sizes = np.bincount(row, minlength=rows)
        return gather.lists(pa.array(names[slots]), sizes, sizes > 0)


def image_slots(bitmaps: bytes, count: int, size: int) -> tuple[tuple[int, ...], ...]:
    """Slots that each image of an event holds."""
    parts = [bitmaps[at : at + size] for at in range(0, len(bitmaps), size)]
    return tuple(tuple(n for n in range(count) if part[n // 8] >> n % 8 & 1) for part in parts)


def told(
    table: Table, slots: Sequence[Sequence[int]], walked: Walked
) -> tuple[tuple[Values, ...], ...]:
    """The images with nothing where the last one has how a document changed."""
    if not walked.partial.any():
        return walked.images
    sent, last = list(slots[-1]), list(walked.images[-1])
    for number, slot in enumerate(table.json_slots):
        if slot in sent:
            at = sent.index(slot)
            whole = last[at].valid & ~walked.partial[:, number]
            last[at] = Values(last[at].starts, last[at].lengths, whole)
    return (*walked.images[:-1], tuple(last))


def completed(table: Table, op: Op, new: Image, known: Absent) -> tuple[Image, str | None]:
    """An insert without a column has its default there. A value that is computed on reading may
    have changed although it was not sent: only a sweep tells, and why is the second answer."""
    texts, missing, held = list(new.texts), [], None
    for slot in new.missing:
        column = table.schema.columns[slot].name
        if op is Op.CREATE and column in known.inserted:
            default = pa.scalar(known.inserted[column], pa.string())
            texts[slot] = pa.repeat(default, len(texts[slot]))
            continue
        missing.append(slot)
        if op is Op.CREATE or column in known.computed:
            held = NOT_SENT
    return Image(texts, tuple(missing), new.large), held


def patched(
    payload: Payload, table: Table, slots: Sequence[Sequence[int]], walked: Walked, new: Image
) -> tuple[Image, str | None]:
    """Documents of which only the changes were sent, from the row's before image; where there is
    none, why the table waits for a sweep."""
    old_slots, new_slots = list(slots[0]), list(slots[1])
    texts, missing, held = list(new.texts), list(new.missing), None
    for number, slot in enumerate(table.json_slots):
        which = np.nonzero(walked.partial[:, number])[0].tolist()
        if not which or slot not in new_slots:
            continue
        if slot not in old_slots:
            missing.append(slot)
            held = NO_DOCUMENT
            continue
        before = walked.images[0][old_slots.index(slot)]
        diffs = walked.images[1][new_slots.index(slot)]
        texts[slot] = values.patched(payload, before, diffs, texts[slot], which)
    return Image(texts, tuple(missing), new.large), held


def check_key(table: Table, addressed: Image) -> None:
    """A change without its key hides the row."""
    if set(table.key_slots) & set(addressed.missing):
        raise FatalError(
            "capture.row_image",
            f"the log holds rows of {table.schema.table} without their key",
            hint="SET GLOBAL binlog_row_image = FULL; rows that were written without it are lost:"
            " `tidegate recover`",
        )
