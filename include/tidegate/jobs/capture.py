"""Capture: read the source's log into the change log. No JVM.

``python -m tidegate.jobs.capture`` is the process Airflow starts.
"""

from __future__ import annotations

import threading
import uuid
from typing import Any

from tidegate.config.pipeline import PipelineConfig
from tidegate.config.platform import PlatformConfig
from tidegate.config.secrets import Secrets
from tidegate.connectors.registry import open_source
from tidegate.jobs import door
from tidegate.lake.catalog import open_catalog
from tidegate.lake.change_log import ChangeLog
from tidegate.lake.reports import Reports
from tidegate.lake.schema_history import SchemaHistory
from tidegate.observability.progress import Progress, silent
from tidegate.transports.embedded import EmbeddedEventSource
from tidegate.transports.protocol import CaptureResult, Until


def run_capture(
    pipeline: PipelineConfig,
    platform: PlatformConfig,
    *,
    until: Until = "now",
    stop: threading.Event | None = None,
    progress: Progress = silent,
    secrets: Secrets | None = None,
    run: str | None = None,
) -> CaptureResult:
    """Capture up to ``until``: where the log stands now, a position, or (None) until ``stop``."""
    catalog = open_catalog(platform, pipeline)
    source = open_source(pipeline, platform, secrets)
    try:
        events = EmbeddedEventSource(
            source,
            ChangeLog(catalog, pipeline),
            SchemaHistory(catalog, pipeline),
            platform.capture,
            platform.retry,
            progress,
        )
        result = events.start(until, stop or threading.Event())
    finally:
        source.close()
    if result.commits:  # a run that found nothing leaves no trace
        body = {
            "rows": result.rows,
            "transactions": result.transactions,
            "through": str(result.through),
            "commits": result.commits,
            "bytes": result.bytes,
            "seconds": result.seconds,
        }
        Reports(catalog, pipeline).add("capture", run or uuid.uuid4().hex[:12], body)
    return result


def _job(call: door.Call) -> Any:
    return run_capture(call.pipeline, call.platform, progress=call.progress, run=call.run)


if __name__ == "__main__":
    door.main(_job, name="capture", spark=False)
