"""How far a running task is, read from its log file as it grows."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

PROGRESS = re.compile(r"INFO\s+(?P<what>.+?)\s+done=(?P<done>\d+)\s+unit=(?P<unit>\w+)(?P<rest>.*)")
TOTAL = re.compile(r"\btotal=(\d+)")
RATE = re.compile(r"'rows_per_second': (\d+)")


class TaskLogs:
    """Airflow's task logs on this machine: JSON lines, one file per try."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._offsets: dict[Path, int] = {}

    def progress(self, dag_id: str, run_id: str) -> Iterator[str]:
        """What was said since the last call about how far things are."""
        for file in sorted((self._folder / f"dag_id={dag_id}" / f"run_id={run_id}").rglob("*.log")):
            for event in self._events(file):
                told = in_words(event)
                if told:
                    yield told

    def _events(self, file: Path) -> Iterator[str]:
        with file.open("rb") as log:
            log.seek(self._offsets.get(file, 0))
            for line in log:
                if not line.endswith(b"\n"):  # still being written
                    return
                self._offsets[file] = self._offsets.get(file, 0) + len(line)
                yield str(json.loads(line).get("event", ""))


def in_words(event: str) -> str | None:
    """``sweep public.orders: 4 of 8 chunks (9,668 rows/s)``; None for other lines."""
    match = PROGRESS.search(event)
    if match is None:
        return None
    total, rate = TOTAL.search(match["rest"]), RATE.search(match["rest"])
    text = f"{match['what']}: {match['done']}"
    text += f" of {total[1]} {match['unit']}" if total else f" {match['unit']}"
    return text + (f" ({int(rate[1]):,} rows/s)" if rate else "")
