"""Progress of long steps: one call, shown by whoever listens (log, Airflow task, CLI display)."""

from __future__ import annotations

import logging
import threading
import time
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

from tidegate.observability import log

LOG_EVERY_SECONDS: Final = 5.0
"""A log line per stage at most this often; the last one of a stage always."""


class Progress(Protocol):
    """Told how far a stage is. Called from any thread, often; must be quick and must not raise."""

    def __call__(
        self, stage: str, done: int, total: int | None, unit: str, **facts: Any
    ) -> None: ...


def silent(stage: str, done: int, total: int | None, unit: str, **facts: Any) -> None:
    """Nobody listens."""


@dataclass(slots=True)
class Pace:
    """How fast a stage goes, from its first report on."""

    began: float = field(default_factory=time.monotonic)
    first: int = 0
    told: float = 0.0

    def rate(self, done: int) -> float | None:
        """Units per second, None before it can be known."""
        elapsed = time.monotonic() - self.began
        gained = done - self.first
        return gained / elapsed if elapsed > 0 and gained > 0 else None

    def left(self, done: int, total: int | None) -> float | None:
        """Seconds left at this pace."""
        rate = self.rate(done)
        return (total - done) / rate if rate and total is not None else None


class LogProgress:
    """Progress as log lines: stage, done of total, rate, time left."""

    def __init__(
        self,
        logger: logging.Logger | None = None,
        every: float = LOG_EVERY_SECONDS,
        **context: Any,
    ) -> None:
        self._logger = logger or log.get("tidegate.progress")
        self._every = every
        self._context = context
        self._paces: dict[str, Pace] = {}
        self._lock = threading.Lock()

    def __call__(self, stage: str, done: int, total: int | None, unit: str, **facts: Any) -> None:
        now = time.monotonic()
        finished = total is not None and done >= total
        with self._lock:
            pace = self._paces.setdefault(stage, Pace(first=done))
            if not finished and pace.told and now - pace.told < self._every:
                return
            pace.told = now
            if finished:
                del self._paces[stage]
        fields: dict[str, Any] = {"done": done, "unit": unit}
        if total is not None:
            fields["total"] = total
        rate, left = pace.rate(done), pace.left(done, total)
        if rate is not None:
            fields["rate"] = f"{rate:,.0f} {unit}/s"
        if left is not None and not finished:
            fields["left_seconds"] = round(left)
        if facts:
            fields["facts"] = facts
        log.event(self._logger, stage, **self._context, **fields)
