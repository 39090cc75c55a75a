"""The server's own runner: real child processes of the command line, found again by id."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.api import PIPELINE, Served, served
from tidegate.api.problems import Refused
from tidegate.api.processes import ProcessRunner
from tidegate.api.runner import Run, RunState, Verb, Work
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


def test_the_servers_token_is_not_the_jobs(
    runner: ProcessRunner, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tidegate.api.processes import _environment

    monkeypatch.setenv("TIDEGATE_API_TOKEN", "not-for-jobs-not-for-jobs")
    environment = _environment(ANN)
    assert "not-for-jobs-not-for-jobs" not in environment.values()
    assert "ann" in environment["TIDEGATE_CALLER"]
