"""Registering schemas while a pipeline runs: in a thread, so that no round waits for a registry."""

from __future__ import annotations

import logging
import threading

from tidegate.config.pipeline import PipelineConfig
from tidegate.config.platform import PlatformConfig
from tidegate.errors import TidegateError
from tidegate.jobs.register_schemas import run_register
from tidegate.observability import log

_LOG = log.get(__name__)


class Registering:
    """At most one attempt at a time; none where no registry is used."""

    def __init__(self, pipeline: PipelineConfig, platform: PlatformConfig) -> None:
        self._pipeline = pipeline
        self._platform = platform
        self._thread: threading.Thread | None = None

    def begin(self) -> None:
        """Returns at once; an attempt that is under way is left alone."""
        under_way = self._thread is not None and self._thread.is_alive()
        if self._platform.registry_url is None or under_way:
            return
        self._thread = threading.Thread(target=self._attempt, name="tidegate-registry", daemon=True)
        self._thread.start()

    def finish(self) -> None:
        """Let an attempt end, within the time it has anyway."""
        if self._thread is not None:
            config = self._platform.schema_registry
            self._thread.join(config.max_seconds + config.timeout_seconds)

    def _attempt(self) -> None:
        try:
            run_register(self._pipeline, self._platform)
        except TidegateError as error:  # the lake's: the next round meets it too
            log.event(
                _LOG,
                "schemas were not registered",
                level=logging.WARNING,
                code=error.code,
                reason=error.message,
            )
