"""What the demo says while it works: numbered steps, each with its clock."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator

from rich.console import Console
from rich.markup import escape


class Story:
    """Prints at once, keeps the duration of every step."""

    def __init__(self, steps: int) -> None:
        self.console = Console(highlight=False, soft_wrap=True)
        self.durations: dict[str, float] = {}
        self._steps = steps
        self._begun = time.monotonic()
        self._step_begun = self._begun

    @property
    def seconds(self) -> float:
        return time.monotonic() - self._begun

    @contextlib.contextmanager
    def step(self, title: str) -> Iterator[None]:
        number = len(self.durations) + 1
        self.console.print(f"[bold]\\[{number}/{self._steps}] {escape(title)}[/bold]")
        self._step_begun = time.monotonic()
        yield
        self.durations[title] = time.monotonic() - self._step_begun

    def say(self, line: str, style: str = "") -> None:
        clock = f"{time.monotonic() - self._step_begun:6.1f} s"
        self.console.print(f"[dim]{clock}[/dim]  {escape(line)}", style=style)
