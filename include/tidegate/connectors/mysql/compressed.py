"""MariaDB's compressed columns: a header, then the value by zlib or as it is."""

from __future__ import annotations

import zlib
from typing import Final

import numpy as np

from tidegate.connectors.mysql.rows import Ints, Payload, Values
from tidegate.errors import FatalError

_ZLIB, _RAW, _SIZE_BYTES = 0x80, 0x08, 0x07
_STORED: Final = 0


def sizes(payload: Payload, values: Values) -> Ints:
    """Bytes of every value as it will be."""
    octets, found = payload.octets, values.lengths.copy()
    for row in np.nonzero(values.valid & (values.lengths > 0))[0].tolist():
        start = int(values.starts[row])
        header = int(octets[start])
        width = header & _SIZE_BYTES
        if header & _ZLIB:
            found[row] = int.from_bytes(octets[start + 1 : start + 1 + width].tobytes(), "big")
        else:
            found[row] -= 1
    return found


def inflated(payload: Payload, values: Values) -> list[bytes | None]:
    """Every value; None where there is none."""
    rows = zip(values.starts.tolist(), values.lengths.tolist(), values.valid.tolist(), strict=True)
    return [
        _inflated(payload.octets[start : start + length].tobytes()) if valid else None
        for start, length, valid in rows
    ]


def _inflated(stored: bytes) -> bytes:
    if not stored:
        return b""
    header = stored[0]
    if header & 0xF0 == _ZLIB:
        window = -zlib.MAX_WBITS if header & _RAW else zlib.MAX_WBITS
        return zlib.decompress(stored[1 + (header & _SIZE_BYTES) :], window)
    if header == _STORED:
        return stored[1:]
    raise FatalError(
        "capture.column_compression",
        f"a compressed column holds a value by method {header >> 4}, which is not known",
        hint="report this with the server's version",
    )
