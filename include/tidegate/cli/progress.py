"""Progress on stderr: live bars on a terminal, plain lines anywhere else."""

from __future__ import annotations

import threading
import time
from types import TracebackType
from typing import Any, Final

from rich.progress import BarColumn, Progress, SpinnerColumn, TaskID, TextColumn, TimeElapsedColumn

from tidegate.cli.output import Output
from tidegate.observability.progress import Pace

LINE_EVERY_SECONDS: Final = 5.0
"""Without a terminal: a line per stage at most this often, and its last one always."""


class ProgressView:
    """What jobs are given as ``progress``: callable from any thread, never raises."""

    def __init__(self, output: Output) -> None:
        self._output = output
        self._bars: Progress | None = None
        self._tasks: dict[str, TaskID] = {}
        self._paces: dict[str, Pace] = {}
        self._told: dict[str, int] = {}
        self._lock = threading.Lock()

    def __enter__(self) -> ProgressView:
        if self._output.err.is_terminal:
            self._bars = Progress(
                SpinnerColumn(),
                TextColumn("{task.description}"),
                BarColumn(bar_width=24),
                TextColumn("{task.fields[numbers]}"),
                TimeElapsedColumn(),
                console=self._output.err,
                transient=True,
            )
            self._bars.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._bars is not None:
            self._bars.stop()
            self._bars = None

    def __call__(self, stage: str, done: int, total: int | None, unit: str, **facts: Any) -> None:
        finished = total is not None and done >= total
        with self._lock:
            pace = self._paces.setdefault(stage, Pace(first=done))
            numbers = _numbers(pace, done, total, unit, facts)
            if self._bars is not None:
                self._bar(self._bars, stage, done, total, numbers)
            elif finished or self._is_news(stage, done, pace):
                pace.told = time.monotonic()
                self._told[stage] = done
                self._output.note(f"{stage}: {numbers}")
            if finished:
                self._end(stage, numbers)

    def say(self, line: str) -> None:
        """One line above the bars."""
        with self._lock:
            console = self._output.err if self._bars is None else self._bars.console
            console.print(line, style="dim", markup=False, highlight=False)

    def _is_news(self, stage: str, done: int, pace: Pace) -> bool:
        if self._told.get(stage) == done:
            return False
        return not pace.told or time.monotonic() - pace.told >= LINE_EVERY_SECONDS

    def _bar(self, bars: Progress, stage: str, done: int, total: int | None, numbers: str) -> None:
        if stage not in self._tasks:
            self._tasks[stage] = bars.add_task(stage, total=total, numbers=numbers)
        bars.update(self._tasks[stage], completed=done, total=total, numbers=numbers)

    def _end(self, stage: str, numbers: str) -> None:
        self._paces.pop(stage, None)
        task = self._tasks.pop(stage, None)
        if self._bars is not None and task is not None:
            self._bars.remove_task(task)
            line = f"{stage}: {numbers}"
            self._bars.console.print(line, style="dim", markup=False, highlight=False)


def _numbers(pace: Pace, done: int, total: int | None, unit: str, facts: dict[str, Any]) -> str:
    parts = [f"{done:,} {unit}" if total is None else f"{done:,} / {total:,} {unit}"]
    rate, left = pace.rate(done), pace.left(done, total)
    if rate is not None:
        parts.append(f"{rate:,.0f}/s" if rate >= 10 else f"{rate:.1f}/s")
    if left:
        parts.append(f"{left:,.0f} s left")
    parts += [f"{name.replace('_', ' ')} {value}" for name, value in facts.items()]
    return ", ".join(parts)
