"""Structured logs and progress."""

from __future__ import annotations

import io
import json
import logging
from collections.abc import Iterator

import pytest

from tidegate.observability import log
from tidegate.observability.progress import LogProgress, Pace, silent


@pytest.fixture
def stream() -> Iterator[io.StringIO]:
    logger = logging.getLogger(log.ROOT)
    before = (list(logger.handlers), logger.level, logger.propagate)
    yield io.StringIO()
    logger.handlers, logger.propagate = before[0], before[2]
    logger.setLevel(before[1])


def test_an_event_is_one_line_with_its_fields(stream: io.StringIO) -> None:
    log.setup(stream=stream)
    log.event(log.get("tidegate.test"), "table applied", table="public.orders", rows=3)
    assert stream.getvalue().endswith("INFO  table applied  table=public.orders  rows=3\n")


def test_json_lines_carry_the_same_fields(stream: io.StringIO) -> None:
    log.setup(stream=stream, json_lines=True)
    log.event(log.get("tidegate.test"), "table applied", table="public.orders")
    body = json.loads(stream.getvalue())
    assert (body["message"], body["table"], body["level"]) == (
        "table applied",
        "public.orders",
        "info",
    )


@pytest.mark.parametrize(("wanted", "machine"), [("json", True), ("console", False), (None, False)])
def test_the_environment_says_which_form(
    stream: io.StringIO, monkeypatch: pytest.MonkeyPatch, wanted: str | None, machine: bool
) -> None:
    monkeypatch.delenv(log.FORMAT_VARIABLE, raising=False)
    if wanted is not None:
        monkeypatch.setenv(log.FORMAT_VARIABLE, wanted)
    log.setup(stream=stream)
    log.event(log.get("tidegate.test"), "table applied")
    assert stream.getvalue().startswith("{") is machine


def test_an_unknown_key_is_refused() -> None:
    with pytest.raises(KeyError, match="tabel"):
        log.event(log.get("tidegate.test"), "oops", tabel="public.orders")


def test_setting_up_twice_logs_once(stream: io.StringIO) -> None:
    log.setup(stream=stream)
    log.setup(stream=stream)
    log.event(log.get("tidegate.test"), "once")
    assert stream.getvalue().count("once") == 1


def test_an_exception_is_shown(stream: io.StringIO) -> None:
    log.setup(stream=stream)
    try:
        raise ValueError("inside")
    except ValueError:
        log.get("tidegate.test").exception("outside")
    assert "ValueError: inside" in stream.getvalue()


def test_progress_logs_the_first_and_the_last_and_little_between(stream: io.StringIO) -> None:
    log.setup(stream=stream)
    progress = LogProgress(every=3600, table="public.orders")
    for done in range(11):
        progress("read", done, 10, "chunks", rows=done * 100)
    lines = stream.getvalue().splitlines()
    assert len(lines) == 2
    assert "done=0" in lines[0]
    assert "done=10" in lines[1]
    assert "total=10" in lines[1]
    assert "table=public.orders" in lines[1]


def test_pace_tells_rate_and_time_left() -> None:
    pace = Pace(began=0.0)
    assert pace.rate(0) is None
    assert pace.left(0, 10) is None
    assert pace.rate(10) is not None
    assert pace.left(10, None) is None


def test_silent_takes_everything() -> None:
    silent("stage", 1, None, "rows", anything="goes")
