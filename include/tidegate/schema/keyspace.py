"""Buckets of keys: how a part of a table is named without naming a value (I9).

Source and lake compute a key's bucket alike, so that both can be asked for the same part of a
table. Keys that begin with a whole number fall into *stripes* of it, so that a part is a few ranges
of the source's primary key, and only they are read. All others are hashed: a key's *place* is the
first 16 bits of the SHA-256 of its text, and to find the keys of a place every key is looked at.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

PLACES: Final = 1 << 16
BUCKETS: Final = 1024
"""What is counted as proven or not: fine enough for samples of a tenth of a percent."""
BUCKET_PLACES: Final = PLACES // BUCKETS
SEPARATOR: Final = 31
"""ASCII unit separator between the columns of a key. Keys that hold it may share a place; places
need not be unique."""

STRETCH: Final = 64
"""Single keys that begin with a whole number are looked for in stretches of so many numbers: few
enough for an index, and none of them is said to be a row's."""
MOST_ROUNDS: Final = 16
"""How often the numbers of a table may go through all buckets before its stripes are made wider:
each time is a range of its own for every part of the table."""
_LARGEST: Final = 1 << 63

Arcs = tuple[tuple[int, int], ...]
"""Half-open ranges of places, in order, none touching the next."""


Ranges = tuple[tuple[int, int], ...]
"""Numbers from the first to the second of each pair, both included."""


@dataclass(frozen=True, slots=True)
class Striping:
    """Stripes of ``width`` numbers, dealt out to the buckets in turn; the source's keys begin with
    numbers from ``low`` to ``high``."""

    column: str
    width: int
    low: int
    high: int

    @classmethod
    def over(cls, column: str, low: int, high: int, width: int | None = None) -> Striping | None:
        """With stripes of ``width`` if that (still) suits the numbers; None if they lie so far
        apart that nothing does."""
        span = high - low + 1
        if width is None or span > width * BUCKETS * MOST_ROUNDS:
            width = max(1, -(-span // BUCKETS))
        return cls(column, width, low, high) if width * BUCKETS < _LARGEST else None

    def ranges(self, buckets: Iterable[int]) -> Ranges:
        """The numbers of ``buckets`` in every round from ``low`` to ``high``: edges of stripes, so
        that no number of a row is said."""
        found: list[tuple[int, int]] = []
        for base, (first, last) in itertools.product(self._rounds(), _runs(sorted(buckets))):
            start = (base + first) * self.width
            end = (base + last + 1) * self.width - 1
            if found and found[-1][1] + 1 == start:
                start = found.pop()[0]
            found.append((start, end))
        return tuple(_clipped(ends) for ends in found)

    @property
    def ends(self) -> tuple[int, int]:
        """Between these lie all ranges of all buckets."""
        first, *_, last = *self._rounds(), *self._rounds()
        return _clipped((first * self.width, (last + BUCKETS) * self.width - 1))

    def _rounds(self) -> Iterator[int]:
        """The first stripe of every time through the buckets."""
        stripes = self.low // self.width, self.high // self.width
        for number in range(stripes[0] // BUCKETS, stripes[1] // BUCKETS + 1):
            yield number * BUCKETS


def _clipped(ends: tuple[int, int]) -> tuple[int, int]:
    """As far as 64 bits go."""
    return max(ends[0], -_LARGEST), min(ends[1], _LARGEST - 1)


def _runs(numbers: list[int]) -> list[tuple[int, int]]:
    """First and last of neighbours."""
    groups = itertools.groupby(enumerate(numbers), key=lambda entry: entry[1] - entry[0])
    runs = ([number for _, number in own] for _, own in groups)
    return [(own[0], own[-1]) for own in runs]


def bucket_arcs(buckets: Iterable[int]) -> Arcs:
    """The places of ``buckets``."""
    return _merged((b * BUCKET_PLACES, (b + 1) * BUCKET_PLACES) for b in buckets)


def place_arcs(places: Iterable[int]) -> Arcs:
    """Single places as arcs."""
    return _merged((place, place + 1) for place in places)


def stretches(starts: Iterable[int]) -> Ranges:
    """Stretches of :data:`STRETCH` numbers that begin at ``starts``, neighbours as one."""
    arcs = _merged((start, start + STRETCH) for start in starts)
    return tuple((lower, upper - 1) for lower, upper in arcs)


def _merged(ranges: Iterable[tuple[int, int]]) -> Arcs:
    found: list[tuple[int, int]] = []
    for lower, upper in sorted(ranges):
        if found and lower <= found[-1][1]:
            found[-1] = (found[-1][0], max(upper, found[-1][1]))
        else:
            found.append((lower, upper))
    return tuple(found)
