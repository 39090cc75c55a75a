"""Rows of pgoutput, thousands at once: walk columns, not values.

A tuple is a column count and per column a kind byte (``n`` null, ``u`` unchanged, ``t`` text), and
for text a length and the bytes. The walk keeps one cursor per row and moves all cursors past column
0, then column 1, …, so Python's work is per column, never per value.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tidegate.envelope import gather, log_rows
from tidegate.errors import FatalError

NULL: Final = ord("n")
UNCHANGED: Final = ord("u")
TEXT: Final = ord("t")
TOO_LARGE: Final = ord("x")
"""Not pgoutput's: a text that is longer than we take."""
PADDING: Final = 16
"""Zero bytes behind the data, so that a cursor past the last column can be read from."""

_Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Payload:
    """Joined messages, readable at any byte offset as bytes or big-endian integers."""

    octets: npt.NDArray[np.uint8]
    int16: npt.NDArray[Any]
    int32: npt.NDArray[Any]
    int64: npt.NDArray[Any]

    @classmethod
    def of(cls, data: bytes) -> Payload:
        padded = data + bytes(PADDING)
        size = len(padded)
        views = [
            np.ndarray(shape=(size - width + 1,), dtype=f">i{width}", buffer=padded, strides=(1,))
            for width in (2, 4, 8)
        ]
        return cls(np.frombuffer(padded, dtype=np.uint8), *views)


@dataclass(frozen=True, slots=True)
class Tuples:
    """Kind, place and length of every value: (rows × columns)."""

    kinds: npt.NDArray[np.uint8]
    starts: _Ints
    lengths: _Ints

    def take(self, slots: list[int]) -> Tuples:
        return Tuples(self.kinds[:, slots], self.starts[:, slots], self.lengths[:, slots])

    def without_larger(self, most: int) -> Tuples:
        """Values of more than ``most`` bytes are not read; that they were there is kept."""
        large = self.lengths > most
        if not large.any():
            return self
        return Tuples(
            np.where(large, np.uint8(TOO_LARGE), self.kinds),
            self.starts,
            np.where(large, 0, self.lengths),
        )

    def filled_from(self, old: Tuples, sent: npt.NDArray[np.bool_]) -> Tuples:
        """Take ``old``'s value where this one was not sent and ``sent`` says that old has it."""
        use = (self.kinds == UNCHANGED) & sent
        if not use.any():
            return self
        return Tuples(
            np.where(use, old.kinds, self.kinds),
            np.where(use, old.starts, self.starts),
            np.where(use, old.lengths, self.lengths),
        )


def walk(payload: Payload, cursors: _Ints, columns: int) -> tuple[Tuples, _Ints]:
    """Read one tuple at each cursor; returns them and the cursors behind them."""
    rows = len(cursors)
    kinds = np.empty((columns, rows), dtype=np.uint8)
    starts = np.empty((columns, rows), dtype=np.int64)
    lengths = np.zeros((columns, rows), dtype=np.int64)
    if rows and (payload.int16[cursors] != columns).any():
        raise FatalError(
            "capture.column_count",
            "a row has another number of columns than its table's description",
            hint="run capture again; if it stays, report this with the server's version",
        )
    at = cursors + 2
    for column in range(columns):
        kind = payload.octets[at]
        has_text = kind == TEXT
        length = np.where(has_text, payload.int32[at + 1], 0)
        kinds[column], starts[column], lengths[column] = kind, at + 5, length
        at = at + 1 + np.where(has_text, 4 + length, 0)
    return Tuples(kinds.T, starts.T, lengths.T), at


def nothing(rows: int, columns: int) -> Tuples:
    """Tuples of NULLs, for rows that have none."""
    shape = (rows, columns)
    return Tuples(
        np.full(shape, NULL, np.uint8), np.zeros(shape, np.int64), np.zeros(shape, np.int64)
    )


def text_lists(payload: Payload, tuples: Tuples, present: npt.NDArray[np.bool_]) -> pa.Array:
    """A list<string> per row, null where ``present`` is false."""
    columns = tuples.kinds.shape[1]
    chosen = tuples if present.all() else _rows(tuples, present)
    values = gather.texts(
        payload.octets, chosen.starts.ravel(), chosen.lengths.ravel(), chosen.kinds.ravel() == TEXT
    )
    return gather.lists(values, np.where(present, columns, 0), present)


def slot_lists(tuples: Tuples) -> pa.Array:
    """The slots that were not sent, null for rows that are whole. A slot whose value was too large
    is told apart by its sign (``envelope.log_rows``)."""
    large = tuples.kinds == TOO_LARGE
    absent = (tuples.kinds == UNCHANGED) | large
    rows, slots = np.nonzero(absent)
    sizes = np.bincount(rows, minlength=len(absent))
    named = np.where(large[rows, slots], log_rows.too_large(slots), slots)
    return gather.lists(pa.array(named.astype(np.int32)), sizes, sizes > 0)


def _rows(tuples: Tuples, which: npt.NDArray[np.bool_]) -> Tuples:
    return Tuples(tuples.kinds[which], tuples.starts[which], tuples.lengths[which])
