"""Live state: every pipeline's status and overview, computed once for all who watch."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Any, Final

from starlette.concurrency import run_in_threadpool

from tidegate.api.models.overview import PipelineOverview
from tidegate.api.models.status import PipelineStatus
from tidegate.api.pipelines import Pipelines
from tidegate.api.problems import problem
from tidegate.api.status_caches import StatusCaches
from tidegate.control.overview import overview
from tidegate.control.status import status_of
from tidegate.control.status_cache import StatusCache
from tidegate.errors import TidegateError

EVERY_SECONDS: Final = 2.0
"""Snapshots come at most every few seconds; a look at a lake that did not move costs some
milliseconds."""
STATUS: Final = "status"
OVERVIEW: Final = "overview"
LINES: Final = "lines"

State = dict[str, dict[str, Any]]
"""By pipeline: its status or overview, or its problem."""


class LiveStatus:
    """The newest state of every pipeline, read when somebody asks and it is old enough."""

    def __init__(
        self, pipelines: Pipelines, caches: StatusCaches, every: float = EVERY_SECONDS
    ) -> None:
        self._pipelines, self._caches = pipelines, caches
        self.every = every
        self._statuses = _Shared(lambda: self._read(STATUS, _status), every)
        self._overviews = _Shared(lambda: self._read(OVERVIEW, _overview), every)

    def warm(self) -> None:
        """Read everything once, so that what can be kept is kept."""
        self._read(OVERVIEW, _overview)

    async def current(self) -> State:
        """Each pipeline's whole status. Concurrent askers share one reading."""
        return await self._statuses.newest()

    async def overviews(self) -> State:
        """Each pipeline's overview, likewise."""
        return await self._overviews.newest()

    def _read(self, key: str, view: Callable[[StatusCache], dict[str, Any]]) -> State:
        found = {}
        for known in self._pipelines.all():
            name = known.name
            try:
                if known.pipeline is None:
                    raise known.error or LookupError(name)
                found[name] = {key: view(self._caches.of(known.pipeline))}
            except TidegateError as error:  # one pipeline's trouble is its own
                found[name] = {"problem": problem(error, self._pipelines.paths)}
        return found


class _Shared:
    """What is computed once for all who ask at about the same time."""

    def __init__(self, read: Callable[[], State], every: float) -> None:
        self._read, self._every = read, every
        self._lock = asyncio.Lock()
        self._read_at: float | None = None
        self._state: State = {}

    async def newest(self) -> State:
        async with self._lock:
            now = time.monotonic()
            if self._read_at is None or now - self._read_at >= self._every:
                self._state = await run_in_threadpool(self._read)
                self._read_at = time.monotonic()
            return self._state


def _status(cache: StatusCache) -> dict[str, Any]:
    now = status_of(cache.look(), cache.pipeline, cache.platform, ask_source=False)
    return PipelineStatus.model_validate(now).model_dump(mode="json")


def _overview(cache: StatusCache) -> dict[str, Any]:
    return PipelineOverview.of(overview(cache)).model_dump(mode="json")


def changes(before: State, after: State) -> dict[str, dict[str, Any] | None]:
    """Pipelines that differ; None: gone."""
    told: dict[str, dict[str, Any] | None] = {
        name: state for name, state in after.items() if before.get(name) != state
    }
    return told | dict.fromkeys(before.keys() - after.keys())


def line_changes(before: State, after: State) -> dict[str, dict[str, Any] | None]:
    """The same for overviews, which a pipeline of hundreds of tables does not send whole: beside
    its figures only the lines that differ, by table; null: gone."""
    told = changes(before, after)
    for name, state in told.items():
        old = before.get(name, {}).get(OVERVIEW)
        if state is not None and old is not None and OVERVIEW in state:
            told[name] = _smaller(old, state[OVERVIEW])
    return told


def _smaller(old: dict[str, Any], new: dict[str, Any]) -> dict[str, Any]:
    known = {line["table"]: line for line in old[LINES]}
    now = {line["table"]: line for line in new[LINES]}
    lines: dict[str, Any] = {table: line for table, line in now.items() if known.get(table) != line}
    lines |= dict.fromkeys(known.keys() - now.keys())
    figures = {key: value for key, value in new.items() if key != LINES}
    return {OVERVIEW: figures, LINES: lines}
