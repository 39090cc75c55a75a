"""The embedded transport's ``SourceMonitor``: the source's own figures, and the change log's.

Reads metadata of the change log and a few catalog functions of the source; starts nothing, holds
nothing, and is safe beside a capture.
"""

from __future__ import annotations

from datetime import UTC, datetime

from tidegate.config.guard import GuardConfig
from tidegate.connectors.distance import Distance
from tidegate.connectors.protocol import Source
from tidegate.connectors.source_status import SlotStatus, SourceStatus
from tidegate.errors import FatalError
from tidegate.lake.log_times import LogTimes
from tidegate.transports.guard import SourceFigures

MISSING = "missing"
SLOT_LIMIT = "max_slot_wal_keep_size"
DISK_LIMIT = "guard.wal_disk_bytes"


class EmbeddedSourceMonitor:
    """Implements ``SourceMonitor`` for one pipeline."""

    def __init__(self, source: Source, times: LogTimes, slot_name: str, distance: Distance) -> None:
        self._source = source
        self._distance = distance
        self._times = times
        self._slot_name = slot_name

    def status(self) -> SourceStatus:
        return self._source.status(self._times.head)

    def lost(self) -> str | None:
        """Why the source's log no longer continues ours; None if it does, or nothing began."""
        if self._times.head is None:
            return None
        try:
            self._source.check_history(self._times.head)
        except FatalError as error:
            return error.message
        return None

    def figures(
        self,
        status: SourceStatus,
        limits: GuardConfig,
        *,
        lost: str | None = None,
        now: datetime | None = None,
    ) -> SourceFigures:
        """What ``status`` means for the source, with the pace that the change log tells."""
        moment = now or datetime.now(UTC)
        slot, times = status.slot, self._times
        lost = lost or self._seen_lost(slot)
        if slot is None:
            return SourceFigures(self._slot_name, MISSING, lost=lost)
        pace = times.bytes_per_hour(
            status.current, lambda low: self._distance(low, status.current, status), moment
        )
        left, limit = _room(slot, status, limits)
        head = times.head
        to_capture = None if head is None else self._distance(head, status.current, status)
        since = times.head_at
        return SourceFigures(
            slot=slot.name,
            slot_state=slot.invalid_reason or slot.wal_status or "unknown",
            retained_bytes=None if status.by_time else slot.retained_bytes,
            keep_bytes=status.keep_bytes,
            left_bytes=left,
            limit=limit,
            bytes_per_hour=pace,
            hours_left=left / pace if left is not None and pace else None,
            xmin_age=slot.xmin_age,
            to_capture_bytes=to_capture,
            capture_seconds=None if since is None else max(0.0, (moment - since).total_seconds()),
            by_time=status.by_time,
            expiry_seconds=status.expiry_seconds,
            lost=lost,
        )

    def _seen_lost(self, slot: SlotStatus | None) -> str | None:
        """What the status alone tells."""
        if self._times.head is None or not (slot is None or slot.lost):
            return None
        how = "does not exist any more" if slot is None else "was invalidated by the server"
        return f"replication slot {self._slot_name} {how}"


def _room(
    slot: SlotStatus, status: SourceStatus, limits: GuardConfig
) -> tuple[int | None, str | None]:
    """Bytes that may still be written, and the limit that comes first."""
    rooms: list[tuple[int, str]] = []
    if slot.safe_wal_bytes is not None:
        rooms.append((max(0, slot.safe_wal_bytes), SLOT_LIMIT))
    if limits.wal_disk_bytes is not None:
        used = slot.retained_bytes if status.log_bytes is None else status.log_bytes
        rooms.append((max(0, limits.wal_disk_bytes - used), DISK_LIMIT))
    return min(rooms, default=(None, None))
