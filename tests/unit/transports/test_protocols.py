"""The embedded transport has all four parts the platform specification names."""

from __future__ import annotations

import inspect
from typing import Any

import pytest

from tidegate.lake.dead_letters import DeadLetters
from tidegate.transports.embedded import EmbeddedEventSource
from tidegate.transports.monitor import EmbeddedSourceMonitor
from tidegate.transports.protocol import ErrorRouter, EventSource, Provisioner, SourceMonitor
from tidegate.transports.provisioner import EmbeddedProvisioner


@pytest.mark.parametrize(
    ("part", "protocol"),
    [
        (EmbeddedEventSource, EventSource),
        (EmbeddedProvisioner, Provisioner),
        (DeadLetters, ErrorRouter),
        (EmbeddedSourceMonitor, SourceMonitor),
    ],
)
def test_each_part_has_the_calls_of_its_protocol(part: type, protocol: Any) -> None:
    assert isinstance(object.__new__(part), protocol)
    calls = [name for name, _ in inspect.getmembers(protocol, inspect.isfunction) if name[0] != "_"]
    assert calls
    for name in calls:
        assert inspect.signature(getattr(part, name)) == inspect.signature(getattr(protocol, name))
