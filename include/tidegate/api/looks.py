"""Looks at sources and lakes, shared: many who ask at once burden a source like one (I11)."""

from __future__ import annotations

import threading
import time
from typing import Final

from tidegate.api.pipelines import Subject
from tidegate.api.status_caches import StatusCaches
from tidegate.config.pipeline import PipelineConfig
from tidegate.config.platform import PlatformConfig
from tidegate.control.records import PipelineStatus
from tidegate.control.status import status_of
from tidegate.control.status_cache import Look

KEPT_SECONDS: Final = 5.0


class SourceLooks:
    """The last status of each pipeline for which its source was asked; and its lake's records."""

    def __init__(self, caches: StatusCaches) -> None:
        self._caches = caches
        self._locks: dict[str, threading.Lock] = {}
        self._seen: dict[str, tuple[float, PipelineStatus]] = {}

    def status(self, about: Subject) -> PipelineStatus:
        """A status with the source's side, some seconds old at most."""
        name = about.pipeline.pipeline_id
        with self._locks.setdefault(name, threading.Lock()):
            seen = self._seen.get(name)
            if seen is None or time.monotonic() - seen[0] >= KEPT_SECONDS:
                lake = self._caches.of(about.pipeline).look()
                found = status_of(lake, about.with_secrets(), about.platform, ask_source=True)
                seen = self._seen[name] = (time.monotonic(), found)
            return seen[1]

    def status_of_lake(self, pipeline: PipelineConfig, platform: PlatformConfig) -> PipelineStatus:
        """A status without the source's side: the lake's records now."""
        return status_of(self._caches.of(pipeline).look(), pipeline, platform, ask_source=False)

    def lake(self, about: Subject) -> Look:
        """The lake's records of a pipeline now."""
        return self._caches.of(about.pipeline).look()
