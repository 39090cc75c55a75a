"""Capture: read the source's log into the change log. No JVM.

``python -m tidegate.jobs.capture`` is the process Airflow starts.
"""

from __future__ import annotations

import logging
import threading
import uuid
from contextlib import nullcontext
from functools import partial
from typing import Any

from pyiceberg.catalog import Catalog

from tidegate.config.pipeline import PipelineConfig
from tidegate.config.platform import PlatformConfig
from tidegate.config.secrets import Secrets
from tidegate.connectors.changes import TableHold
from tidegate.connectors.registry import distance, open_source
from tidegate.errors import TidegateError
from tidegate.jobs import door
from tidegate.jobs.heeding import heeding_stops
from tidegate.lake.catalog import open_catalog
from tidegate.lake.change_log import ChangeLog
from tidegate.lake.gate import Gate, GateState
from tidegate.lake.log_times import LogTimes
from tidegate.lake.pauses import refuse_stopped
from tidegate.lake.reports import Reports
from tidegate.lake.schema_history import SchemaHistory
from tidegate.lake.version_news import say_versions
from tidegate.observability import log
from tidegate.observability.progress import Progress, silent
from tidegate.transports.embedded import EmbeddedEventSource, Hold
from tidegate.transports.guard import judge_source, worth_saying
from tidegate.transports.monitor import EmbeddedSourceMonitor
from tidegate.transports.protocol import CaptureResult, Until

ACTOR = "capture"
_LOG = log.get("tidegate.jobs.capture")  # run as a module, __name__ would say __main__


def run_capture(
    pipeline: PipelineConfig,
    platform: PlatformConfig,
    *,
    until: Until = "now",
    stop: threading.Event | None = None,
    progress: Progress = silent,
    secrets: Secrets | None = None,
    run: str | None = None,
    part_of: str | None = None,
) -> CaptureResult:
    """Capture up to ``until``: where the log stands now, a position, or (None) until ``stop``.

    A stopped pipeline captures nothing (``pipeline.stopped``), unless this is ``part_of`` a job
    that began before the stop: what is at work is finished.
    """
    catalog = open_catalog(platform, pipeline)
    if part_of is None:
        refuse_stopped(catalog, pipeline)
    stop = stop or threading.Event()
    source = open_source(pipeline, platform, secrets)
    history = SchemaHistory(catalog, pipeline)
    try:
        events = EmbeddedEventSource(
            source,
            ChangeLog(catalog, pipeline),
            history,
            platform.capture,
            platform.retry,
            progress,
            hold=_holder(catalog, pipeline, platform),
            told=partial(say_versions, history, pipeline),
        )
        heeding = heeding_stops(pipeline, platform, stop) if until is None else nullcontext()
        with heeding:
            result = events.start(until, stop)
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


def _holder(catalog: Catalog, pipeline: PipelineConfig, platform: PlatformConfig) -> Hold:
    """Closes gates for what the log cannot bring over; a table that is swept refuses, and its
    sweep, which meets the same place in the log, ends and holds it."""

    def hold(found: TableHold) -> None:
        gate = Gate(catalog, pipeline, platform.gate)
        reason = f"{found.reason} → sweep the table, which opens it again"
        state = gate.states([found.table])[found.table]
        left_to_sweep = found.standing and state.state is GateState.SWEEPING
        if state.state is not GateState.HELD and not left_to_sweep:
            gate.hold([found.table], reason, ACTOR)
            log.event(_LOG, "held", logging.WARNING, table=found.table, reason=found.reason)

    return hold


def watch_source(pipeline: PipelineConfig, platform: PlatformConfig) -> Until:
    """Say in the task's log what the source holds for us; how far the capture should go.

    Where capturing helps against a finding, to a named place: that is noted, and WAL released, even
    if no change of ours lies there. One connection and the change log's metadata; a look that fails
    is the capture's to report.
    """
    source = open_source(pipeline, platform)
    try:
        times = LogTimes.read(open_catalog(platform, pipeline), pipeline)
        told = distance(pipeline.source.source_type)
        monitor = EmbeddedSourceMonitor(source, times, pipeline.slot_name, told)
        seen = monitor.status()
    except TidegateError:
        return "now"
    finally:
        source.close()
    figures = monitor.figures(seen, platform.guard)
    if not figures.by_time:
        held = f"{figures.slot} ({figures.slot_state})"
        log.event(_LOG, "guard", slot=held, bytes=figures.retained_bytes)
    bad = worth_saying(judge_source(figures, platform.guard))
    for finding in bad:
        log.event(
            _LOG,
            f"guard: {finding.says}",
            level=logging.WARNING,
            status=finding.verdict.value,
            hint=finding.next,
        )
    releases = any(finding.releases for finding in bad)
    # A log that seems to stand before ours is another system's: for the capture to refuse.
    ahead = times.head is not None and seen.current > times.head
    return seen.current if releases and ahead else "now"


def _job(call: door.Call) -> Any:
    until = watch_source(call.pipeline, call.platform)
    return run_capture(
        call.pipeline, call.platform, until=until, progress=call.progress, run=call.run
    )


if __name__ == "__main__":
    door.main(_job, name="capture", spark=False)
