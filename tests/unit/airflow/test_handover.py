"""What a task hands to its job is gone when the task is, also if it was killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from pydantic import SecretStr

from tidegate.airflow.handover import handover
from tidegate.config.secrets import Secrets

_TASK = """
import sys
from pydantic import SecretStr
from tidegate.airflow.handover import handover
from tidegate.config.secrets import Secrets

with handover() as files:
    files.write_secrets(Secrets(password=SecretStr("canary")))
    print(files.directory, flush=True)
    sys.stdin.readline()
"""


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)


@contextmanager
def task() -> Iterator[tuple[subprocess.Popen[str], Path]]:
    """A process in the middle of a task, and its directory."""
    process = subprocess.Popen(
        [sys.executable, "-c", _TASK], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    with process:
        try:
            yield process, Path(process.stdout.readline().strip())
        finally:
            process.kill()


def test_only_its_owner_can_enter_and_it_ends_with_the_task() -> None:
    with handover() as files:
        files.write_secrets(Secrets(password=SecretStr("canary")))
        assert files.directory.stat().st_mode & 0o777 == 0o700
    assert not files.directory.exists()


def test_what_a_killed_task_left_the_next_one_removes() -> None:
    with task() as (process, left):
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        assert (left / "secrets.json").exists()
        with handover():
            assert not left.exists()


def test_what_a_living_task_uses_stays() -> None:
    with task() as (_, used), handover():
        assert (used / "secrets.json").exists()
