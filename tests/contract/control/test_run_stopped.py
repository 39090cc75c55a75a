"""A process that follows a pipeline stays while that is stopped, and goes on after the start."""

from __future__ import annotations

import threading
import time

import pytest

from tests.support.log_events import Ear
from tests.support.shop import Shop
from tidegate.config.pipeline import PipelineConfig
from tidegate.config.platform import PlatformConfig, RetryConfig
from tidegate.control.running import start, stop
from tidegate.errors import STOPPED_CODE, HeldError, RetriableError, TidegateError
from tidegate.jobs import run
from tidegate.jobs.capture import run_capture
from tidegate.observability.progress import silent


class Rounds(run._Run):
    """Rounds whose steps have nothing to do: what is looked at is when they happen."""

    def _nothing(self) -> None:
        """No source and no Spark here."""

    _sweep = _capture = _apply = _maintain = _nothing


@pytest.fixture
def rounds(shop: Shop, platform: PlatformConfig, pipeline: PipelineConfig) -> Rounds:
    outcome = run.RunOutcome()
    return Rounds(None, pipeline, platform, threading.Event(), silent, outcome)  # type: ignore[arg-type]


def test_it_waits_and_goes_on(
    rounds: Rounds,
    platform: PlatformConfig,
    pipeline: PipelineConfig,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(run, "LOOK_SECONDS", 0.02)
    stop(pipeline, platform, reason="a look")
    thread = threading.Thread(target=run._rounds, args=(rounds, 0.01))
    thread.start()
    try:
        thread.join(0.5)
        assert thread.is_alive() and rounds.outcome.rounds == 0
        start(pipeline, platform, reason="seen")
        deadline = time.monotonic() + 30
        while rounds.outcome.rounds == 0 and time.monotonic() < deadline:
            thread.join(0.02)
        assert rounds.outcome.rounds > 0
    finally:
        rounds.stop.set()
        thread.join(30)
    assert not thread.is_alive()


def test_a_round_that_fails_is_known_until_one_goes_through(
    rounds: Rounds, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = RetriableError("source.unreachable", "no answer", hint="wait")
    seen: list[TidegateError | None] = []

    def capture() -> None:
        seen.append(rounds.pulse.problem)
        if len(seen) == 1:
            raise broken
        if len(seen) == 3:
            rounds.stop.set()

    monkeypatch.setattr(rounds, "_capture", capture)
    retry = rounds.platform.retry.model_copy(update={"initial_wait_seconds": 0})
    rounds.platform = rounds.platform.model_copy(update={"retry": retry})
    run._rounds(rounds, 0)
    assert seen == [None, broken, None]


def test_a_capture_is_tried_as_often_as_the_file_says(
    shop: Shop, platform: PlatformConfig, pipeline: PipelineConfig, said: Ear
) -> None:
    source = pipeline.source.model_copy(update={"host": "127.0.0.1", "port": 1})
    away = pipeline.model_copy(update={"source": source})
    retry = RetryConfig(max_attempts=3, initial_wait_seconds=0)
    with pytest.raises(RetriableError):
        run_capture(away, platform.model_copy(update={"retry": retry}))
    assert len(said.of("capture: trying again")) == 2


def test_one_round_ends_as_stopped(
    rounds: Rounds, platform: PlatformConfig, pipeline: PipelineConfig
) -> None:
    stop(pipeline, platform, reason="a look")
    with pytest.raises(HeldError) as refused:
        run._rounds(rounds, None)
    assert refused.value.code == STOPPED_CODE
