"""What ran lately, from the reports: changes per half hour for plots, and the runs themselves."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from tidegate.lake.reports import Report

HOURS: Final = 24
BUCKET_SECONDS: Final = 1800
BUCKETS: Final = HOURS * 3600 // BUCKET_SECONDS
_MOVES: Final = frozenset({"apply", "sweep", "redrive", "reload"})
"""Kinds of runs that write rows."""
_CHANGES: Final = ("inserted", "updated", "deleted")
_SWEPT: Final = "rows"
FAILED: Final = "failed"


@dataclass(frozen=True, slots=True)
class Activity:
    """Changes applied per bucket, on the same axis for everything that is shown side by side. What
    sweeps read again is told apart: beside it a day of changes would look like nothing."""

    since: datetime
    bucket_seconds: int
    rows: tuple[int | None, ...]  # None: nothing ran, which is a gap and no zero
    swept: tuple[int, ...]  # rows that sweeps wrote
    failed: tuple[int, ...]  # tables whose part of a run failed
    rows_hour: int  # changes within the last hour
    rows_day: int


@dataclass(frozen=True, slots=True)
class RunRecord:
    """One run, as its report tells: whoever started it."""

    id: str
    run: str
    kind: str
    at: datetime
    outcome: str  # done | failed | held
    tables: int
    failed: int
    held: int
    rows: int
    seconds: float | None
    concerned: tuple[str, ...]  # some of the tables; those that failed come first
    error: dict[str, Any] | None  # the first one: code, message, hint


NAMED: Final = 5
"""Tables that a run names."""


def axis(now: datetime) -> datetime:
    """Where the axis begins: at a bucket's edge, so that bars do not move with every look."""
    edge = int(now.timestamp()) // BUCKET_SECONDS * BUCKET_SECONDS
    return datetime.fromtimestamp(edge + BUCKET_SECONDS, UTC) - timedelta(hours=HOURS)


def activity(
    reports: Sequence[Report], now: datetime, captures: Sequence[datetime] = ()
) -> tuple[Activity, dict[str, Activity]]:
    """The pipeline's activity, and each table's that has one. ``reports`` come newest first.

    A run that finds nothing leaves no report, but the log notes ``captures`` of nothing, too
    (oldest first): so that "nothing happened" is told from "nothing ran".
    """
    since = axis(now)
    whole = _Bars(since, now)
    for moment in captures[bisect_left(captures, since) :]:
        whole.ran(moment)
    each: dict[str, _Bars] = {}
    for report in reports:
        if report.at < since:
            break
        if report.kind not in _MOVES:
            continue
        whole.ran(report.at)
        for entry in entries_of(report):
            table = str(entry.get("table"))
            for bars in (whole, each.setdefault(table, _Bars(since, now))):
                bars.add(report.at, entry)
    return whole.done(), {table: bars.done() for table, bars in each.items()}


class _Bars:
    def __init__(self, since: datetime, now: datetime) -> None:
        self._since = since
        self._hour = now - timedelta(hours=1)
        self._rows: list[int | None] = [None] * BUCKETS
        self._swept = [0] * BUCKETS
        self._failed = [0] * BUCKETS
        self._last_hour = 0

    def ran(self, at: datetime) -> int:
        """The bucket of a moment, no gap from now on."""
        place = int((at - self._since).total_seconds()) // BUCKET_SECONDS
        place = min(max(place, 0), BUCKETS - 1)
        self._rows[place] = self._rows[place] or 0
        return place

    def add(self, at: datetime, entry: Mapping[str, Any]) -> None:
        place = self.ran(at)
        changed = _sum(entry, _CHANGES)
        self._rows[place] = (self._rows[place] or 0) + changed
        self._swept[place] += _sum(entry, (_SWEPT,))
        self._failed[place] += entry.get("status") == FAILED
        if at >= self._hour:
            self._last_hour += changed

    def done(self) -> Activity:
        day = sum(rows or 0 for rows in self._rows)
        return Activity(
            since=self._since,
            bucket_seconds=BUCKET_SECONDS,
            rows=tuple(self._rows),
            swept=tuple(self._swept),
            failed=tuple(self._failed),
            rows_hour=self._last_hour,
            rows_day=day,
        )


def runs(reports: Sequence[Report], table: str | None = None) -> Iterator[RunRecord]:
    """Every report as a run, in the given order; with ``table`` those that concern it."""
    for report in reports:
        entries = list(entries_of(report))
        names = [str(entry.get("table")) for entry in entries] or _named(report)
        if table is None or table in names:
            yield _run(report, entries, names)


def _run(report: Report, entries: list[Mapping[str, Any]], names: list[str]) -> RunRecord:
    body = report.body
    failed = [entry for entry in entries if entry.get("status") == FAILED]
    held = [entry for entry in entries if entry.get("status") == "held"]
    error = next((e["error"] for e in (body, *failed) if isinstance(e.get("error"), Mapping)), None)
    order = [str(entry.get("table")) for entry in (*failed, *held)]
    seconds = body.get("seconds")
    return RunRecord(
        id=f"{report.kind}-{report.seq}",
        run=report.run,
        kind=report.kind,
        at=report.at,
        outcome=FAILED if failed or error else "held" if held else "done",
        tables=len(names),
        failed=len(failed),
        held=len(held),
        rows=sum(map(rows_of, entries)) or rows_of(body),
        seconds=seconds if isinstance(seconds, (int, float)) else None,
        concerned=tuple(dict.fromkeys([*order, *names]))[:NAMED],
        error=None
        if error is None
        else {key: error.get(key) for key in ("code", "message", "hint")},
    )


def entries_of(report: Report) -> Iterator[Mapping[str, Any]]:
    """What a report says of each table."""
    found = report.body.get("tables")
    if isinstance(found, Mapping):  # a look at the live schema: nothing ran
        return
    yield from (entry for entry in found or () if isinstance(entry, Mapping))


def rows_of(entry: Mapping[str, Any]) -> int:
    """Rows that were written."""
    return _sum(entry, (*_CHANGES, _SWEPT))


def _sum(entry: Mapping[str, Any], names: Sequence[str]) -> int:
    counts = (entry.get(name) for name in names)
    return sum(int(count) for count in counts if isinstance(count, (int, float)))


def _named(report: Report) -> list[str]:
    """Tables of reports that list none."""
    done = report.body.get("done")
    if isinstance(done, Mapping):
        return [str(name) for name in done]
    one = report.body.get("table")
    return [str(one)] if one else []
