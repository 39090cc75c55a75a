"""A server's own runner: the command line's verbs as child processes, one directory per run.

Each may be a JVM, so few are at work at once; the others wait in the order they came, as files, so
that a server that was started again goes on with them (:meth:`ProcessRunner.resume`). A lock of the
runs' folder makes one decision at a time, of several servers on one lake too. The child writes its
output itself and outlives the server.
"""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
import threading
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from tidegate.api import run_files
from tidegate.api.pipelines import Pipelines
from tidegate.api.problems import Refused
from tidegate.api.runner import Run, RunState, Verb, Work, other_work, run_name
from tidegate.errors import TidegateError
from tidegate.observability.caller import Caller

RUNS_AT_ONCE: Final = 2
"""Each is a JVM of two gigabytes by default."""
RUNS_WAITING: Final = 20
"""More than a person starts by hand; a loop that starts them for ever is told to stop."""
_ENTRY: Final = "import sys; from tidegate.cli.main import main; main(sys.argv[1:])"
_SUPERVISE: Final = """
import subprocess, sys, pathlib
if sys.stdin.buffer.readline() != b"go\\n":
    sys.exit(1)
home = pathlib.Path(sys.argv[1])
with (home / "out.json").open("wb") as out, (home / "log.txt").open("wb") as log:
    code = subprocess.run(sys.argv[2:], stdin=subprocess.DEVNULL, stdout=out, stderr=log).returncode
part = home / "exit.part"
part.write_text(str(code))
part.replace(home / "exit")
"""
"""Outlives the server: whoever restarts it finds how the run ended. Does nothing before it is told
that its number is noted: a server that dies in between leaves a run that waits, not one that two
processes do."""
_VERBS: Final[Mapping[Verb, tuple[str, ...]]] = {
    Verb.SWEEP: ("sweep",),
    Verb.VERIFY: ("verify",),
    Verb.MAINTAIN: ("maintain",),
    Verb.REDRIVE: ("dead-letters", "redrive"),
    Verb.ROLLBACK: ("lakehouse", "rollback"),
    Verb.SET_OFFSET: ("offsets", "set"),
}


@dataclass(frozen=True, slots=True)
class RunLimits:
    """How much work a server takes."""

    at_once: int = RUNS_AT_ONCE
    waiting: int = RUNS_WAITING


class ProcessRunner:
    """Implements ``Runner`` below ``home``."""

    def __init__(self, pipelines: Pipelines, home: Path, limits: RunLimits | None = None) -> None:
        self._pipelines = pipelines
        self._home = home
        self._limits = limits or RunLimits()

    def start(self, work: Work, caller: Caller, key: str | None) -> Run:
        self._pipelines.get(work.pipeline)
        run_id = run_name(work, caller, key or uuid.uuid4().hex)
        with self._turn():
            folder = self._home / run_id
            if folder.exists():
                if run_files.Request.of(folder).work.digest != work.digest:
                    raise other_work()
            else:
                self._refuse_too_many()
                run_files.place(self._home, run_id, work, caller)
                self._begin()
            return self._told(folder, tail=False)

    def find(self, pipeline: str, run_id: str) -> Run | None:
        known = run_files.RUN_ID.match(run_id) and run_id.startswith(f"{pipeline}-")
        folder = self._home / run_id
        if not known or not (folder / "request.json").is_file():
            return None
        return self._told(folder, tail=True)

    def recent(self, pipeline: str, limit: int) -> list[Run]:
        own = [f for f in run_files.folders(self._home) if f.name.rpartition("-")[0] == pipeline]
        runs = [self._told(folder, tail=False) for folder in own]
        runs.sort(key=lambda run: str(run.started_at), reverse=True)
        return runs[:limit]

    def resume(self) -> None:
        """Go on with what an earlier server left waiting, or at work."""
        with self._turn():
            for folder in self._in_state(RunState.RUNNING):
                process = run_files.process(folder)
                if process is not None:
                    self._when_ended(process.wait)
            self._begin()

    def _told(self, folder: Path, *, tail: bool) -> Run:
        """The run, without where files lie on this server."""
        run, hidden = run_files.read(folder, tail=tail), self._pipelines.paths.hidden
        return replace(run, error=hidden(run.error), log=hidden(run.log))

    @contextmanager
    def _turn(self) -> Iterator[None]:
        """One decision at a time."""
        self._home.mkdir(parents=True, exist_ok=True, mode=0o700)
        with (self._home / "lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)  # released as the file is closed
            yield

    def _in_state(self, wanted: RunState) -> list[Path]:
        return [f for f in run_files.folders(self._home) if run_files.state(f) is wanted]

    def _refuse_too_many(self) -> None:
        running = len(self._in_state(RunState.RUNNING))
        waiting = len(self._in_state(RunState.QUEUED))
        if running + waiting >= self._limits.at_once + self._limits.waiting:
            raise Refused(
                429,
                "api.too_many_runs",
                f"{running} runs are at work and {waiting} wait: no more are taken",
                hint="try again when some have ended; GET …/connectors/{name}/runs shows them",
            )

    def _begin(self) -> None:
        """Start what may be started, the oldest first."""
        free = self._limits.at_once - len(self._in_state(RunState.RUNNING))
        waiting = self._in_state(RunState.QUEUED)
        waiting.sort(key=lambda folder: run_files.Request.of(folder).asked_at)
        for folder in waiting[: max(free, 0)]:
            request = run_files.Request.of(folder)
            try:
                file = self._pipelines.get(request.work.pipeline).file
            except TidegateError as error:  # gone, or broken, while the run waited
                run_files.note_failure(folder, dict(error.to_dict()))
            else:
                self._launch(folder, request, file)

    def _launch(self, folder: Path, request: run_files.Request, file: Path) -> None:
        command = [sys.executable, "-c", _ENTRY, *_VERBS[request.work.verb], str(file), "--json"]
        command += arguments(request.work)
        if self._pipelines.platform_file is not None:
            command += ["--platform-config", str(self._pipelines.platform_file)]
        # A session of its own: stopping the server with ^C does not stop the work.
        process = subprocess.Popen(
            [sys.executable, "-c", _SUPERVISE, str(folder), *command],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env=_environment(request.caller),
            start_new_session=True,
        )
        assert process.stdin is not None
        with process.stdin as told:  # closed without a word if the note cannot be written
            run_files.note_process(folder, process.pid)
            told.write(b"go\n")
        self._when_ended(process.wait)

    def _when_ended(self, wait: Callable[[], object]) -> None:
        """The next one's turn, once this one has ended."""

        def follow() -> None:
            wait()
            with self._turn():
                self._begin()

        threading.Thread(target=follow, daemon=True).start()


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
