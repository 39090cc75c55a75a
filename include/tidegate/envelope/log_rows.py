"""Rows of the change log as Arrow: the schema, and the columns made from positions.

Everything here works on whole columns: a capture run makes 100,000 of these rows a second.
"""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

SHARD: Final = "0"
"""The only shard of a source with one log, as PostgreSQL has."""

_TEXTS = pa.list_(pa.field("element", pa.string(), nullable=True))
_SLOTS = pa.list_(pa.field("element", pa.int32(), nullable=False))
_INSTANT = pa.timestamp("us", tz="UTC")

ARROW_SCHEMA: Final = pa.schema(
    [
        pa.field("epoch", pa.string(), nullable=False),
        pa.field("shard", pa.string(), nullable=False),
        pa.field("position", pa.string(), nullable=False),  # the place, without the epoch
        pa.field("tx_id", pa.int64(), nullable=True),
        pa.field("commit_ts", _INSTANT, nullable=True),
        pa.field("captured_at", _INSTANT, nullable=False),
        pa.field("table", pa.string(), nullable=False),  # str(TableId)
        pa.field("op", pa.string(), nullable=False),  # envelope.change.Op
        pa.field("schema_id", pa.string(), nullable=False),
        pa.field("key", _TEXTS, nullable=True),  # identity of the row addressed: the OLD key
        pa.field("before", _TEXTS, nullable=True),  # whole old row, if the source sent it
        pa.field("after", _TEXTS, nullable=True),  # new row, one slot per column of schema_id
        # slots of `after` that were not sent; too_large(slot): left out for their size
        pa.field("unchanged", _SLOTS, nullable=True),
        pa.field("event_id", pa.string(), nullable=False),
    ]
)

PLACE_WIDTH: Final = 27  # 16 hex, a dot, 10 hex: envelope.position.lsn_place
UUID_WIDTH: Final = 36

_U64 = npt.NDArray[np.uint64]
_HEX_UPPER = np.frombuffer("".join(f"{b:02X}" for b in range(256)).encode(), dtype="<u2")
_HEX_LOWER = np.frombuffer("".join(f"{b:02x}" for b in range(256)).encode(), dtype="<u2")
_GROUPS = ((0, 0, 4), (9, 4, 6), (14, 6, 8), (19, 8, 10), (24, 10, 16))  # text at, bytes from–to


def too_large(slot: Any) -> Any:
    """How ``unchanged`` names a slot whose value was too large to be taken; its own inverse."""
    return -1 - slot


def empty() -> pa.RecordBatch:
    """No rows."""
    return pa.RecordBatch.from_pylist([], schema=ARROW_SCHEMA)


def constant(value: str, rows: int) -> pa.Array:
    """One text in every row."""
    return pa.repeat(pa.scalar(value, pa.string()), rows)


def instants(micros: npt.NDArray[np.int64]) -> pa.Array:
    """Microseconds since 1970 as instants."""
    return pa.array(micros, pa.int64()).cast(_INSTANT)


def now(rows: int) -> pa.Array:
    """The same present instant in every row."""
    return pa.repeat(pa.scalar(datetime.now(UTC), _INSTANT), rows)


def places(lsn: _U64, index: _U64) -> pa.Array:
    """``lsn_place`` of every pair, as one Arrow array."""
    rows = len(lsn)
    text = np.empty((rows, PLACE_WIDTH), dtype=np.uint8)
    text[:, :16] = _hex(lsn, _HEX_UPPER)
    text[:, 16] = ord(".")
    text[:, 17:] = _hex(index, _HEX_UPPER)[:, 6:]
    return fixed_width_strings(text)


def event_ids(epoch: str, lsn: _U64, index: _U64) -> pa.Array:
    """The UUID (version 8) of (epoch, place): the same on every re-read of the same change."""
    seed = hashlib.sha256(epoch.encode()).digest()
    one, two = (np.uint64(int.from_bytes(seed[at : at + 8], "big")) for at in (0, 8))
    with np.errstate(over="ignore"):  # arithmetic modulo 2**64 is meant
        high = _mix(_mix(lsn ^ one) + index)
        low = _mix(_mix(index ^ two) ^ lsn) ^ high
    high = (high & np.uint64(0xFFFFFFFFFFFF0FFF)) | np.uint64(0x8000)  # version 8
    low = (low & np.uint64(0x3FFFFFFFFFFFFFFF)) | np.uint64(0x8000000000000000)  # variant
    digits = np.concatenate([_hex(high, _HEX_LOWER), _hex(low, _HEX_LOWER)], axis=1)
    text = np.full((len(lsn), UUID_WIDTH), ord("-"), dtype=np.uint8)
    for at, first, last in _GROUPS:
        text[:, at : at + 2 * (last - first)] = digits[:, 2 * first : 2 * last]
    return fixed_width_strings(text)


def fixed_width_strings(text: npt.NDArray[np.uint8]) -> pa.Array:
    """A (rows × width) matrix of ASCII codes as an Arrow string array, without Python strings."""
    rows, width = text.shape
    offsets = np.arange(0, (rows + 1) * width, max(width, 1), dtype=np.int32)[: rows + 1]
    return pa.StringArray.from_buffers(rows, pa.py_buffer(offsets), pa.py_buffer(text.tobytes()))


def _hex(values: _U64, digits: npt.NDArray[Any]) -> npt.NDArray[np.uint8]:
    """16 hex digits per value: (rows × 16) ASCII codes."""
    octets = np.ascontiguousarray(values.astype(">u8")).view(np.uint8).reshape(-1, 8)
    return np.ascontiguousarray(digits[octets]).view(np.uint8).reshape(-1, 16)


def _mix(value: _U64) -> _U64:
    """The finaliser of splitmix64: a bijection on 64 bits in which every bit matters."""
    value = (value ^ (value >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    value = (value ^ (value >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return value ^ (value >> np.uint64(31))
