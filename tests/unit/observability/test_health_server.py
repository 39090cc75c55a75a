"""The health port: what it answers, and that it never stands in the work's way."""

from __future__ import annotations

import json
import logging
import socket
import urllib.error
import urllib.request
from typing import Any

import pytest

from tidegate.observability import log
from tidegate.observability.health_server import MOST_CALLERS, serving

OPENER = urllib.request.build_opener(urllib.request.ProxyHandler({}))


def ask(url: str, method: str = "GET") -> tuple[int, Any]:
    try:
        with OPENER.open(urllib.request.Request(url, method=method), timeout=10) as answer:
            body = answer.read()
            assert "Python" not in answer.headers["server"]
            return answer.status, json.loads(body) if body else None
    except urllib.error.HTTPError as error:
        with error:
            body = error.read()
            return error.code, json.loads(body) if body else None


def test_a_live_process_is_ready_or_not() -> None:
    state = [True]
    with serving("127.0.0.1", 0, lambda: (state[0], {"status": "ok" if state[0] else "no"})) as url:
        assert url is not None and url.startswith("http://127.0.0.1:")
        assert ask(f"{url}/readyz") == (200, {"status": "ok"})
        state[0] = False
        assert ask(f"{url}/readyz?verbose=1") == (503, {"status": "no"})
        assert ask(f"{url}/healthz") == (200, {"status": "ok"})
        assert ask(f"{url}/readyz", "HEAD") == (503, None)
        assert ask(f"{url}/metrics")[0] == 404
        with pytest.raises(json.JSONDecodeError):
            ask(f"{url}/readyz", "POST")  # an error page, never an answer
    with pytest.raises(urllib.error.URLError):
        ask(f"{url}/healthz")


def test_a_port_in_use_is_warned_of_and_stops_nothing(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logging.getLogger(log.ROOT), "propagate", True)
    worked = False
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with serving("127.0.0.1", port, lambda: (True, {})) as url:
            worked = True
            assert url is None
    assert worked
    (record,) = caplog.records
    assert record.levelno == logging.WARNING and str(port) in record.getMessage()
    assert "health_port" in log.fields_of(record)["hint"]


def test_a_host_that_is_none_is_warned_of(caplog: pytest.LogCaptureFixture) -> None:
    with serving("203.0.113.1", 0, lambda: (True, {})) as url:  # nobody's address
        assert url is None


def test_callers_who_say_nothing_do_not_fill_the_process() -> None:
    with serving("127.0.0.1", 0, lambda: (True, {"status": "ok"})) as url:
        assert url is not None
        address = ("127.0.0.1", int(url.rpartition(":")[2]))
        silent = [socket.create_connection(address) for _ in range(MOST_CALLERS + 1)]
        try:
            silent[-1].settimeout(10)
            assert silent[-1].recv(1) == b"", "one too many is turned away"
        finally:
            for one in silent:
                one.close()
