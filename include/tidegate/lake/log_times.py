"""When the change log reached which position, from its snapshots' summaries."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

from pyiceberg.catalog import Catalog

from tidegate.config.pipeline import PipelineConfig
from tidegate.envelope.position import Position
from tidegate.lake.catalog import load
from tidegate.lake.change_log import ChangeLog
from tidegate.lake.log_table import captured
from tidegate.lake.positions import ancestors, summary

RATE_WINDOW: Final = timedelta(hours=1)
"""The source's pace of the last hour: long enough to even out a batch job, short enough to see
one that goes on. Older snapshots of the log may have been expired."""
_ROWS: Final = "added-records"
Since = Callable[[Position], int | None]
SHORTEST_RATE_SECONDS: Final = 60.0
"""Below, one checkpoint's burst would be taken for a pace."""


@dataclass(frozen=True, slots=True)
class LogTimes:
    """``places`` and ``times`` go together, oldest first, all of the head's epoch."""

    head: Position | None  # None: not deployed
    head_at: datetime | None
    places: tuple[str, ...]
    times: tuple[datetime, ...]
    quiet: frozenset[str] = frozenset()
    """Those of the places up to which, from the one before, nothing was captured."""

    @classmethod
    def read(cls, catalog: Catalog, pipeline: PipelineConfig) -> LogTimes:
        """From metadata only; no row is read."""
        log = ChangeLog(catalog, pipeline)
        table = load(catalog, log.identifier)
        if table is None or table.current_snapshot() is None:
            return cls(None, None, (), ())
        head = log.head_of(table).captured_through
        seen: list[tuple[str, datetime]] = []
        quiet: set[str] = set()
        loud: set[str] = set()
        for snapshot in ancestors(table.metadata):
            facts = summary(snapshot)
            position = captured(facts)
            if position is not None and position.epoch == head.epoch:
                moment = datetime.fromtimestamp(snapshot.timestamp_ms / 1000, UTC)
                seen.append((position.place, moment))
                (loud if int(facts.get(_ROWS, 0)) else quiet).add(position.place)
        seen.reverse()
        places, times = [place for place, _ in seen], [moment for _, moment in seen]
        at = times[-1] if times else None
        return cls(head, at, tuple(places), tuple(times), frozenset(quiet - loud))

    def bytes_per_hour(
        self, current: Position, since: Since, now: datetime | None = None
    ) -> float | None:
        """How fast the source writes its log, from what was captured when; None: too little known.
        ``since`` tells the bytes between a position and ``current``.

        Every capture notes the place the source's log had reached: no state of our own is needed.
        """
        if self.head is None or current.epoch != self.head.epoch or not self.times:
            return None
        moment = now or datetime.now(UTC)
        first = bisect_left(self.times, moment - RATE_WINDOW)
        first = min(first, len(self.times) - 1)  # not captured for long: since the last one
        seconds = (moment - self.times[first]).total_seconds()
        if seconds < SHORTEST_RATE_SECONDS:
            return None
        written = since(Position(self.head.epoch, self.places[first]))
        return None if written is None else written * 3600 / seconds

    def through(self, position: Position) -> Position:
        """The furthest place up to which, from ``position``, nothing was captured at all."""
        if self.head is None or position.epoch != self.head.epoch:
            return position
        at = bisect_right(self.places, position.place)
        if at == 0:  # what came before the oldest snapshot is not known any more
            return position
        while at < len(self.places) and self.places[at] in self.quiet:
            at += 1
        return max(position, Position(position.epoch, self.places[at - 1]))

    def seconds_behind(
        self, position: Position | None, now: datetime | None = None
    ) -> float | None:
        """How long ago the log moved on from ``position`` with changes; 0 for a table that has all
        of them.

        A table stands at what the log held until its next commit: that commit's time is when the
        table fell behind.
        """
        if self.head is None or position is None or position.epoch != self.head.epoch:
            return None
        position = self.through(position)
        if position.place >= self.head.place:
            return 0.0
        following = bisect_right(self.places, position.place)
        if following >= len(self.times):
            return None
        moment = now or datetime.now(UTC)
        return max(0.0, (moment - self.times[following]).total_seconds())
