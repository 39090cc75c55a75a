"""The space that keys hash into: how a part of a table is named without naming a value.

A key's place is the first 16 bits of the SHA-256 of its text. Source and lake compute it alike, so
that both can be asked for the same part of a table, and statements carry no row value (I9).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

PLACES: Final = 1 << 16
BUCKETS: Final = 1024
"""What is counted as proven or not: fine enough for samples of a tenth of a percent."""
BUCKET_PLACES: Final = PLACES // BUCKETS
SEPARATOR: Final = 31
"""ASCII unit separator between the columns of a key. Keys that hold it may share a place; places
need not be unique."""

Arcs = tuple[tuple[int, int], ...]
"""Half-open ranges of places, in order, none touching the next."""


def bucket_arcs(buckets: Iterable[int]) -> Arcs:
    """The places of ``buckets``."""
    return _merged((b * BUCKET_PLACES, (b + 1) * BUCKET_PLACES) for b in buckets)


def place_arcs(places: Iterable[int]) -> Arcs:
    """Single places as arcs."""
    return _merged((place, place + 1) for place in places)


def _merged(ranges: Iterable[tuple[int, int]]) -> Arcs:
    found: list[tuple[int, int]] = []
    for lower, upper in sorted(ranges):
        if found and lower <= found[-1][1]:
            found[-1] = (found[-1][0], max(upper, found[-1][1]))
        else:
            found.append((lower, upper))
    return tuple(found)
