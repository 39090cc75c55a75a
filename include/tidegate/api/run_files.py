"""A run as files: what was asked for, which process does it, its output, how it ended.

``request.json`` is there from the first moment, ``process`` once a process is to do it,
``out.json`` once that has begun, ``exit`` once it has ended. A run that has begun and whose process
is gone without an exit code has failed.
"""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import psutil

from tidegate.api.runner import LOG_LINES, Run, RunState, Verb, Work
from tidegate.observability.caller import Caller, Surface

RUN_ID: Final = re.compile(r"[a-z0-9_]{1,40}-[0-9a-f]{16}\Z")


@dataclass(frozen=True, slots=True)
class Request:
    """What was asked for, and by whom."""

    work: Work
    caller: Caller
    asked_at: str

    @classmethod
    def of(cls, folder: Path) -> Request:
        found = json.loads((folder / "request.json").read_text(encoding="utf-8"))
        caller = found.get("caller")  # runs of releases before there was a queue have none
        return cls(
            Work(Verb(found["verb"]), found["pipeline"], found["options"]),
            Caller(caller["name"], Surface(caller["surface"]))
            if caller
            else Caller(found["started_by"], Surface.API),
            found["started_at"],
        )


def place(home: Path, run_id: str, work: Work, caller: Caller) -> Path:
    """A new run's folder: whole or not at all."""
    request = {
        "verb": work.verb.value,
        "pipeline": work.pipeline,
        "options": dict(work.options),
        "digest": work.digest,
        "caller": {"name": caller.name, "surface": caller.surface.value},
        "started_by": str(caller),
        "started_at": datetime.now(UTC).isoformat(),
    }
    staging = home / f".{run_id}.{uuid.uuid4().hex[:8]}"
    staging.mkdir(mode=0o700)
    write(staging / "request.json", json.dumps(request))
    return staging.rename(home / run_id)


def folders(home: Path) -> Iterator[Path]:
    """Every run's."""
    if home.is_dir():
        for folder in home.iterdir():
            if RUN_ID.match(folder.name) and (folder / "request.json").is_file():
                yield folder


def read(folder: Path, *, tail: bool) -> Run:
    """The run as it stands; ``tail``: with its log's end."""
    request = json.loads((folder / "request.json").read_text(encoding="utf-8"))
    code = _text(folder / "exit")
    document = _document(folder / "out.json") if code is not None else {}
    ended = (folder / "exit").stat().st_mtime if code is not None else None
    return Run(
        id=folder.name,
        work=Work(Verb(request["verb"]), request["pipeline"], request["options"]),
        state=state(folder),
        started_by=request["started_by"],
        started_at=datetime.fromisoformat(request["started_at"]),
        ended_at=None if ended is None else datetime.fromtimestamp(ended, UTC),
        result=document.get("result"),
        error=document.get("error"),
        log=(_text(folder / "log.txt") or "").splitlines()[-LOG_LINES:] if tail else (),
    )


def state(folder: Path) -> RunState:
    """Queued, at work, done or failed."""
    code = _text(folder / "exit")
    if code is not None:
        return RunState.DONE if code == "0" else RunState.FAILED
    if not (folder / "process").exists():
        return RunState.QUEUED
    if process(folder) is not None:
        return RunState.RUNNING
    # It may have ended between the two looks.
    done = _text(folder / "exit")
    if done is None and not (folder / "out.json").exists():
        return RunState.QUEUED  # a server died as it began the run: nothing was done yet
    return RunState.DONE if done == "0" else RunState.FAILED


def process(folder: Path) -> psutil.Process | None:
    """The process at work, if it lives; another one may have its number since."""
    pid, created = (_text(folder / "process") or "0 0").split()
    try:
        found = psutil.Process(int(pid))
        return found if found.create_time() == float(created) else None
    except psutil.NoSuchProcess:
        return None


def note_process(folder: Path, pid: int) -> None:
    """The run has begun."""
    write(folder / "process", f"{pid} {psutil.Process(pid).create_time()}")


def note_failure(folder: Path, error: dict[str, Any]) -> None:
    """The run has ended before it began."""
    write(folder / "out.json", json.dumps({"ok": False, "error": error}))
    write(folder / "exit", "2")


def write(path: Path, text: str) -> None:
    """The whole file at once."""
    staging = path.with_name(path.name + ".part")
    staging.write_text(text, encoding="utf-8")
    staging.replace(path)


def _document(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(_text(path) or "{}")
    except ValueError:
        return {}  # killed while it wrote; the exit code tells
    return found if isinstance(found, dict) else {}


def _text(path: Path) -> str | None:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except FileNotFoundError:
        return None
