"""Start and stop: durable, told, and respected by whatever would begin."""

from __future__ import annotations

import threading

import pytest
from pyiceberg.catalog import Catalog

from tests.support.shop import Shop
from tidegate.config.pipeline import PipelineConfig
from tidegate.config.platform import PlatformConfig
from tidegate.control.audit import audit
from tidegate.control.running import running, start, stop
from tidegate.control.status import status
from tidegate.errors import STOPPED_CODE, Decision, HeldError, decide
from tidegate.jobs.capture import run_capture
from tidegate.jobs.heeding import heeding_stops
from tidegate.lake import pauses as lake_pauses
from tidegate.lake.pauses import Pauses, refuse_stopped
from tidegate.lake.retire import retire
from tidegate.observability.caller import Caller, Surface, acting_as


def test_a_pipeline_nobody_stopped_runs(platform: PlatformConfig, pipeline: PipelineConfig) -> None:
    found = running(pipeline, platform)
    assert (found.state, found.stopped, found.actor) == ("running", False, None)


def test_a_stop_lasts_until_a_start_and_both_are_told(
    catalog: Catalog, platform: PlatformConfig, pipeline: PipelineConfig
) -> None:
    with acting_as(Caller("ann", Surface.API)):
        stopped = stop(pipeline, platform, reason="the source moves")
    assert stopped.stopped and stopped.changed
    again = running(pipeline, platform)
    assert (again.actor, again.surface, again.reason) == ("ann", "api", "the source moves")
    assert not stop(pipeline, platform, reason="another").changed, "again: no change"
    with pytest.raises(HeldError) as refused:
        refuse_stopped(catalog, pipeline)
    assert refused.value.code == STOPPED_CODE and decide(refused.value) is Decision.WAIT
    assert "ann (api)" in refused.value.message and "the source moves" in refused.value.message
    seen = status(pipeline, platform, ask_source=False).running
    assert seen is not None and seen.reason == "the source moves"
    assert start(pipeline, platform, reason="moved").changed
    refuse_stopped(catalog, pipeline)
    told = [(entry.action, entry.outcome) for entry in audit(pipeline, platform).entries]
    assert told == [("start", "done"), ("stop", "done")]
    assert [pause.stopped for pause in Pauses(catalog, pipeline).history()] == [False, True]


def test_a_stopped_pipeline_captures_nothing_and_does_not_reach_for_its_source(
    shop: Shop, platform: PlatformConfig, pipeline: PipelineConfig
) -> None:
    stop(pipeline, platform, reason="quiet")
    with pytest.raises(HeldError, match="quiet"):
        run_capture(pipeline, platform)


def test_a_follower_is_told_of_a_stop(platform: PlatformConfig, pipeline: PipelineConfig) -> None:
    event = threading.Event()
    with heeding_stops(pipeline, platform, event, look_seconds=0.01):
        assert not event.wait(0.1)
        stop(pipeline, platform, reason="now")
        assert event.wait(10)


def test_many_words_fold_and_the_newest_counts(
    catalog: Catalog, pipeline: PipelineConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lake_pauses, "FOLD_FILES", 4)
    pauses = Pauses(catalog, pipeline)
    for turn in range(6):
        pauses.say(stopped=turn % 2 == 0, reason=str(turn))
    assert [word.reason for word in pauses.history()] == ["5", "4", "3", "2", "1", "0"]
    assert pauses.stopped() is None


def test_undeploying_forgets_the_stop(
    shop: Shop, catalog: Catalog, platform: PlatformConfig, pipeline: PipelineConfig
) -> None:
    stop(pipeline, platform, reason="quiet")
    retire(catalog, pipeline, platform.gate)
    assert not running(pipeline, platform).stopped
