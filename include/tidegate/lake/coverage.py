"""Which part of a table was compared with its source, and at which position.

Keys fall into buckets (``schema.keyspace``). A comparison of all or some buckets proves those in
which nothing differs, and withdraws what was known of those in which something does. Buckets with
rows that dead letters keep back are proven by nothing, and take their turn all the same.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, NamedTuple

from tidegate.envelope.position import Position
from tidegate.schema.keyspace import BUCKETS


class Seen(NamedTuple):
    """Where and when a bucket was found equal."""

    turn: int
    """Number of the comparison: what is older is not left to a clock."""
    position: str
    at: datetime


@dataclass(frozen=True, slots=True)
class Coverage:
    """What is proven of one table."""

    proven: Mapping[int, Seen] = field(default_factory=dict)
    differing: frozenset[int] = frozenset()
    """Buckets in which the last comparison found a difference."""
    left_out: Mapping[int, int] = field(default_factory=dict)
    """Buckets with rows that were not compared, and when they had their turn."""
    width: int | None = None
    """Of the stripes that buckets are made of; None: keys are hashed."""

    @property
    def percent(self) -> float:
        return round(100.0 * len(self.proven) / BUCKETS, 1)

    @property
    def oldest(self) -> Seen | None:
        """Every proven bucket was found equal here or later."""
        return min(self.proven.values(), default=None)

    @property
    def newest(self) -> Seen | None:
        return max(self.proven.values(), default=None)

    @property
    def runs(self) -> int:
        """Comparisons that the coverage is made of."""
        return len(set(self.proven.values()))

    def under(self, width: int | None) -> Coverage:
        """The same in buckets of another kind: only what covers all keys can be told in them."""
        if width == self.width:
            return self
        oldest = self.oldest
        if oldest is None or len(self.proven) < BUCKETS:
            return Coverage(width=width)
        return Coverage(dict.fromkeys(range(BUCKETS), oldest), width=width)

    def next(self, share: float) -> tuple[int, ...]:
        """The buckets a comparison of ``share`` of the table takes: those never proven first, then
        those whose proof is the oldest. No clock and no chance: 1/share runs cover everything."""
        count = min(BUCKETS, max(1, math.ceil(share * BUCKETS)))
        order = sorted(range(BUCKETS), key=self._age)
        return tuple(sorted(order[:count]))

    def after(
        self,
        compared: Collection[int],
        differing: Collection[int],
        position: Position,
        at: datetime,
        left_out: Collection[int] = (),
    ) -> Coverage:
        """What is known after a comparison of the buckets ``compared``, those in ``left_out``
        without some of their rows."""
        newest = self.newest
        turn = 1 + max(newest.turn if newest else 0, *self.left_out.values(), 0)
        seen = Seen(turn, str(position), at)
        open_ = {*differing, *left_out}
        proven = {b: s for b, s in self.proven.items() if b not in compared and b not in left_out}
        proven |= {bucket: seen for bucket in compared if bucket not in open_}
        still = (self.differing - set(compared)) | frozenset(differing)
        turns = {b: turn if b in compared else self._age(b)[0] for b in left_out}
        return Coverage(proven, still, turns, self.width)

    def _age(self, bucket: int) -> tuple[int, int]:
        seen = self.proven.get(bucket)
        return (seen.turn if seen else self.left_out.get(bucket, 0), bucket)

    def to_dict(self) -> dict[str, Any]:
        """Runs of buckets that were proven together."""
        return {
            "width": self.width,
            "proven": list(self._runs()),
            "differing": sorted(self.differing),
            "left_out": sorted(self.left_out.items()),
        }

    def _runs(self) -> Iterator[list[Any]]:
        known = sorted(self.proven.items())
        # Neighbours of one comparison keep the same distance to their rank.
        grouped = itertools.groupby(
            enumerate(known), key=lambda entry: (entry[1][0] - entry[0], entry[1][1])
        )
        for (_, seen), entries in grouped:
            own = [bucket for _, (bucket, _) in entries]
            yield [own[0], own[-1], seen.turn, seen.position, seen.at.isoformat()]

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Coverage:
        proven = {
            bucket: Seen(turn, position, datetime.fromisoformat(at))
            for first, last, turn, position, at in data["proven"]
            for bucket in range(first, last + 1)
        }
        left_out = dict(data.get("left_out", ()))  # proofs of version 1 have neither
        return cls(proven, frozenset(data["differing"]), left_out, data.get("width"))
