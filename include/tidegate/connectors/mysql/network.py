"""MariaDB's uuid, inet4 and inet6, which the log has as plain bytes."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Final

import pyarrow as pa

from tidegate.connectors.mysql.rows import Payload, Values
from tidegate.connectors.mysql.types import BYTES_OF_TEXT, ColumnFacts

_MAPPED: Final = bytes(10) + b"\xff\xff"


def addresses(payload: Payload, values: Values, facts: ColumnFacts) -> pa.Array:
    """The server's own spelling. Zeros at the end are not stored."""
    size, write = BYTES_OF_TEXT[facts.base], _WRITERS[facts.base]
    octets = payload.octets
    rows = zip(values.starts.tolist(), values.lengths.tolist(), values.valid.tolist(), strict=True)
    texts = [
        write(octets[start : start + length].tobytes().ljust(size, b"\0")) if valid else None
        for start, length, valid in rows
    ]
    return pa.array(texts, pa.string())


def _uuid(value: bytes) -> str:
    digits = value.hex()
    return "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))


def _inet4(value: bytes) -> str:
    return ".".join(map(str, value))


def _inet6(value: bytes) -> str:
    """The longest run of zeros is left out, and what holds an IPv4 address shows it."""
    if value.startswith(_MAPPED):
        return f"::ffff:{_inet4(value[12:])}"
    if not any(value[:12]) and any(value[12:14]):
        return f"::{_inet4(value[12:])}"
    words = [int.from_bytes(value[at : at + 2], "big") for at in range(0, 16, 2)]
    start = at = length = 0
    for zero, run in itertools.groupby(words, lambda word: word == 0):
        size = len(list(run))
        if zero and size > length:
            start, length = at, size
        at += size
    if not length:
        return ":".join(f"{word:x}" for word in words)
    head = ":".join(f"{word:x}" for word in words[:start])
    tail = ":".join(f"{word:x}" for word in words[start + length :])
    return f"{head}::{tail}"


_WRITERS: Final[dict[str, Callable[[bytes], str]]] = {
    "uuid": _uuid,
    "inet4": _inet4,
    "inet6": _inet6,
}
