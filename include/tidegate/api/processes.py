"""A server's own runner: the command line's verbs as child processes, one directory per run.

A run's directory has the request (``request.json``), the verb's ``--json`` document, its stderr and
the exit code. The directory's name is the idempotency key's: ``mkdir`` decides which of two equal
requests starts the work. The child writes the files itself, so that a restart of the server loses
nothing; a run whose process is gone without an exit code has failed.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import threading
import uuid
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import psutil

from tidegate.api.pipelines import Pipelines
from tidegate.api.runner import LOG_LINES, Run, RunState, Verb, Work, other_work, run_name
from tidegate.errors import FatalError
from tidegate.observability.caller import Caller

_ENTRY: Final = "import sys; from tidegate.cli.main import main; main(sys.argv[1:])"
_SUPERVISE: Final = """
import subprocess, sys, pathlib
home = pathlib.Path(sys.argv[1])
with (home / "out.json").open("wb") as out, (home / "log.txt").open("wb") as log:
    code = subprocess.run(sys.argv[2:], stdin=subprocess.DEVNULL, stdout=out, stderr=log).returncode
part = home / "exit.part"
part.write_text(str(code))
part.replace(home / "exit")
"""
"""Outlives the server: whoever restarts it finds how the run ended."""
_VERBS: Final[Mapping[Verb, tuple[str, ...]]] = {
    Verb.SWEEP: ("sweep",),
    Verb.VERIFY: ("verify",),
    Verb.MAINTAIN: ("maintain",),
    Verb.REDRIVE: ("dead-letters", "redrive"),
    Verb.ROLLBACK: ("lakehouse", "rollback"),
    Verb.SET_OFFSET: ("offsets", "set"),
}
_RUN_ID: Final = re.compile(r"[a-z0-9_]{1,40}-[0-9a-f]{16}\Z")


class ProcessRunner:
    """Implements ``Runner`` below ``home``."""

    def __init__(self, pipelines: Pipelines, home: Path) -> None:
        self._pipelines = pipelines
        self._home = home

    def start(self, work: Work, caller: Caller, key: str | None) -> Run:
        subject = self._pipelines.get(work.pipeline)
        run_id = run_name(work, key or uuid.uuid4().hex)
        folder = self._home / run_id
        self._home.mkdir(parents=True, exist_ok=True, mode=0o700)
        try:
            folder.mkdir(mode=0o700)
        except FileExistsError:
            return self._again(folder, work)
        request = {
            "verb": work.verb.value,
            "pipeline": work.pipeline,
            "options": dict(work.options),
            "digest": work.digest,
            "started_by": str(caller),
            "started_at": datetime.now(UTC).isoformat(),
        }
        _write(folder / "request.json", json.dumps(request))
        self._launch(folder, work, subject.file, caller)
        return _read(folder, tail=False)

    def find(self, pipeline: str, run_id: str) -> Run | None:
        folder = self._home / run_id
        known = _RUN_ID.match(run_id) and run_id.startswith(f"{pipeline}-")
        if not known or not (folder / "request.json").is_file():
            return None
        return _read(folder, tail=True)

    def recent(self, pipeline: str, limit: int) -> list[Run]:
        if not self._home.is_dir():
            return []
        folders = [
            folder
            for folder in self._home.iterdir()
            if _RUN_ID.match(folder.name)
            and folder.name.rpartition("-")[0] == pipeline
            and (folder / "request.json").is_file()
        ]
        runs = [_read(folder, tail=False) for folder in folders]
        runs.sort(key=lambda run: str(run.started_at), reverse=True)
        return runs[:limit]

    def _again(self, folder: Path, work: Work) -> Run:
        try:
            request = json.loads((folder / "request.json").read_text(encoding="utf-8"))
        except FileNotFoundError:
            # The other request is just starting it, or was killed on the way: nothing was done.
            raise FatalError(
                "api.run_not_started",
                "this Idempotency-Key names a run that was never started",
                hint="ask again with a new key",
            ) from None
        if request["digest"] != work.digest:
            raise other_work()
        return _read(folder, tail=False)

    def _launch(self, folder: Path, work: Work, file: Path, caller: Caller) -> None:
        command = [sys.executable, "-c", _ENTRY, *_VERBS[work.verb], str(file), "--json"]
        command += arguments(work)
        if self._pipelines.platform_file is not None:
            command += ["--platform-config", str(self._pipelines.platform_file)]
        # A session of its own: stopping the server with ^C does not stop the work.
        process = subprocess.Popen(
            [sys.executable, "-c", _SUPERVISE, str(folder), *command],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env=_environment(caller),
            start_new_session=True,
        )
        _write(folder / "process", f"{process.pid} {psutil.Process(process.pid).create_time()}")
        threading.Thread(target=process.wait, daemon=True).start()  # no zombies


def arguments(work: Work) -> list[str]:
    """Options as the command line spells them; one word each, an answer may begin with a dash."""
    given: list[str] = []
    for name, value in work.options.items():
        option = f"--{_OPTIONS.get(name, name).replace('_', '-')}"
        if value is True:
            given.append(option)
        elif isinstance(value, (list, tuple)):
            given += [f"{option}={one}" for one in value]
        elif value is not None and value is not False:
            given.append(f"{option}={value}")
    return given + (["--yes"] if work.verb in _ASKS else [])


_ASKS: Final = frozenset({Verb.ROLLBACK, Verb.SET_OFFSET})
"""Verbs that ask a person first; whoever sent the request has decided."""
_OPTIONS: Final = {"tables": "table", "event_ids": "event_id", "codes": "code"}


def _environment(caller: Caller) -> dict[str, str]:
    """The server's own, without its token: a job has no use for it (I9)."""
    from tidegate.api.tokens import TOKEN_VARIABLE

    own = {name: value for name, value in os.environ.items() if name != TOKEN_VARIABLE}
    return own | caller.variable()


def _read(folder: Path, *, tail: bool) -> Run:
    request = json.loads((folder / "request.json").read_text(encoding="utf-8"))
    code = _text(folder / "exit")
    document = _document(folder / "out.json") if code is not None else {}
    ended = (folder / "exit").stat().st_mtime if code is not None else None
    return Run(
        id=folder.name,
        work=Work(Verb(request["verb"]), request["pipeline"], request["options"]),
        state=_state(folder, code),
        started_by=request["started_by"],
        started_at=datetime.fromisoformat(request["started_at"]),
        ended_at=None if ended is None else datetime.fromtimestamp(ended, UTC),
        result=document.get("result"),
        error=document.get("error"),
        log=(_text(folder / "log.txt") or "").splitlines()[-LOG_LINES:] if tail else (),
    )


def _state(folder: Path, code: str | None) -> RunState:
    if code is not None:
        return RunState.DONE if code == "0" else RunState.FAILED
    mark = _text(folder / "process")
    if mark is None:
        return RunState.QUEUED
    pid, created = mark.split()
    try:
        alive = psutil.Process(int(pid)).create_time() == float(created)
    except psutil.NoSuchProcess:
        alive = False
    if alive:
        return RunState.RUNNING
    # It may have ended between the two looks.
    done = _text(folder / "exit")
    return RunState.DONE if done == "0" else RunState.FAILED


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


def _write(path: Path, text: str) -> None:
    staging = path.with_name(path.name + ".part")
    staging.write_text(text, encoding="utf-8")
    staging.replace(path)
