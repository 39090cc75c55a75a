"""Dag runs, triggered and watched together, told as they go."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from demo.airflow_api import FINAL_STATES, AirflowApi
from demo.story import Story
from demo.task_logs import TaskLogs
from tidegate.errors import FatalError, RetriableError
from tidegate.jobs.lines import reason

RUN_SECONDS: Final = 1200.0
POLL_SECONDS: Final = 0.7
ENDED: Final = frozenset({"success", "failed", "skipped", "upstream_failed"})
_TOLD: Final = frozenset({"running", "deferred", "success", "failed", "up_for_retry", "skipped"})
_BOOKKEEPING: Final = ("failed_tables", "report")


_FIGURES: Final = ("rows", "inserted", "updated", "deleted", "lake_rows", "actions")

Look = Callable[[], None]


@dataclass
class Run:
    """One Dag run and what its tasks handed back."""

    dag_id: str
    run_id: str
    seen: dict[str, str] = field(default_factory=dict)
    state: str = "queued"
    results: dict[str, dict[str, Any]] = field(default_factory=dict)


class Runs:
    """Triggers and watches; the demo's hands on Airflow."""

    def __init__(self, api: AirflowApi, story: Story, logs: Path) -> None:
        self._api = api
        self._story = story
        self._logs = TaskLogs(logs)
        self.done: list[Run] = []

    def trigger(self, dag_id: str, conf: dict[str, Any] | None = None) -> Run:
        run = Run(dag_id, self._api.trigger(dag_id, conf))
        self._story.say(f"{dag_id} triggered")
        return run

    def watch(self, runs: Sequence[Run], meanwhile: Look | None = None) -> None:
        """Until all have ended; a run that failed ends the demo."""
        self._until(lambda: all(run.state in FINAL_STATES for run in runs), runs, meanwhile)
        self.done += runs
        for run in runs:
            if run.state != "success":
                raise self._failure(run)

    def watch_task(self, runs: Sequence[Run], task: str, meanwhile: Look | None = None) -> None:
        """Until one task of the last run has ended, or that run itself."""
        run = runs[-1]
        self._until(lambda: run.seen.get(task) in ENDED or run.state in ENDED, runs, meanwhile)

    def _until(self, over: Callable[[], bool], runs: Sequence[Run], meanwhile: Look | None) -> None:
        deadline = time.monotonic() + RUN_SECONDS
        while True:
            for run in runs:
                if run.state not in FINAL_STATES:
                    self._look(run)
            if meanwhile:
                meanwhile()
            if over():
                return
            if time.monotonic() > deadline:
                raise RetriableError(
                    "demo.too_slow",
                    f"{runs[0].dag_id} did not end within {RUN_SECONDS:.0f} s",
                    hint="make up, then read the run's task logs in the Airflow UI",
                )
            time.sleep(POLL_SECONDS)  # polling the API server

    def _look(self, run: Run) -> None:
        for line in self._logs.progress(run.dag_id, run.run_id):
            self._story.say(f"    {line}", "dim")
        state = self._api.state(run.dag_id, run.run_id)  # first: a final one means theirs are too
        for task in self._api.tasks(run.dag_id, run.run_id):
            if run.seen.get(task.label) != task.state:
                run.seen[task.label] = task.state
                self._tell(run, task.label, task.state)
                if task.state == "success":
                    self._collect(run, task.label)
        run.state = state

    def _tell(self, run: Run, label: str, state: str) -> None:
        if state not in _TOLD or label.startswith(_BOOKKEEPING):
            return
        style = "red" if state in {"failed", "up_for_retry"} else ""
        self._story.say(f"{run.dag_id} · {label}: {state}", style)

    def _collect(self, run: Run, label: str) -> None:
        value = self._api.returned(run.dag_id, run.run_id, label)
        if not isinstance(value, dict) or "tables" not in value:
            return
        run.results[label] = value
        for entry in value["tables"]:
            self._story.say(f"    {brief(entry)}", "dim")

    def _failure(self, run: Run) -> FatalError:
        failed = [label for label, state in run.seen.items() if state == "failed"]
        return FatalError(
            "demo.run_failed",
            f"{run.dag_id} failed in {', '.join(failed) or 'no task'}",
            hint="make up, then read the run's task logs in the Airflow UI",
        )


def brief(entry: Mapping[str, Any]) -> str:
    """``public.orders: applied, 120 inserted, 40 updated``"""
    figures = [
        f"{entry[name]:,} {name.replace('_', ' ')}"
        for name in _FIGURES
        if isinstance(entry.get(name), int) and entry[name]
    ]
    return f"{entry['table']}: " + ", ".join(
        part for part in (str(entry.get("status", "")), *figures, reason(entry)) if part
    )
