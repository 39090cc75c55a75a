"""Live state: every pipeline's status, computed once for all who watch."""

from __future__ import annotations

import asyncio
import time
from typing import Any, Final

from starlette.concurrency import run_in_threadpool

from tidegate.api.models.status import PipelineStatus
from tidegate.api.pipelines import Pipelines
from tidegate.api.problems import problem
from tidegate.control.status import status
from tidegate.errors import TidegateError

EVERY_SECONDS: Final = 2.0
"""Snapshots come at most every few seconds; reading their metadata costs some milliseconds."""


State = dict[str, dict[str, Any]]
"""By pipeline: its status, or its problem."""


class LiveStatus:
    """The newest status of every pipeline, read when somebody asks and it is old enough."""

    def __init__(self, pipelines: Pipelines, every: float = EVERY_SECONDS) -> None:
        self._pipelines = pipelines
        self.every = every
        self._lock = asyncio.Lock()
        self._read_at: float | None = None
        self._state: State = {}

    async def current(self) -> State:
        """By pipeline. Concurrent askers share one reading."""
        async with self._lock:
            now = time.monotonic()
            if self._read_at is None or now - self._read_at >= self.every:
                self._state = await run_in_threadpool(self._read)
                self._read_at = time.monotonic()
            return self._state

    def _read(self) -> State:
        found = {}
        for known in self._pipelines.all():
            name = known.name
            try:
                if known.pipeline is None:
                    raise known.error or LookupError(name)
                now = status(known.pipeline, self._pipelines.platform, ask_source=False)
                view = PipelineStatus.model_validate(now)
                found[name] = {"status": view.model_dump(mode="json")}
            except TidegateError as error:  # one pipeline's trouble is its own
                found[name] = {"problem": problem(error, self._pipelines.paths)}
        return found


def changes(before: State, after: State) -> dict[str, dict[str, Any] | None]:
    """Pipelines that differ; None: gone."""
    told: dict[str, dict[str, Any] | None] = {
        name: state for name, state in after.items() if before.get(name) != state
    }
    return told | dict.fromkeys(before.keys() - after.keys())
