"""Row events, thousands at once: walk columns, not values.

A row is a bitmap of NULLs and the values of its columns, one behind the other; only walking a row
tells where the next begins. So there is one cursor per *event*: all cursors move past column 0 of
their first rows, then column 1, …, then on to their second rows. Python's work is per column and
row number, never per value.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from tidegate.connectors.mysql.table_map import Slot
from tidegate.errors import FatalError

PADDING: Final = 16
"""Zero bytes behind the data, so that a cursor at its end can be read from."""

Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]


class Payload:
    """Raw log bytes, readable at any offset as integers."""

    def __init__(self, data: bytes) -> None:
        self._padded = data + bytes(PADDING)
        self.octets = np.frombuffer(self._padded, dtype=np.uint8)

    def _view(self, kind: str) -> npt.NDArray[Any]:
        size = len(self._padded) - np.dtype(kind).itemsize + 1
        return np.ndarray(shape=(size,), dtype=kind, buffer=self._padded, strides=(1,))

    @cached_property
    def u16(self) -> npt.NDArray[Any]:
        return self._view("<u2")

    @cached_property
    def u32(self) -> npt.NDArray[Any]:
        return self._view("<u4")

    @cached_property
    def u64(self) -> npt.NDArray[Any]:
        return self._view("<u8")

    def little(self, starts: Ints, width: int) -> npt.NDArray[np.uint64]:
        """Unsigned numbers of ``width`` bytes, low byte first."""
        value = self.u64[starts].astype(np.uint64)
        return value if width == 8 else value & np.uint64((1 << 8 * width) - 1)

    def big(self, starts: Ints, width: int) -> npt.NDArray[np.uint64]:
        """Unsigned numbers of up to 8 bytes, high byte first."""
        value = np.zeros(len(starts), np.uint64)
        for at in range(width):
            value = (value << np.uint64(8)) | self.octets[starts + at].astype(np.uint64)
        return value


@dataclass(frozen=True, slots=True)
class Values:
    """One column: where each row's value begins, its bytes, and whether there is one."""

    starts: Ints
    lengths: Ints
    valid: Bools

    def where(self, order: Ints) -> Values:
        return Values(self.starts[order], self.lengths[order], self.valid[order])


@dataclass(frozen=True, slots=True)
class Walked:
    """Rows in log order: per image its columns, and where each row came from."""

    images: tuple[tuple[Values, ...], ...]
    starts: Ints  # of the rows, in the payload
    events: Ints  # which event each row is of
    partial: Bools  # (rows × JSON columns): the last image has how the value changed, not the value


def walk(
    payload: Payload,
    starts: Ints,
    ends: Ints,
    images: Sequence[Sequence[Slot]],
    json_columns: int | None = None,
) -> Walked:
    """Every row of the events whose rows lie in [starts, ends). ``json_columns`` of the table, if
    the last image may have partial values."""
    found: list[list[list[tuple[Ints, Ints, Bools]]]] = [[[] for _ in slots] for slots in images]
    row_starts: list[Ints] = []
    row_events: list[Ints] = []
    row_partial: list[Bools] = []
    events, at = np.arange(len(starts)), starts
    more = at < ends
    while True:
        if not more.all():
            events, at = events[more], at[more]
        if not len(events):
            break
        row_starts.append(at)
        row_events.append(events)
        for number, (slots, columns) in enumerate(zip(images, found, strict=True), 1):
            if number == len(images):
                partial, at = _partial(payload, at, json_columns)
                row_partial.append(partial)
            at = _image(payload, at, slots, columns)
        limit = ends[events]
        if (at > limit).any():
            raise FatalError(
                "capture.row_shape",
                "a row of the binary log is longer than its event",
                hint="report this with the server's version and the tables' column types",
            )
        more = at < limit
    return _ordered(found, row_starts, row_events, row_partial)


def _partial(payload: Payload, at: Ints, json_columns: int | None) -> tuple[Bools, Ints]:
    """Options of the image stand before it, and a bit per JSON column if they say so."""
    if json_columns is None:
        return np.zeros((len(at), 0), np.bool_), at
    options = (payload.octets[at] & np.uint8(1)).astype(np.bool_)
    bits = [
        options & ((payload.octets[at + 1 + n // 8] >> np.uint8(n % 8) & 1) == 1)
        for n in range(json_columns)
    ]
    size = (json_columns + 7) // 8
    return np.stack(bits, axis=1), at + 1 + np.where(options, size, 0)


def _image(
    payload: Payload, at: Ints, slots: Sequence[Slot], columns: list[list[tuple[Ints, Ints, Bools]]]
) -> Ints:
    octets, nulls = payload.octets, at
    at = at + (len(slots) + 7) // 8
    for number, slot in enumerate(slots):
        valid = (octets[nulls + number // 8] >> np.uint8(number % 8) & 1) == 0
        whole = bool(valid.all())
        if slot.prefix:
            length = payload.little(at, slot.prefix).astype(np.int64)
            start = at + slot.prefix
        else:
            length = np.full(len(at), slot.width, np.int64)
            start = at
        if not whole:
            length = np.where(valid, length, 0)
            start = np.where(valid, start, at)
        at = start + length
        columns[number].append((start, length, valid))
    return at


def _ordered(
    found: list[list[list[tuple[Ints, Ints, Bools]]]],
    row_starts: list[Ints],
    row_events: list[Ints],
    row_partial: list[Bools],
) -> Walked:
    if not row_starts:
        empty = np.zeros(0, np.int64)
        none = Values(empty, empty, np.zeros(0, np.bool_))
        columns = tuple(tuple(none for _ in image) for image in found)
        return Walked(columns, empty, empty, np.zeros((0, 0), np.bool_))
    starts, events = np.concatenate(row_starts), np.concatenate(row_events)
    order = np.lexsort((starts, events))  # very long events lie behind later ones in the payload
    single = len(row_starts) == 1

    def column(parts: list[tuple[Ints, Ints, Bools]]) -> Values:
        if single:
            return Values(*parts[0]).where(order)
        joined = (np.concatenate([part[n] for part in parts]) for n in range(3))
        return Values(*joined).where(order)

    images = tuple(tuple(column(parts) for parts in image) for image in found)
    return Walked(images, starts[order], events[order], np.concatenate(row_partial)[order])
