"""The demo stops what it started, all of it, and nothing else."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from demo.processes import Processes

PARENT = """
import subprocess, sys, time
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
print(child.pid, flush=True)
time.sleep(600)
"""


@pytest.fixture
def processes(tmp_path: Path) -> Processes:
    return Processes(tmp_path / "processes.json", tmp_path / "logs")


def wait_for_text(file: Path) -> str:
    deadline = time.monotonic() + 30
    while not (text := file.read_text().strip()):
        assert time.monotonic() < deadline, f"{file} stayed empty"
        time.sleep(0.02)  # polling another process
    return text


def test_stopping_a_process_ends_what_it_started(processes: Processes) -> None:
    parent = processes.start("parent", [sys.executable, "-c", PARENT], os.environ)
    child = psutil.Process(int(wait_for_text(processes.log("parent"))))

    processes.stop("parent")

    assert not parent.is_running()
    assert not child.is_running()
    assert processes.running() == {}


def test_a_later_command_finds_what_an_earlier_one_started(
    processes: Processes, tmp_path: Path
) -> None:
    sleeper = processes.start("sleeper", [sys.executable, "-c", "input()"], os.environ)
    processes.stop("sleeper")
    again = processes.start("again", [sys.executable, "-c", PARENT], os.environ)

    later = Processes(tmp_path / "processes.json", tmp_path / "logs")

    assert {name: process.pid for name, process in later.running().items()} == {"again": again.pid}
    assert sleeper.pid != again.pid
    later.stop("again")
    assert processes.running() == {}
    processes.stop("again")  # of one that is gone: nothing happens


def test_a_pid_that_was_given_to_somebody_else_is_left_alone(
    processes: Processes, tmp_path: Path
) -> None:
    with subprocess.Popen([sys.executable, "-c", PARENT], stdout=subprocess.PIPE) as foreign:
        started = psutil.Process(foreign.pid).create_time()
        state = {"old": {"pid": foreign.pid, "started": started - 60}}
        (tmp_path / "processes.json").write_text(json.dumps(state))

        assert processes.running() == {}
        processes.stop("old")

        assert foreign.poll() is None
        for process in psutil.Process(foreign.pid).children():
            process.kill()
        foreign.kill()
