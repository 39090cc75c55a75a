"""Dates and times of the binary log as text, zero and partial ones included."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tidegate.connectors.mysql.rows import Payload, Values
from tidegate.connectors.mysql.types import ColumnFacts
from tidegate.envelope import gather, log_rows

_U = npt.NDArray[np.uint64]
_DIGITS: Final = tuple(10**place for place in range(8))
_SECONDS_A_DAY: Final = 86_400
_TIME_ZERO: Final = 0x800000


def dates(payload: Payload, values: Values, _facts: ColumnFacts) -> pa.Array:
    stored = payload.little(values.starts, 3)
    parts: list[tuple[_U, int] | str] = [
        (stored >> _u(9), 4),
        "-",
        (stored >> _u(5) & _u(15), 2),
        "-",
        (stored & _u(31), 2),
    ]
    return _masked(_fixed(parts, len(stored)), values)


def datetimes(payload: Payload, values: Values, facts: ColumnFacts) -> pa.Array:
    stored = payload.big(values.starts, 5) & _u(0x7FFFFFFFFF)
    months, rest = stored >> _u(22), stored & _u(0x3FFFFF)
    parts: list[tuple[_U, int] | str] = [
        (months // _u(13), 4),
        "-",
        (months % _u(13), 2),
        "-",
        (rest >> _u(17), 2),
        " ",
        (rest >> _u(12) & _u(31), 2),
        ":",
        (rest >> _u(6) & _u(63), 2),
        ":",
        (rest & _u(63), 2),
    ]
    parts += _fraction(payload, values, 5, facts.precision)
    return _masked(_fixed(parts, len(stored)), values)


def timestamps(payload: Payload, values: Values, facts: ColumnFacts) -> pa.Array:
    """In UTC. Second 0 without a fraction is the zero date: 1970-01-01 00:00:00 itself cannot be
    stored."""
    seconds = payload.big(values.starts, 4).astype(np.int64)
    days = (seconds // _SECONDS_A_DAY).astype("M8[D]")
    years, months = days.astype("M8[Y]"), days.astype("M8[M]")
    clock = (seconds % _SECONDS_A_DAY).astype(np.uint64)
    zero = (seconds == 0) & (payload.big(values.starts + 4, (facts.precision + 1) // 2) == 0)

    def calendar(number: npt.NDArray[np.int64]) -> _U:
        return np.where(zero, 0, number).astype(np.uint64)

    parts: list[tuple[_U, int] | str] = [
        (calendar(years.astype(np.int64) + 1970), 4),
        "-",
        (calendar((months - years.astype("M8[M]")).astype(np.int64) + 1), 2),
        "-",
        (calendar((days - months.astype("M8[D]")).astype(np.int64) + 1), 2),
        " ",
        (clock // _u(3600), 2),
        ":",
        (clock // _u(60) % _u(60), 2),
        ":",
        (clock % _u(60), 2),
    ]
    parts += _fraction(payload, values, 4, facts.precision)
    return _masked(_fixed([*parts, "+00"], len(seconds)), values)


def times(payload: Payload, values: Values, facts: ColumnFacts) -> pa.Array:
    """From -838:59:59.999999 to 838:59:59.999999; negative ones count down in their fraction."""
    fraction_bytes = (facts.precision + 1) // 2
    bits = 8 * fraction_bytes
    whole = payload.big(values.starts, 3 + fraction_bytes).astype(np.int64)
    packed = whole - (_TIME_ZERO << bits)
    negative = packed < 0
    packed = np.abs(packed)
    clock = (packed >> bits).astype(np.uint64)
    fraction = (packed & ((1 << bits) - 1)).astype(np.uint64)
    hours = clock >> _u(12) & _u(1023)
    parts: list[tuple[_U, int] | str] = [
        "-",
        (hours, 3),
        ":",
        (clock >> _u(6) & _u(63), 2),
        ":",
        (clock & _u(63), 2),
    ]
    parts += _printed_fraction(fraction, facts.precision)
    text = _fixed(parts, len(clock))
    # Two digits of hours at least, and the sign right before them.
    short = hours < 100
    text[short & negative, 1] = ord("-")
    begin = np.where(short, 2, 1) - negative
    starts = np.arange(len(text)) * text.shape[1] + begin
    lengths = np.where(values.valid, text.shape[1] - begin, 0)
    octets = np.ascontiguousarray(text).ravel()
    return gather.texts(octets, starts.astype(np.int64), lengths.astype(np.int64), values.valid)


def _fraction(
    payload: Payload, values: Values, behind: int, digits: int
) -> list[tuple[_U, int] | str]:
    fraction = payload.big(values.starts + behind, (digits + 1) // 2)
    return _printed_fraction(fraction, digits)


def _printed_fraction(fraction: _U, digits: int) -> list[tuple[_U, int] | str]:
    if not digits:
        return []
    # Stored with an even number of digits.
    return [".", (fraction // _u(10) if digits % 2 else fraction, digits)]


def _fixed(parts: Sequence[tuple[_U, int] | str], rows: int) -> npt.NDArray[np.uint8]:
    """Numbers of given widths and constant text, as a matrix of ASCII codes."""
    columns: list[npt.NDArray[np.uint8]] = []
    for part in parts:
        if isinstance(part, str):
            columns += [np.full(rows, ord(letter), np.uint8) for letter in part]
            continue
        number, width = part
        for place in range(width - 1, -1, -1):
            columns.append((number // _u(_DIGITS[place]) % _u(10) + _u(48)).astype(np.uint8))
    return np.stack(columns, axis=1) if rows else np.zeros((0, len(columns)), np.uint8)


def _masked(text: npt.NDArray[np.uint8], values: Values) -> pa.Array:
    made = log_rows.fixed_width_strings(text)
    if values.valid.all():
        return made
    _, offsets, data = made.buffers()
    missing = int(len(values.valid) - np.count_nonzero(values.valid))
    bits = gather.bitmap(values.valid)
    return pa.StringArray.from_buffers(len(made), offsets, data, bits, missing)


def _u(number: int) -> np.uint64:
    return np.uint64(number)
