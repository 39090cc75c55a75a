"""The frame around jobs, in real processes: arguments, secrets, results, exit codes, signals."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from tidegate.config.secrets import Secrets, write_secrets_file
from tidegate.errors import DataError, ExitCode
from tidegate.jobs.lifeline import OWNER_VARIABLE, STOPPED_STATUS, owner_mark
from tidegate.jobs.result import JobResult, read_result

CANARY = "canary-7f3a"
DEADLINE_SECONDS = 30.0

DOOR = """
import sys
from tidegate.errors import ConfigError, HeldError, RetriableError
from tidegate.jobs.door import main

def job(call):
    {body}

main(job, name="probe", spark=False)
"""


class Door:
    """A job of one's own body, started as a process."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.result = directory / "result.json"
        self.secrets = directory / "secrets.json"
        (directory / "shop.yaml").write_text(
            "pipeline_id: shop\nsource: {database: shop, password: '${NOT_SET_ANYWHERE}'}\n"
        )

    def command(self, body: str, *arguments: str) -> list[str]:
        (self.directory / "door.py").write_text(DOOR.format(body=body))
        write_secrets_file(self.secrets, Secrets.model_validate({"host": "db", "password": CANARY}))
        return [
            *(sys.executable, str(self.directory / "door.py")),
            *("--pipeline", str(self.directory / "shop.yaml"), "--run", "r1"),
            *("--result", str(self.result), "--secrets", str(self.secrets), *arguments),
        ]

    def run(self, body: str, *arguments: str) -> tuple[int, str, JobResult]:
        done = subprocess.run(
            self.command(body, *arguments), capture_output=True, text=True, check=False
        )
        result = read_result(self.result)
        assert result is not None, done.stderr
        return done.returncode, done.stdout + done.stderr, result

    def start(self, body: str, **environment: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            self.command(body),
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, **environment},
        )


@pytest.fixture
def door(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Door:
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[3] / "include"))
    monkeypatch.chdir(tmp_path)
    return Door(tmp_path)


def wait_for(process: subprocess.Popen[str], text: str) -> None:
    """Read the job's lines until it says ``text``."""
    assert process.stderr is not None
    for line in process.stderr:
        if text in line:
            return
    raise AssertionError(f"the job ended without saying {text!r}")


def test_a_result_comes_back_with_the_secrets_used_and_gone(door: Door) -> None:
    status, said, result = door.run(
        "source = call.pipeline.source; "
        "return {'length': len(source.password.get_secret_value()), 'host_ok': source.host == 'db'}"
    )
    assert status == ExitCode.OK
    assert result.result == {"length": len(CANARY), "host_ok": True}
    assert not door.secrets.exists()
    assert CANARY not in said + door.result.read_text()


def test_table_names_arrive_as_they_are(door: Door) -> None:
    names = ["public.a", 'public."odd.name"', "public.with,comma"]
    _, _, result = door.run(
        "return {'tables': [{'table': t} for t in call.tables]}", "--tables", *names
    )
    assert [entry["table"] for entry in result.tables] == names


@pytest.mark.parametrize(
    ("kind", "status"), [("ConfigError", 2), ("HeldError", 1), ("RetriableError", 1)]
)
def test_errors_become_results_and_exit_codes(door: Door, kind: str, status: int) -> None:
    code, said, result = door.run(f"raise {kind}('probe.reason', 'so it is', hint='do that')")
    assert code == status
    assert type(result.error).__name__ == kind
    assert "so it is [probe.reason] → do that" in said
    assert "Traceback" not in said


def test_an_unexpected_error_shows_where_but_not_what(door: Door) -> None:
    """Messages of foreign exceptions may quote row values (I9)."""
    hidden = CANARY.encode().hex()  # the frames show source lines, which are ours to show
    code, said, result = door.run(f"raise ValueError(bytes.fromhex('{hidden}').decode())")
    assert code == ExitCode.RUNTIME
    assert result.error is not None
    assert result.error.code == "job.unexpected"
    assert "ValueError" in said
    assert "door.py" in said
    assert CANARY not in said + door.result.read_text()


def test_a_broken_connection_may_be_tried_again(door: Door) -> None:
    _, _, result = door.run("raise ConnectionResetError(104, 'Connection reset by peer')")
    assert result.error is not None
    assert result.error.decision.value == "retry"


def test_sigterm_runs_the_clean_up_and_says_so(door: Door) -> None:
    process = door.start(
        "import threading\n"
        "    try:\n"
        "        call.progress('ready', 1, 1, 'step')\n"
        "        threading.Event().wait()\n"
        "    finally:\n"
        "        open('cleaned', 'w').close()"
    )
    with process:
        wait_for(process, "ready")
        process.send_signal(signal.SIGTERM)
        assert process.wait(DEADLINE_SECONDS) == STOPPED_STATUS
    assert (door.directory / "cleaned").exists()
    result = read_result(door.result)
    assert result is not None
    assert result.error is not None
    assert result.error.code == "job.stopped"


def test_the_job_ends_when_its_owner_is_killed(door: Door) -> None:
    """The owner is not the parent: between a task and its driver stands the JVM."""
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as owner:
        process = door.start(
            "import threading\n"
            "    call.progress('ready', 1, 1, 'step')\n"
            "    threading.Event().wait()",
            **{OWNER_VARIABLE: owner_mark(owner.pid)},
        )
        with process:
            wait_for(process, "ready")
            owner.kill()
            assert process.wait(DEADLINE_SECONDS) == STOPPED_STATUS


def test_the_job_ends_when_its_parent_is_killed(door: Door) -> None:
    command = json.dumps(
        door.command(
            "import threading\n"
            "    call.progress('ready', 1, 1, 'step')\n"
            "    threading.Event().wait()"
        )
    )
    starter = f"import subprocess\nsubprocess.run({command})"
    with subprocess.Popen(
        [sys.executable, "-c", starter], stderr=subprocess.PIPE, text=True
    ) as parent:
        wait_for(parent, "ready")
        (job,) = psutil.Process(parent.pid).children()
        parent.kill()
        deadline = time.monotonic() + DEADLINE_SECONDS
        while alive(job):
            assert time.monotonic() < deadline
            time.sleep(0.05)  # polling a process of another parent, which cannot be waited for


def alive(process: psutil.Process) -> bool:
    """A zombie is dead; so is a process that ends while it is looked at."""
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def test_results_survive_the_way_through_the_file(tmp_path: Path) -> None:
    from tidegate.jobs.result import write_result

    error = DataError("cast.scale", "too many digits", hint="see the column")
    outcome = JobResult("apply", "r", 1.0, {"tables": [{"table": "a"}]}, error)
    write_result(tmp_path / "result.json", outcome)
    back = read_result(tmp_path / "result.json")
    assert back is not None
    assert back.tables == [{"table": "a"}]
    assert isinstance(back.error, DataError)
    assert read_result(tmp_path / "other.json") is None
