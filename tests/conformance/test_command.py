"""``tidegate conformance`` as a user starts it, against a server of theirs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from tests.support.cli import ENTRY, INCLUDE
from tests.support.faults import until
from tidegate.testing.conformance.postgres import started_server

pytestmark = [pytest.mark.spark, pytest.mark.postgres]


def conformance(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", ENTRY, "conformance", *words],
        env=os.environ | {"PYTHONPATH": str(INCLUDE)},
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_server_of_the_users_own_is_proven_and_left_clean(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    with started_server(15) as server:
        done = conformance(
            "--url", server.url, "--suite", "boolean", "--path", "both", "--json",
            "--page", str(page), "--results", str(tmp_path / "results"),
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        (report,) = json.loads(done.stdout)["result"]
        assert report["failures"] == []
        assert report["checks"] >= 4
        assert "| PostgreSQL 15 | upsert | 2 |" in page.read_text()
        with server.connect() as connection:
            left = connection.execute(
                "SELECT datname FROM pg_database WHERE datname LIKE 'conformance%'"
                " UNION ALL SELECT slot_name FROM pg_replication_slots"
            ).fetchall()
        assert left == []


def test_a_case_that_does_not_hold_is_told(tmp_path: Path) -> None:
    wrong = "about: wrong\ncases: [{name: wrong, type: int, lake: long, values: ['1']}]\n"
    (tmp_path / "wrong.yaml").write_text(wrong)
    with started_server(15) as server:
        done = conformance("--url", server.url, "--cases", str(tmp_path), "--path", "sweep")
    assert done.returncode == 1
    assert "wrong is int, expected long" in done.stdout


def test_what_it_started_ends_with_it() -> None:
    words = [sys.executable, "-c", ENTRY, "conformance", "--suite", "boolean"]
    environment = os.environ | {"PYTHONPATH": str(INCLUDE)}
    with subprocess.Popen(words, env=environment, stderr=subprocess.DEVNULL) as command:
        started = until(lambda: servers(command.pid), "a server is there")
        command.terminate()
        assert command.wait(timeout=60) == 130
    assert not [process for process in started if process.is_running()]


def servers(pid: int) -> list[psutil.Process]:
    """PostgreSQL servers that a process started; what initdb starts for a moment is none."""
    found = []
    for process in psutil.Process(pid).children(recursive=True):
        with suppress(psutil.NoSuchProcess):  # it ended while we looked
            if any("listen_addresses" in word for word in process.cmdline()):
                found.append(process)
    return found


def test_wrong_names_are_refused_before_anything_starts() -> None:
    for words in (
        ("--case", "no_such_case"), ("--path", "nowhere"), ("--source", "oracle"),
        ("--server", "13"), ("--source", "mysql", "--mode", "append"),
    ):  # fmt: skip
        done = conformance(*words)
        assert done.returncode == 2, done.stderr
        assert "starting Spark" not in done.stderr
