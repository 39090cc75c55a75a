"""A drain beside a capture waits for it, and ends where that has come far enough."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from tidegate.config.pipeline import PipelineConfig
from tidegate.config.platform import GateConfig, PlatformConfig
from tidegate.envelope.position import boundary
from tidegate.errors import HeldError
from tidegate.jobs import sweep_drain
from tidegate.observability.progress import silent
from tidegate.transports.embedded import SLOT_ACTIVE

PIPELINE = PipelineConfig.model_validate(
    {"pipeline_id": "shop", "source": {"password": "unused", "database": "d"}}
)
BUSY = HeldError(SLOT_ACTIVE, "another capture", hint="wait")
WANTED = boundary("e", 20)


def drain(monkeypatch: pytest.MonkeyPatch, capture: Callable[[Any], None], wait: float) -> Any:
    log = SimpleNamespace(at=10)
    head = lambda: SimpleNamespace(captured_through=boundary("e", log.at))  # noqa: E731
    monkeypatch.setattr(sweep_drain, "open_catalog", lambda *_: None)
    monkeypatch.setattr(sweep_drain, "ChangeLog", lambda *_: SimpleNamespace(head=head))
    monkeypatch.setattr(sweep_drain, "run_capture", lambda *_, **__: capture(log))
    platform = PlatformConfig(gate=GateConfig(wait_seconds=wait))
    sweep_drain.capture_through(PIPELINE, platform, WANTED, silent)
    return log


def test_the_other_capture_may_come_there_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    def busy(log: Any) -> None:
        log.at += 5
        raise BUSY

    assert drain(monkeypatch, busy, wait=60).at == 20


def test_it_is_waited_for_and_not_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[int] = []

    def busy_twice(log: Any) -> None:
        calls.append(1)
        if len(calls) < 3:
            raise BUSY
        log.at = 20

    assert drain(monkeypatch, busy_twice, wait=60).at == 20
    calls.clear()
    with pytest.raises(HeldError):
        drain(monkeypatch, busy_twice, wait=0)
    assert len(calls) == 1


def test_anything_else_is_told_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    def lost(log: Any) -> None:
        raise HeldError("deploy.needed", "no", hint="deploy")

    with pytest.raises(HeldError) as told:
        drain(monkeypatch, lost, wait=60)
    assert told.value.code == "deploy.needed"
