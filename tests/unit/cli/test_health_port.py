"""The health port of a command: where the file says, and nowhere if it is switched off."""

from __future__ import annotations

import io
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from rich.console import Console

from tests.support.api import CLIENT
from tidegate.cli.health_port import answer, health_port
from tidegate.cli.invocation import Invocation
from tidegate.cli.output import Output
from tidegate.config.pipeline import PipelineConfig
from tidegate.config.platform import PlatformConfig
from tidegate.control.health import Component, Health
from tidegate.control.specified_health import PartitionLag, SinkHealth, SourceHealth, State
from tidegate.errors import RetriableError


@pytest.fixture
def heard() -> io.StringIO:
    return io.StringIO()


@pytest.fixture
def output(heard: io.StringIO) -> Iterator[Output]:
    spoken = Output("capture")
    spoken.err.file.close()
    spoken.err = Console(file=heard, width=200)
    yield spoken
    spoken.close()


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        return int(taken.getsockname()[1])


def test_a_command_that_lives_is_asked_on_the_port_of_the_file(
    output: Output, heard: io.StringIO, platform: PlatformConfig, pipeline: PipelineConfig
) -> None:
    port, stop = free_port(), threading.Event()
    own = platform.model_copy(update={"health_port": port, "health_host": "localhost"})
    with health_port(Invocation(output, pipeline, own, Path("p.yaml")), stop):
        assert CLIENT.get(f"http://localhost:{port}/healthz").status_code == 200
        stop.set()
        ready = CLIENT.get(f"http://localhost:{port}/readyz")
        assert (ready.status_code, ready.json()["status"]) == (503, "stopping")
    assert heard.getvalue().startswith("health  http://") and f":{port}/readyz" in heard.getvalue()


def test_health_that_is_switched_off_is_not_served(
    output: Output, heard: io.StringIO, platform: PlatformConfig, pipeline: PipelineConfig
) -> None:
    port = free_port()
    off = platform.model_copy(update={"health_enabled": False, "health_port": port})
    with (
        health_port(Invocation(output, pipeline, off, Path("p.yaml")), threading.Event()),
        pytest.raises(ConnectionRefusedError),
        socket.create_connection(("127.0.0.1", port)),
    ):
        pass
    assert heard.getvalue() == ""


def test_the_answer_is_the_specifications_document_and_tells_no_detail() -> None:
    seen = Health(
        "shop",
        (
            Component("source", "ok", "secret-host:5432"),
            Component("gates", "degraded", ""),
        ),
        SourceHealth(State("RUNNING"), (State("RUNNING"),)),
        (SinkHealth("lake", "running"),),
        (PartitionLag("cdc.public.orders", 0, 16, 4097),),
    )
    ready, told = answer(seen, None, "shop")
    assert ready and told == {
        "status": "degraded",
        "pipeline_id": "shop",
        "source": {"connector": {"state": "RUNNING"}, "tasks": [{"state": "RUNNING"}]},
        "sinks": [{"sink_id": "lake", "status": "running"}],
        "consumer_lag": [{"topic": "cdc.public.orders", "partition": 0, "lag": 16, "offset": 4097}],
        "components": {"source": "ok", "gates": "degraded", "rounds": "ok"},
    }
    problem = RetriableError("source.unreachable", "secret-host does not answer", hint="wait")
    ready, told = answer(seen, problem, "shop")
    assert (ready, told["status"], told["components"]["rounds"]) == (False, "not ready", "failed")
    assert "secret-host" not in str(told)
    assert answer(None, None, "shop") == (False, {"status": "not known", "pipeline_id": "shop"})
