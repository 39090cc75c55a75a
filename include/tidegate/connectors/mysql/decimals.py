"""Packed decimals as text.

Nine digits stand in four bytes, high byte first; fewer digits in fewer bytes at either end. The
first bit is the sign, turned round; of a negative number every bit is.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tidegate.connectors.mysql.rows import Payload, Values
from tidegate.connectors.mysql.types import ColumnFacts
from tidegate.envelope import gather

_GROUP: Final = 9
_BYTES: Final = (0, 1, 1, 2, 2, 3, 3, 4, 4, 4)


def decimals(payload: Payload, values: Values, facts: ColumnFacts) -> pa.Array:
    """Canonical: no leading zeros but one, exactly ``scale`` digits behind the point."""
    rows, whole, scale = len(values.starts), facts.precision - facts.scale, facts.scale
    negative = payload.octets[values.starts] < 0x80
    digits = _digits(payload, values, negative, whole, scale)
    # sign · at least one whole digit · point · fraction
    ahead = max(whole, 1)
    text = np.full((rows, 1 + ahead + (1 + scale if scale else 0)), ord("0"), np.uint8)
    if whole:
        text[:, 1 : 1 + whole] = digits[:, :whole] + ord("0")
    if scale:
        text[:, 1 + ahead] = ord(".")
        text[:, 2 + ahead :] = digits[:, whole:] + ord("0")
    leading = np.cumprod(text[:, 1:ahead] == ord("0"), axis=1).sum(axis=1)
    # A zero has no sign, whatever the bytes say.
    signed = negative & digits.any(axis=1)
    place = np.arange(rows)
    text[place[signed], leading[signed]] = ord("-")
    begin = leading + np.where(signed, 0, 1)
    starts = place * text.shape[1] + begin
    lengths = np.where(values.valid, text.shape[1] - begin, 0)
    octets = np.ascontiguousarray(text).ravel()
    return gather.texts(octets, starts.astype(np.int64), lengths.astype(np.int64), values.valid)


def _digits(
    payload: Payload,
    values: Values,
    negative: npt.NDArray[np.bool_],
    whole: int,
    scale: int,
) -> npt.NDArray[np.uint8]:
    """(rows × precision) numbers from 0 to 9."""
    found = np.empty((len(values.starts), whole + scale), np.uint8)
    at, first, column = values.starts, True, 0
    for size in _groups(whole, scale):
        width = _BYTES[size]
        group = payload.big(at, width)
        everything = np.uint64((1 << 8 * width) - 1)
        if first:
            group = group ^ np.uint64(1 << (8 * width - 1))
            first = False
        group = np.where(negative, group ^ everything, group)
        for place in range(size - 1, -1, -1):
            found[:, column + place] = group % np.uint64(10)
            group = group // np.uint64(10)
        at, column = at + width, column + size
    return found


def _groups(whole: int, scale: int) -> list[int]:
    sizes = [whole % _GROUP, *[_GROUP] * (whole // _GROUP), *[_GROUP] * (scale // _GROUP)]
    return [size for size in (*sizes, scale % _GROUP) if size]
