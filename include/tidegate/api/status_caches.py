"""What a server keeps of each pipeline's lake between two questions."""

from __future__ import annotations

import threading

from tidegate.config.pipeline import PipelineConfig
from tidegate.config.platform import PlatformConfig
from tidegate.control.status_cache import StatusCache


class StatusCaches:
    """One cache per pipeline, made anew when its file says something else. Thread-safe."""

    def __init__(self, platform: PlatformConfig) -> None:
        self._platform = platform
        self._lock = threading.Lock()
        self._known: dict[str, StatusCache] = {}

    def of(self, pipeline: PipelineConfig) -> StatusCache:
        with self._lock:
            found = self._known.get(pipeline.pipeline_id)
            if found is None or found.pipeline != pipeline:
                found = StatusCache(pipeline, self._platform)
                self._known[pipeline.pipeline_id] = found
            return found
