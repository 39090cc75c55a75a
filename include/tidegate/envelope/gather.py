"""Arrow arrays out of raw log bytes, gathered by offsets: no Python object per value."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

_Ints = npt.NDArray[np.int64]
_Octets = npt.NDArray[np.uint8]


def texts(octets: _Octets, starts: _Ints, lengths: _Ints, valid: npt.NDArray[np.bool_]) -> pa.Array:
    """The strings that begin at ``starts``, NULL where ``valid`` is false (their length is 0)."""
    found = _taken(octets, starts, lengths)
    if found is None:
        found = _gathered(octets, starts, lengths)
    _, offsets, data = found.buffers()
    missing = int(len(valid) - np.count_nonzero(valid))
    return pa.StringArray.from_buffers(len(lengths), offsets, data, bitmap(valid), missing)


def lists(values: pa.Array, sizes: npt.NDArray[Any], present: npt.NDArray[np.bool_]) -> pa.Array:
    """``values`` cut into lists of ``sizes``; null where ``present`` is false."""
    rows = len(present)
    offsets = np.zeros(rows + 1, dtype=np.int32)
    np.cumsum(sizes, out=offsets[1:])
    type_ = pa.list_(pa.field("element", values.type, nullable=pa.types.is_string(values.type)))
    return pa.Array.from_buffers(
        type_,
        rows,
        [bitmap(present), pa.py_buffer(offsets)],
        null_count=int(rows - np.count_nonzero(present)),
        children=[values],
    )


def bitmap(valid: npt.NDArray[np.bool_]) -> pa.Buffer | None:
    """Arrow's validity bits; none where everything is valid."""
    return None if valid.all() else pa.py_buffer(np.packbits(valid, bitorder="little"))


def _taken(octets: _Octets, starts: _Ints, lengths: _Ints) -> pa.Array | None:
    """The bytes seen as strings, value and gap in turn; Arrow copies the values out of it.

    Four times as fast as indexing byte by byte, but only for values in the bytes' own order.
    """
    edges = np.empty(2 * len(lengths), dtype=np.int32)
    edges[0::2] = starts
    edges[1::2] = starts + lengths
    if not len(edges) or (edges[1:] < edges[:-1]).any():
        return None
    pieces = pa.StringArray.from_buffers(len(edges) - 1, pa.py_buffer(edges), pa.py_buffer(octets))
    return pieces.take(pa.array(np.arange(0, len(edges), 2, dtype=np.int32)))


def _gathered(octets: _Octets, starts: _Ints, lengths: _Ints) -> pa.Array:
    """Values in any order: old values that stand in for ones that were not sent, odd key orders."""
    offsets = np.zeros(len(lengths) + 1, dtype=np.int64)
    np.cumsum(lengths, out=offsets[1:])
    # Source index of byte i of the output = i + (start of its value - where the value lands).
    shift = np.repeat((starts - offsets[:-1]).astype(np.int32), lengths)
    shift += np.arange(int(offsets[-1]), dtype=np.int32)
    return pa.StringArray.from_buffers(
        len(lengths), pa.py_buffer(offsets.astype(np.int32)), pa.py_buffer(octets[shift])
    )
