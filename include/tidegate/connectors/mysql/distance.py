"""Bytes of binary log between two positions: places name files, whose sizes the server knows."""

from __future__ import annotations

from typing import Final

from tidegate.connectors.source_status import SourceStatus
from tidegate.envelope.position import Position

FIRST_OFFSET: Final = 4
"""Behind a file's magic number."""
OFFSET_BITS: Final = 32
_OFFSET: Final = (1 << OFFSET_BITS) - 1


def distance(low: Position, high: Position, seen: SourceStatus | None = None) -> int | None:
    """Implements ``Distance``. Across files only with their sizes, and as long as they are there:
    numbers of two files say nothing about bytes."""
    if low.epoch != high.epoch:
        return None
    if high <= low:
        return 0
    first, last = low.lsn >> OFFSET_BITS, high.lsn >> OFFSET_BITS
    between = (high.lsn & _OFFSET) - (low.lsn & _OFFSET)
    sizes = seen.parts if seen is not None else {}
    for number in range(first, last):
        if number not in sizes:  # another server's, or expired
            return None
        between += sizes[number] - FIRST_OFFSET
    return max(0, between)
