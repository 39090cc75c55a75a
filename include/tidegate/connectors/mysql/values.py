"""Column values of the binary log as text, a whole column at once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tidegate.connectors.mysql import compressed, json_diffs, json_values
from tidegate.connectors.mysql.charsets import BINARY, UTF8, Charsets
from tidegate.connectors.mysql.decimals import decimals
from tidegate.connectors.mysql.network import addresses
from tidegate.connectors.mysql.rows import Payload, Values
from tidegate.connectors.mysql.table_map import Slot
from tidegate.connectors.mysql.temporal import dates, datetimes, times, timestamps
from tidegate.connectors.mysql.types import BLOBS, BYTES_OF_TEXT, INTEGERS, TEXTS, ColumnFacts
from tidegate.envelope import gather

_HEX: Final = np.frombuffer("".join(f"{b:02x}" for b in range(256)).encode(), dtype="<u2")
_MARK: Final = np.frombuffer(b"\\x", dtype=np.uint8)
_YEAR_BASE: Final = 1900

Printer = Callable[[Payload, Values, ColumnFacts], pa.Array]


def texts(payload: Payload, values: Values, slot: Slot, charsets: Charsets) -> pa.Array:
    """A string array, NULL where there is no value."""
    facts = slot.facts
    if slot.compressed:
        return _inflated(payload, values, facts, charsets)
    printer = _PRINTERS.get(facts.base)
    if printer is not None:
        return printer(payload, values, facts)
    raw = gather.texts(payload.octets, values.starts, values.lengths, values.valid)
    return charsets.to_utf8(raw, facts.charset or UTF8)


def sizes(payload: Payload, values: Values, slot: Slot) -> npt.NDArray[np.int64]:
    """Bytes of each value, unpacked."""
    return compressed.sizes(payload, values) if slot.compressed else values.lengths


def document(payload: Payload, values: Values, row: int) -> json_values.Node | None:
    """The JSON document of one row."""
    if not values.valid[row]:
        return None
    start = int(values.starts[row])
    stored = payload.octets[start : start + int(values.lengths[row])].tobytes()
    return json_values.parse(stored)


def patched(
    payload: Payload, before: Values, diffs: Values, texts: pa.Array, rows: list[int]
) -> pa.Array:
    """``texts`` with the documents of ``rows`` made from the old ones and how they changed."""
    made = texts.to_pylist()
    for row in rows:
        old = document(payload, before, row)
        start = int(diffs.starts[row])
        change = payload.octets[start : start + int(diffs.lengths[row])].tobytes()
        if old is not None:
            made[row] = json_values.text(json_diffs.applied(old, change))
    return pa.array(made, pa.string())


def _inflated(payload: Payload, values: Values, facts: ColumnFacts, charsets: Charsets) -> pa.Array:
    unpacked = compressed.inflated(payload, values)
    if facts.charset == BINARY:
        return pa.array([None if v is None else f"\\x{v.hex()}" for v in unpacked], pa.string())
    return pa.array(charsets.decoded(unpacked, facts.charset or UTF8), pa.string())


def _documents(payload: Payload, values: Values, _facts: ColumnFacts) -> pa.Array:
    found = (document(payload, values, row) for row in range(len(values.starts)))
    return pa.array([None if d is None else json_values.text(d) for d in found], pa.string())


def _numbers(numbers: npt.NDArray[np.generic], valid: npt.NDArray[np.bool_]) -> pa.Array:
    return pa.array(numbers, mask=None if valid.all() else ~valid).cast(pa.string())


def _integers(payload: Payload, values: Values, facts: ColumnFacts) -> pa.Array:
    width = INTEGERS[facts.base]
    numbers = payload.little(values.starts, width)
    if facts.unsigned:
        return _numbers(numbers, values.valid)
    spare = np.int64(64 - 8 * width)  # moved to the top and back, the sign spreads
    signed = (numbers << spare.astype(np.uint64)).astype(np.int64) >> spare
    return _numbers(signed, values.valid)


def _floats(payload: Payload, values: Values, facts: ColumnFacts) -> pa.Array:
    wide = facts.base == "double"
    bits = payload.u64[values.starts] if wide else payload.u32[values.starts]
    octets = np.ascontiguousarray(bits)
    return _numbers(octets.view("<f8" if wide else "<f4"), values.valid)


def _bits(payload: Payload, values: Values, facts: ColumnFacts) -> pa.Array:
    numbers = payload.big(values.starts, (facts.precision + 7) // 8)
    if facts.precision > 1:
        return _numbers(numbers, values.valid)
    letters = pa.array(["f", "t"])
    return letters.take(_places(numbers & np.uint64(1), values.valid))


def _years(payload: Payload, values: Values, _facts: ColumnFacts) -> pa.Array:
    stored = payload.octets[values.starts].astype(np.int64)
    return _numbers(np.where(stored == 0, 0, stored + _YEAR_BASE), values.valid)


def _enums(payload: Payload, values: Values, facts: ColumnFacts) -> pa.Array:
    width = 1 if len(facts.labels) < 256 else 2
    chosen = payload.little(values.starts, width)
    # Number 0 is what an invalid value was replaced by: the empty string.
    return pa.array(["", *facts.labels], pa.string()).take(_places(chosen, values.valid))


def _sets(payload: Payload, values: Values, facts: ColumnFacts) -> pa.Array:
    width = {1: 1, 2: 2, 3: 3, 4: 4}.get((len(facts.labels) + 7) // 8, 8)
    masks, which = np.unique(payload.little(values.starts, width), return_inverse=True)
    printed = [
        ",".join(label for bit, label in enumerate(facts.labels) if int(mask) >> bit & 1)
        for mask in masks
    ]
    return pa.array(printed, pa.string()).take(_places(which.astype(np.uint64), values.valid))


def _places(chosen: npt.NDArray[np.uint64], valid: npt.NDArray[np.bool_]) -> pa.Array:
    places = np.where(valid, chosen, np.uint64(0)).astype(np.int64)
    return pa.array(places, mask=None if valid.all() else ~valid)


def _octets(payload: Payload, values: Values, facts: ColumnFacts) -> pa.Array:
    """``\\x`` and hex digits. BINARY(n) is stored without its trailing zeros: they come back."""
    lengths, valid = values.lengths, values.valid
    full = np.where(valid, facts.length, 0) if facts.base == "binary" else lengths
    sizes = np.where(valid, 2 + 2 * full, 0)
    ends = np.cumsum(sizes)
    begins = ends - sizes
    out = np.full(int(ends[-1]) if len(ends) else 0, ord("0"), dtype=np.uint8)
    marked = begins[valid]
    out[marked], out[marked + 1] = _MARK[0], _MARK[1]
    before = np.cumsum(lengths) - lengths
    total = int(lengths.sum())
    within = np.arange(total) - np.repeat(before, lengths)
    digits = _HEX[payload.octets[np.repeat(values.starts, lengths) + within]].view(np.uint8)
    at = np.repeat(begins + 2, lengths) + 2 * within
    out[at], out[at + 1] = digits[0::2], digits[1::2]
    offsets = np.zeros(len(sizes) + 1, np.int32)
    offsets[1:] = ends
    missing = int(len(valid) - np.count_nonzero(valid))
    return pa.StringArray.from_buffers(
        len(sizes), pa.py_buffer(offsets), pa.py_buffer(out), gather.bitmap(valid), missing
    )


_PRINTERS: Final[dict[str, Printer]] = {
    **dict.fromkeys(INTEGERS, _integers),
    **dict.fromkeys(("binary", "varbinary", "geometry", *BLOBS), _octets),
    **dict.fromkeys(BYTES_OF_TEXT, addresses),
    "json": _documents,
    "float": _floats,
    "double": _floats,
    "decimal": decimals,
    "bit": _bits,
    "year": _years,
    "enum": _enums,
    "set": _sets,
    "date": dates,
    "time": times,
    "datetime": datetimes,
    "timestamp": timestamps,
}
assert not _PRINTERS.keys() & {"char", "varchar", *TEXTS}  # those are their own text
