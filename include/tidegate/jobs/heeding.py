"""A stop that is said while a capture follows the source: it ends at the next boundary."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from tidegate.config.pipeline import PipelineConfig
from tidegate.config.platform import PlatformConfig
from tidegate.errors import TidegateError
from tidegate.lake.catalog import open_catalog
from tidegate.lake.pauses import Pauses
from tidegate.observability import log

LOOK_SECONDS: Final = 5.0
"""One metadata read; people who stop a pipeline wait this long at most."""
_LOG = log.get(__name__)


@contextmanager
def heeding_stops(
    pipeline: PipelineConfig,
    platform: PlatformConfig,
    stop: threading.Event,
    look_seconds: float = LOOK_SECONDS,
) -> Iterator[None]:
    """Within the block, ``stop`` is set once somebody stops the pipeline."""
    over = threading.Event()

    def look() -> None:
        pauses = Pauses(open_catalog(platform, pipeline), pipeline)
        while not over.wait(look_seconds):
            try:
                pause = pauses.stopped()
            except (TidegateError, OSError) as error:
                # The capture meets the same trouble and judges it; the next look may see again.
                told = type(error).__name__
                log.event(_LOG, "no look at stops", level=logging.WARNING, reason=told)
                continue
            if pause is not None:
                log.event(_LOG, "stopped", actor=pause.actor, reason=pause.reason)
                stop.set()
                return

    thread = threading.Thread(target=look, name="tidegate-stops", daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
