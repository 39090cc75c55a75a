"""A look at the source: reachable or not, where its log is, what the slot retains."""

from __future__ import annotations

from dataclasses import dataclass

from tidegate.config.pipeline import PipelineConfig
from tidegate.config.platform import PlatformConfig
from tidegate.connectors.registry import distance, open_source
from tidegate.connectors.source_status import SlotStatus, SourceStatus
from tidegate.control.records import SourceSide
from tidegate.errors import TidegateError
from tidegate.lake.log_times import LogTimes
from tidegate.transports.guard import SourceFigures
from tidegate.transports.monitor import MISSING, EmbeddedSourceMonitor


@dataclass(frozen=True, slots=True)
class Look:
    """What was seen. ``status`` and ``figures`` are None if the source could not be asked."""

    side: SourceSide
    status: SourceStatus | None = None
    figures: SourceFigures | None = None


def look_at_source(pipeline: PipelineConfig, platform: PlatformConfig, times: LogTimes) -> Look:
    """What the source says, beside what the change log knows (``times``).

    A source that cannot be reached is a fact of the status, not a failure of it.
    """
    try:
        return _look(pipeline, platform, times)
    except TidegateError as error:
        problem = f"{error.message} [{error.code}]"
        return Look(SourceSide(False, None, pipeline.slot_name, None, None, problem))


def _look(pipeline: PipelineConfig, platform: PlatformConfig, times: LogTimes) -> Look:
    source = open_source(pipeline, platform)
    try:
        told = distance(pipeline.source.source_type)
        monitor = EmbeddedSourceMonitor(source, times, pipeline.slot_name, told)
        seen, lost = monitor.status(), monitor.lost()
    finally:
        source.close()
    slot = seen.slot
    side = SourceSide(
        reachable=True,
        current=str(seen.current),
        slot=slot.name if slot else pipeline.slot_name,
        slot_state=_state(slot),
        retained_bytes=slot.retained_bytes if slot and not seen.by_time else None,
        problem=slot.invalid_reason if slot else None,
        by_time=seen.by_time,
        expiry_seconds=seen.expiry_seconds,
    )
    return Look(side, seen, monitor.figures(seen, platform.guard, lost=lost))


def _state(slot: SlotStatus | None) -> str:
    if slot is None:
        return MISSING
    if slot.invalid_reason is not None:
        return f"invalid: {slot.invalid_reason}"
    activity = "in use" if slot.active_pid is not None else "idle"
    return f"{activity}, {slot.wal_status}" if slot.wal_status else activity
