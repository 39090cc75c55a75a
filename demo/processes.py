"""Processes that outlive the command that started them, and are stopped by name and proof.

A process is remembered by pid *and* start time: a pid that was given to somebody else since is
never signalled.
"""

from __future__ import annotations

import contextlib
import json
import signal
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import psutil

STOP_SECONDS: Final = 20.0
ORPHAN_SECONDS: Final = 5.0


class Processes:
    """The stack's processes, kept in one state file."""

    def __init__(self, state: Path, logs: Path) -> None:
        self._state = state
        self._logs = logs
        self._children: dict[str, subprocess.Popen[bytes]] = {}

    def start(
        self, name: str, command: Sequence[str], env: Mapping[str, str], **options: Any
    ) -> psutil.Process:
        """Start in a session of its own, output to ``<logs>/<name>.log``."""
        self._logs.mkdir(parents=True, exist_ok=True)
        with self.log(name).open("ab") as log:
            child = self._children[name] = subprocess.Popen(
                list(command),
                env=dict(env),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                **options,
            )
        return self.adopt(name, child.pid)

    def adopt(self, name: str, pid: int) -> psutil.Process:
        """Remember a process somebody else started for us."""
        process = psutil.Process(pid)
        known = self._read()
        known[name] = {"pid": pid, "started": process.create_time()}
        self._write(known)
        return process

    def log(self, name: str) -> Path:
        return self._logs / f"{name}.log"

    def running(self) -> dict[str, psutil.Process]:
        """Those of ours that still live."""
        found = {name: _same(entry) for name, entry in self._read().items()}
        return {name: process for name, process in found.items() if process is not None}

    def stop(self, name: str, how: signal.Signals = signal.SIGTERM) -> None:
        """Stop one process and all it started; what does not end in time is killed."""
        process = self.running().get(name)
        if process is not None:
            _end(process, how)
        if name in self._children:
            self._children.pop(name).wait(STOP_SECONDS)  # or it stays a zombie
        known = self._read()
        known.pop(name, None)
        self._write(known)

    def _read(self) -> dict[str, dict[str, Any]]:
        if not self._state.exists():
            return {}
        known: dict[str, dict[str, Any]] = json.loads(self._state.read_text())
        return known

    def _write(self, known: dict[str, dict[str, Any]]) -> None:
        self._state.parent.mkdir(parents=True, exist_ok=True)
        staging = self._state.with_suffix(".new")
        staging.write_text(json.dumps(known, indent=1))
        staging.replace(self._state)


def _same(entry: dict[str, Any]) -> psutil.Process | None:
    try:
        process = psutil.Process(entry["pid"])
        alive = process.status() != psutil.STATUS_ZOMBIE
        return process if alive and process.create_time() == entry["started"] else None
    except psutil.NoSuchProcess:
        return None


def _end(process: psutil.Process, how: signal.Signals) -> None:
    """Ask it, then what it left behind, then kill."""
    with contextlib.suppress(psutil.NoSuchProcess):
        family = process.children(recursive=True)
        _signal([process], how)
        _, stubborn = psutil.wait_procs([process], timeout=STOP_SECONDS)
        left = [member for member in family if member.is_running()]
        _signal(left, signal.SIGTERM)
        _, remaining = psutil.wait_procs(left, timeout=ORPHAN_SECONDS)
        _signal([*stubborn, *remaining], signal.SIGKILL)
        psutil.wait_procs([*stubborn, *remaining], timeout=STOP_SECONDS)


def _signal(processes: list[psutil.Process], which: signal.Signals) -> None:
    for process in processes:
        with contextlib.suppress(psutil.NoSuchProcess):
            process.send_signal(which)
