"""The same result again and again: in place on a terminal, one after another elsewhere."""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from rich.console import Console, Group
from rich.live import Live
from rich.text import Text

from tidegate.cli.output import Output, Render


def live(
    output: Output, look: Callable[[], Any], render: Render, every: float, stop: threading.Event
) -> None:
    """Look every ``every`` seconds until ``stop``. What a look raises ends it."""
    if output.as_json or not output.out.is_terminal:
        while True:
            output.finish(look(), render)
            if stop.wait(every):
                return
    with Live(console=output.out, auto_refresh=False, screen=True) as view:
        while not stop.is_set():
            view.update(_drawn(output.out, look(), render), refresh=True)
            stop.wait(every)


def _drawn(console: Console, result: Any, render: Render) -> Group:
    """What ``render`` prints, as one piece."""
    with console.capture() as captured:
        render(console, result)
    at = f"{datetime.now(UTC):%H:%M:%S} UTC, Ctrl-C ends"
    return Group(Text.from_ansi(captured.get()), Text(at, "dim"))
