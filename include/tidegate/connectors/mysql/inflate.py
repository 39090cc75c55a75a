"""Compressed events: MySQL's whole transactions (zstd), MariaDB's rows and statements (zlib).

What is inflated is appended to the parcel's bytes, so that rows of compressed and plain events are
decoded together; the events themselves stay where they are in the log.
"""

from __future__ import annotations

import zlib
from typing import Final

import pyarrow as pa

from tidegate.connectors.mysql import events
from tidegate.connectors.mysql.events import HEADER
from tidegate.connectors.mysql.wire import Parcel
from tidegate.errors import FatalError

_COMPRESSED: Final = frozenset({events.PAYLOAD, *events.MARIADB_ROWS})
_ZSTD, _NONE = 0, 255
_SIZE, _ALGORITHM, _INFLATED_SIZE, _END = 1, 2, 3, 0

Inner = dict[int, list[tuple[int, int]]]
"""By the start of a compressed event: where the events in it begin and end."""


def inflate(parcel: Parcel) -> tuple[bytes, Inner]:
    """The parcel's bytes with everything in it inflated, and where. A checksum behind an event is
    no part of what is compressed, and not read."""
    data = parcel.data
    found = [(start, end) for start, end in parcel.events if data[start + 4] in _COMPRESSED]
    if not found:
        return data, {}
    parts, size = [data], len(data)
    inner: Inner = {}
    for start, end in found:
        if data[start + 4] == events.PAYLOAD:
            plain = _payload(data, start)
            inner[start] = _cut(plain, size)
        else:
            plain = _rows(data, start, end)
            inner[start] = [(size, size + len(plain))]
        parts.append(plain)
        size += len(plain)
    return b"".join(parts), inner


def text(packed: bytes) -> bytes:
    """A compressed statement of MariaDB."""
    return _unzip(packed)


def _payload(data: bytes, start: int) -> bytes:
    at, fields = start + HEADER, {_ALGORITHM: _ZSTD}
    while True:
        name, at = _number(data, at)
        if name == _END:
            break
        length, at = _number(data, at)
        fields[name], _ = _number(data, at)
        at += length
    packed = data[at : at + fields[_SIZE]]
    if fields[_ALGORITHM] == _NONE:
        return packed
    if fields[_ALGORITHM] != _ZSTD:
        raise _unknown()
    plain: bytes = pa.Codec("zstd").decompress(packed, fields[_INFLATED_SIZE], asbytes=True)
    return plain


def _cut(plain: bytes, base: int) -> list[tuple[int, int]]:
    found, at = [], 0
    while at < len(plain):
        size = int.from_bytes(plain[at + 9 : at + 13], "little")
        found.append((base + at, base + at + size))
        at += size
    return found


def _rows(data: bytes, start: int, end: int) -> bytes:
    """The same event as it would be without compression."""
    kind = events.MARIADB_ROWS[data[start + 4]]
    at = events.columns_at(data, start, kind)
    count, first = _number(data, at)
    bitmaps = (count + 7) // 8 * (2 if kind in events.UPDATE else 1)
    rows = first + bitmaps
    head = bytearray(data[start:rows])
    head[4] = kind
    return bytes(head) + _unzip(data[rows:end])


def _unzip(packed: bytes) -> bytes:
    head = packed[0]
    if not head & 0x80 or head & 0x70:
        raise _unknown()
    return zlib.decompress(packed[1 + (head & 0x0F) :])


def _number(data: bytes, at: int) -> tuple[int, int]:
    """A number of MySQL's packed form, and where the next thing begins."""
    first = data[at]
    if first < 251:
        return first, at + 1
    width = {252: 2, 253: 3, 254: 8}[first]
    return int.from_bytes(data[at + 1 : at + 1 + width], "little"), at + 1 + width


def _unknown() -> FatalError:
    return FatalError(
        "capture.log_form",
        "the log holds events that are compressed in a way that is not known",
        hint="turn off binlog_transaction_compression or log_bin_compress, then `tidegate recover`;"
        " report this with the server's version",
    )
