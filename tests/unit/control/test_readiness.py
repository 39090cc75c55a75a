"""Readiness: probes never burden the source, and what is not known is not ready."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from tidegate.control import readiness
from tidegate.control.readiness import Kept


def test_any_number_of_probes_is_one_look() -> None:
    looks = []

    def look() -> int:
        looks.append(None)
        return len(looks)

    kept = Kept(look, kept_seconds=3600)
    with ThreadPoolExecutor(8) as pool:
        assert set(pool.map(lambda _: kept.get(), range(50))) == {1}
    assert len(looks) == 1


def test_a_look_that_hangs_is_answered_by_the_one_before_and_then_by_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    go_on, answers, now = threading.Event(), iter(["seen"]), [1000.0]

    def look() -> str:
        found = next(answers, None)
        if found is None:
            assert go_on.wait(30)
        return found or "late"

    kept = Kept(look, kept_seconds=5, wait_seconds=0.02, stale_seconds=60, clock=lambda: now[0])
    assert kept.get() == "seen"
    now[0] += 50
    assert kept.get() == "seen", "the second look hangs"
    now[0] += 60
    monkeypatch.setattr(readiness, "FIRST_WAIT_SECONDS", 0.02)
    assert kept.get() is None, "what was seen long ago is no answer"
    go_on.set()
    monkeypatch.setattr(readiness, "FIRST_WAIT_SECONDS", 30)
    assert kept.get() == "late"


def test_a_look_that_fails_is_nothing_known_and_the_next_one_counts() -> None:
    fail = [True]

    def look() -> str:
        if fail[0]:
            raise RuntimeError("a value that must not be told")
        return "seen"

    kept = Kept(look, kept_seconds=0)
    assert kept.get() is None
    fail[0] = False
    assert kept.get() == "seen"


def test_a_source_that_is_slow_to_answer_is_asked_less_often() -> None:
    now, looks = [0.0], []

    def look() -> int:
        looks.append(None)
        now[0] += 30
        return len(looks)

    kept = Kept(look, kept_seconds=5, clock=lambda: now[0])
    assert kept.get() == 1
    now[0] += 59
    assert kept.get() == 1
    now[0] += 2
    assert kept.get() == 2
