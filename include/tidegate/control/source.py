"""A look at the source: reachable or not, where its log is, what the slot retains."""

from __future__ import annotations

from tidegate.config.pipeline import PipelineConfig
from tidegate.config.platform import PlatformConfig
from tidegate.connectors.protocol import SlotStatus, SourceStatus
from tidegate.connectors.registry import open_source
from tidegate.control.records import SourceSide
from tidegate.envelope.position import Position
from tidegate.errors import TidegateError

MISSING = "missing"


def look_at_source(
    pipeline: PipelineConfig, platform: PlatformConfig, epoch: str | None
) -> tuple[SourceSide, Position | None]:
    """What the source says, and its current place in ``epoch``.

    A source that cannot be reached is a fact of the status, not a failure of it.
    """
    try:
        seen = _ask(pipeline, platform, epoch)
    except TidegateError as error:
        problem = f"{error.message} [{error.code}]"
        return SourceSide(False, None, pipeline.slot_name, None, None, problem), None
    slot = seen.slot
    side = SourceSide(
        reachable=True,
        current=str(seen.current),
        slot=slot.name if slot else pipeline.slot_name,
        slot_state=_state(slot),
        retained_bytes=slot.retained_bytes if slot else None,
        problem=slot.invalid_reason if slot else None,
    )
    return side, seen.current


def _ask(pipeline: PipelineConfig, platform: PlatformConfig, epoch: str | None) -> SourceStatus:
    source = open_source(pipeline, platform)
    try:
        return source.status(epoch)
    finally:
        source.close()


def _state(slot: SlotStatus | None) -> str:
    if slot is None:
        return MISSING
    if slot.invalid_reason is not None:
        return f"invalid: {slot.invalid_reason}"
    activity = "in use" if slot.active_pid is not None else "idle"
    return f"{activity}, {slot.wal_status}" if slot.wal_status else activity
