"""How far the change log was looked through for each table.

A table without changes is not touched (``jobs.apply``), so it stands where its last change was. It
is behind by what was captured since the last apply that found nothing for it. What such an apply
reports stays true whatever becomes of the table: the log between two places never changes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final

from tidegate.envelope.position import Position
from tidegate.lake.log_times import LogTimes
from tidegate.lake.reports import Report

KIND: Final = "apply"
NOTHING_FOUND: Final = "unchanged"


class Looked:
    """What applies found nothing in: from a place, up to another."""

    def __init__(self, reports: Iterable[Report], times: LogTimes) -> None:
        self._times = times
        self._found: dict[tuple[str, str], Position] = {}
        for report in reports:
            for entry in (report.body.get("tables") or ()) if report.kind == KIND else ():
                self._take(entry)

    def _take(self, entry: Mapping[str, Any]) -> None:
        low, high = entry.get("from_position"), entry.get("to_position")
        if entry.get("status") != NOTHING_FOUND or not low or not high:
            return
        key, reached = (str(entry.get("table")), str(low)), Position.parse(str(high))
        known = self._found.get(key)
        if known is None or known.place < reached.place:
            self._found[key] = reached

    def through(self, table: str, position: Position) -> Position:
        """The furthest place known up to which, from ``position``, the log has no change of
        ``table``."""
        known = self._found.get((table, str(position)))
        if known is None or known.epoch != position.epoch:
            return self._times.through(position)
        return self._times.through(max(position, known))


def worth_noting(
    found: Iterable[tuple[str, Position, Position]],
    times: LogTimes,
    recent: Callable[[str], Sequence[Report]],
    seconds: float,
) -> bool:
    """Whether an apply that found nothing for tables (name, from, to) knows more than what is
    written down, and the last word is older than ``seconds``. Mostly the log's own metadata tell as
    much: nothing was captured."""
    news = [one for one in found if times.through(one[1]).place < one[2].place]
    if not news:
        return False
    newest = recent(KIND)
    known = Looked(newest, times)
    if all(known.through(table, low).place >= high.place for table, low, high in news):
        return False
    last = max((report.at for report in newest), default=None)
    return last is None or (datetime.now(UTC) - last).total_seconds() > seconds
