"""Looks at sources, shared: many who ask at once burden a source like one (I11)."""

from __future__ import annotations

import threading
import time
from typing import Final

from tidegate.api.pipelines import Subject
from tidegate.control.records import PipelineStatus
from tidegate.control.status import status

KEPT_SECONDS: Final = 5.0


class SourceLooks:
    """The last status of each pipeline for which its source was asked."""

    def __init__(self) -> None:
        self._locks: dict[str, threading.Lock] = {}
        self._seen: dict[str, tuple[float, PipelineStatus]] = {}

    def status(self, about: Subject) -> PipelineStatus:
        """A status with the source's side, some seconds old at most."""
        name = about.pipeline.pipeline_id
        with self._locks.setdefault(name, threading.Lock()):
            seen = self._seen.get(name)
            if seen is None or time.monotonic() - seen[0] >= KEPT_SECONDS:
                found = status(about.with_secrets(), about.platform, ask_source=True)
                seen = self._seen[name] = (time.monotonic(), found)
            return seen[1]
