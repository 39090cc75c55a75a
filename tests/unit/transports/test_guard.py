"""The source guard's judgement: figures in, one sentence and a next step out."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from pydantic import ValidationError

from tidegate.config.guard import GIB, GuardConfig
from tidegate.connectors.distance import by_number
from tidegate.connectors.source_status import SlotStatus, SourceStatus
from tidegate.envelope.position import Position, boundary
from tidegate.lake.log_times import LogTimes
from tidegate.transports.guard import (
    Figures,
    Finding,
    LogFigures,
    SourceFigures,
    TableFigures,
    Verdict,
    judge,
    judge_source,
)
from tidegate.transports.monitor import EmbeddedSourceMonitor

LIMITS = GuardConfig()
HEALTHY = SourceFigures(
    slot="tidegate_shop",
    slot_state="reserved",
    retained_bytes=1 * GIB,
    keep_bytes=10 * GIB,
    left_bytes=9 * GIB,
    limit="max_slot_wal_keep_size",
    bytes_per_hour=0.1 * GIB,
    hours_left=90.0,
    xmin_age=1000,
    to_capture_bytes=5000,
    capture_seconds=60.0,
)
NOW = datetime(2026, 11, 17, 12, 0, tzinfo=UTC)


def finding(check: str, figures: SourceFigures) -> Finding:
    (found,) = [f for f in judge_source(figures, LIMITS) if f.check == check]
    return found


def test_a_healthy_source_gives_no_reason_to_act() -> None:
    found = judge(Figures(HEALTHY, log=LogFigures(5, 60.0)), LIMITS)
    assert found.verdict is Verdict.OK
    assert not found.releasable
    assert all(f.next is None for f in found.findings)


@pytest.mark.parametrize(
    ("check", "changed", "verdict"),
    [
        ("wal", {"retained_bytes": 5 * GIB}, "warn"),
        ("wal", {"retained_bytes": 8 * GIB}, "act"),
        ("wal", {"slot_state": "unreserved"}, "act"),
        ("wal", {"keep_bytes": None, "retained_bytes": 9 * GIB}, "ok"),
        ("wal", {"keep_bytes": None, "retained_bytes": 10 * GIB}, "warn"),
        ("wal", {"keep_bytes": None, "retained_bytes": 50 * GIB}, "act"),
        ("time left", {"hours_left": 24.1}, "ok"),
        ("time left", {"hours_left": 24.0}, "warn"),
        ("time left", {"hours_left": 4.0, "to_capture_bytes": 1 * GIB}, "act"),
        ("time left", {"hours_left": None, "bytes_per_hour": 0.0}, "ok"),
        ("xmin", {"xmin_age": 50_000_000}, "warn"),
        ("xmin", {"xmin_age": 150_000_000}, "act"),
        ("capture", {"capture_seconds": 1800.0}, "warn"),
        ("capture", {"capture_seconds": 4 * 3600.0}, "act"),
        ("capture", {"capture_seconds": 9e9, "to_capture_bytes": 0}, "ok"),
        ("capture", {"capture_seconds": None}, "ok"),
    ],
)
def test_a_limit_is_reached(check: str, changed: dict[str, object], verdict: str) -> None:
    found = finding(check, replace(HEALTHY, **changed))  # type: ignore[arg-type]
    assert found.verdict == verdict
    assert (found.next is None) is (verdict == "ok"), "a bad verdict comes with a next step"
    assert found.releases is (verdict != "ok"), "capturing helps against each of these"
    whole = judge(Figures(replace(HEALTHY, **changed)), LIMITS)  # type: ignore[arg-type]
    assert whole.releasable is (verdict != "ok")


def test_a_limit_too_small_for_its_source_is_no_reason_to_capture_again() -> None:
    found = finding("time left", replace(HEALTHY, hours_left=0.05, to_capture_bytes=500))
    assert (found.verdict, found.releases) == (Verdict.WARN, False)
    assert found.next == "raise max_slot_wal_keep_size, or capture more often than every 3 min"


def test_what_is_not_known_is_said_and_not_guessed() -> None:
    disk = finding("time left", replace(HEALTHY, limit=None, left_bytes=None, hours_left=None))
    assert disk.verdict is Verdict.OK
    assert "unknown" in disk.says and "guard.wal_disk_bytes" in disk.says
    pace = finding("time left", replace(HEALTHY, bytes_per_hour=None, hours_left=None))
    assert pace.verdict is Verdict.OK
    assert "too few captures" in pace.says


def test_a_lost_slot_is_answered_with_recovery_never_with_a_capture() -> None:
    found = judge(Figures(replace(HEALTHY, lost="slot x was invalidated")), LIMITS)
    (only,) = found.findings
    assert (only.verdict, only.says) == (Verdict.ACT, "slot x was invalidated")
    assert "recover" in (only.next or "")
    assert not found.releasable


def test_a_source_that_cannot_be_asked_needs_someone() -> None:
    found = judge(Figures(None, "connection refused"), LIMITS)
    assert found.verdict is Verdict.ACT
    assert "connection refused" in found.findings[0].says
    assert judge(Figures(None), LIMITS).verdict is Verdict.OK, "not deployed: nothing is held"


def test_tables_and_log_are_judged_and_the_worst_comes_first() -> None:
    figures = Figures(
        HEALTHY,
        log=LogFigures(100 * GIB, 60 * 86400.0),
        tables=(
            TableFigures("public.fresh", "open", 60.0, None),
            TableFigures("public.late", "open", 7200.0, 3600.0),
            TableFigures("public.held", "held", 1e6, 90_000.0),
        ),
    )
    found = judge(figures, LIMITS)
    verdicts = {f.check: f.verdict.value for f in found.findings}
    assert verdicts["change log size"] == "warn"
    assert verdicts["change log age"] == "act"
    assert verdicts["apply public.fresh"] == "ok"
    assert verdicts["apply public.late"] == "warn"
    assert verdicts["apply public.held"] == "act"
    assert [f.verdict for f in found.findings] == sorted(
        (f.verdict for f in found.findings), key=["act", "warn", "ok"].index
    )
    steps = {f.check: f.next or "" for f in found.findings}
    assert "gate show" in steps["apply public.held"]
    assert "tidegate apply" in steps["apply public.late"]
    assert not found.releasable, "capturing does not help against these"


def test_limits_that_cross_are_refused() -> None:
    with pytest.raises(ValidationError, match="wal_act_share"):
        GuardConfig(wal_warn_share=0.9)
    with pytest.raises(ValidationError, match="hours_act"):
        GuardConfig(hours_warn=2)


def times(*marks: tuple[int, float]) -> LogTimes:
    """(LSN, minutes ago), oldest first."""
    places = tuple(boundary("e", lsn).place for lsn, _ in marks)
    moments = tuple(NOW - timedelta(minutes=minutes) for _, minutes in marks)
    return LogTimes(boundary("e", marks[-1][0]), moments[-1], places, moments)


def test_the_pace_is_that_of_the_last_hour_or_since_the_last_capture() -> None:
    now = boundary("e", 10_000)

    def pace(known: LogTimes, current: Position = now) -> float | None:
        return known.bytes_per_hour(current, lambda low: by_number(low, current), NOW)

    assert pace(times((0, 600.0), (4_000, 60.0), (9_000, 1.0))) == 6_000
    assert pace(times((0, 600.0), (5_000, 120.0))) == 2_500
    assert pace(times((9_000, 0.5))) is None, "too short to tell"
    assert pace(times((9_000, 30.0)), boundary("other", 1)) is None


def test_the_limit_that_comes_first_counts() -> None:
    status = SourceStatus(
        current=boundary("e", 10_000),
        slot=SlotStatus("s", None, None, 1_000, "reserved", safe_wal_bytes=12_000),
        keep_bytes=20_000,
        log_bytes=50_000,
    )
    monitor = EmbeddedSourceMonitor(None, times((4_000, 60.0)), "s", by_number)  # type: ignore[arg-type]
    seen = monitor.figures(status, LIMITS, now=NOW)
    assert (seen.limit, seen.hours_left) == ("max_slot_wal_keep_size", 2.0)
    assert (seen.to_capture_bytes, seen.capture_seconds) == (6_000, 3600.0)
    disk = LIMITS.model_copy(update={"wal_disk_bytes": 56_000})
    seen = monitor.figures(status, disk, now=NOW)
    assert (seen.limit, seen.hours_left) == ("guard.wal_disk_bytes", 1.0)
    assert monitor.figures(replace(status, slot=None), LIMITS).lost is not None


BY_TIME = SourceFigures(
    slot="tidegate_shop",
    slot_state="reserved",
    to_capture_bytes=5000,
    capture_seconds=600.0,
    by_time=True,
    expiry_seconds=86_400.0,
)


@pytest.mark.parametrize(
    ("changed", "verdict", "words"),
    [
        ({}, "ok", "read or not"),
        ({"capture_seconds": 50_000.0, "to_capture_bytes": 0}, "ok", "nothing waits"),
        ({"capture_seconds": 50_000.0}, "warn", "left for what is not captured"),
        ({"capture_seconds": 80_000.0}, "act", "left for what is not captured"),
        ({"capture_seconds": 90_000.0}, "act", "left for what is not captured"),
        ({"expiry_seconds": None, "capture_seconds": 90_000.0}, "ok", "does not drop"),
    ],
)
def test_a_log_that_expires_must_be_captured_in_time(
    changed: dict[str, Any], verdict: str, words: str
) -> None:
    found = finding("time left", replace(BY_TIME, **changed))
    assert found.verdict == verdict
    assert words in found.says
    assert found.releases is (verdict != "ok")
    assert {f.check for f in judge_source(BY_TIME, LIMITS)} == {"time left", "capture"}
