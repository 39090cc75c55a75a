"""How far apart a schedule's runs are."""

from __future__ import annotations

import datetime

from croniter import croniter  # type: ignore[import-untyped]


def period_seconds(schedule: str | None) -> float | None:
    """Seconds between the next two runs; None where runs are not periodic."""
    if schedule is None or schedule in {"@once", "@continuous"}:
        return None
    times = croniter(schedule, datetime.datetime(2024, 1, 1, tzinfo=datetime.UTC))
    first: float = times.get_next(float)
    second: float = times.get_next(float)
    return second - first
