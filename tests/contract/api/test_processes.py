"""The server's own runner: real child processes of the command line, found again by id."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.api import PIPELINE, Served, served
from tidegate.api import run_files
from tidegate.api.pipelines import Pipelines
from tidegate.api.problems import Refused
from tidegate.api.processes import _SUPERVISE, ProcessRunner, RunLimits
from tidegate.api.runner import Run, RunState, Verb, Work, run_name
from tidegate.observability.caller import Caller, Surface

ANN = Caller("ann", Surface.API)
WORK = Work(Verb.VERIFY, "shop", {"tables": ["public.orders"]})
SECONDS = 60


@pytest.fixture
def api(tmp_path: Path) -> Iterator[Served]:
    yield from served(tmp_path)


@pytest.fixture
def runner(api: Served, tmp_path: Path) -> ProcessRunner:
    """On a pipeline whose password is not set: every verb that asks the source ends at once."""
    text = PIPELINE.replace("planted-s3cret-never-shown", "${NO_SUCH_PASSWORD}")
    (api.pipelines.directory / "shop.yaml").write_text(text)
    return ProcessRunner(api.pipelines, tmp_path / "runs")


def ended(runner: ProcessRunner, run: Run) -> Run:
    until = time.monotonic() + SECONDS
    while time.monotonic() < until:
        found = runner.find("shop", run.id)
        assert found is not None
        if found.state in (RunState.DONE, RunState.FAILED):
            return found
        time.sleep(0.1)  # a poll with a deadline: the process tells nobody
    raise AssertionError("the run did not end")


def test_a_run_is_started_once_found_again_and_says_why_it_failed(
    runner: ProcessRunner, tmp_path: Path
) -> None:
    started = runner.start(WORK, ANN, "the-same-key")
    found = ended(runner, started)
    assert found.state is RunState.FAILED and found.ended_at is not None
    assert found.error is not None and found.error["code"].startswith("config.")
    assert runner.start(WORK, ANN, "the-same-key").id == started.id
    # Another caller's key is another key, whatever it says.
    assert run_name(WORK, Caller("bob", Surface.API), "the-same-key") != started.id
    with pytest.raises(Refused) as other:
        runner.start(Work(Verb.VERIFY, "shop"), ANN, "the-same-key")
    assert other.value.status == 409
    # A server that was started again finds it too.
    again = ProcessRunner(runner._pipelines, tmp_path / "runs")
    assert again.find("shop", started.id) == found
    assert [run.id for run in again.recent("shop", 5)] == [started.id]
    assert again.find("shopping", started.id) is None
    assert again.find("shop", "../../etc/passwd") is None
    # Its process gone without a word: the pid is someone else's now.
    folder = tmp_path / "runs" / started.id
    (folder / "exit").unlink()
    (folder / "process").write_text(f"{os.getpid()} 1.0")
    dead = again.find("shop", started.id)
    assert dead is not None and dead.state is RunState.FAILED


@pytest.fixture
def bounded(api: Served, tmp_path: Path) -> tuple[ProcessRunner, Path]:
    """One run at work and one that waits; each reads its platform file from a pipe, so that it
    lasts until somebody writes one."""
    pipe = tmp_path / "platform.pipe"
    os.mkfifo(pipe)
    pipelines = Pipelines(api.pipelines.directory, api.platform, pipe)
    return ProcessRunner(pipelines, tmp_path / "bounded", RunLimits(at_once=1, waiting=1)), pipe


def test_runs_wait_their_turn_and_too_many_are_refused(
    api: Served, bounded: tuple[ProcessRunner, Path]
) -> None:
    runner, pipe = bounded
    api.app.state.runner = runner
    path, body = "/connectors/shop/verify", {"tables": ["public.orders"]}
    first = api.post(path, body, headers={"idempotency-key": "the-first-one"}).json()
    second = api.post(path, body).json()
    assert (first["state"], second["state"]) == ("running", "queued")
    refused = api.post(path, body)
    assert (refused.status_code, refused.json()["code"]) == (429, "api.too_many_runs")
    assert int(refused.headers["retry-after"]) > 0
    again = api.post(path, body, headers={"idempotency-key": "the-first-one"})
    assert again.json()["id"] == first["id"], "what was taken is known, however full it is"
    for run in (first, second):
        with pipe.open("w") as told:  # waits until the run reads it
            told.write("no: platform\n")
        done = runner.find("shop", run["id"])
        assert done is not None and ended(runner, done).error is not None
    assert api.post(path, body).status_code == 202
    with pipe.open("w") as told:
        told.write("no: platform\n")


def test_a_server_goes_on_with_what_an_earlier_one_left(
    runner: ProcessRunner, tmp_path: Path
) -> None:
    home = tmp_path / "runs"
    home.mkdir()
    # One server died before it began the run, another between its note and its word.
    waiting = run_files.place(home, run_name(WORK, ANN, "waiting"), WORK, ANN)
    noted = run_files.place(home, run_name(WORK, ANN, "noted"), WORK, ANN)
    gone = run_files.place(home, run_name(WORK, ANN, "gone"), Work(Verb.VERIFY, "gone"), ANN)
    left = subprocess.Popen(
        [sys.executable, "-c", _SUPERVISE, str(noted), "false"], stdin=subprocess.PIPE
    )
    run_files.note_process(noted, left.pid)
    assert run_files.state(noted) is RunState.RUNNING
    left.communicate(b"")
    assert left.returncode == 1 and not (noted / "exit").exists(), "nothing was done"
    assert run_files.state(noted) is RunState.QUEUED
    runner.resume()
    for folder in (waiting, noted):
        found = runner.find("shop", folder.name)
        assert found is not None and ended(runner, found).error is not None
        assert found.started_by == "ann (api)"
    lost = run_files.read(gone, tail=False)
    assert lost.state is RunState.FAILED and lost.error
    assert lost.error["code"] == "api.no_such_pipeline"


def test_the_servers_token_is_not_the_jobs(
    runner: ProcessRunner, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tidegate.api.processes import _environment

    monkeypatch.setenv("TIDEGATE_API_TOKEN", "not-for-jobs-not-for-jobs")
    environment = _environment(ANN)
    assert "not-for-jobs-not-for-jobs" not in environment.values()
    assert "ann" in environment["TIDEGATE_CALLER"]
