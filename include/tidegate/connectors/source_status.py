"""What a source says of its log: where it stands, and what it keeps for us.

Sizes are bytes of log. None is what the source does not tell, or does not tell this user.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from tidegate.envelope.position import Position

SLOT_LOST: Final = "slot_lost"
"""The reason in the code of that finding of ``validate`` which only a new epoch mends."""


@dataclass(frozen=True, slots=True)
class SlotStatus:
    """The replication slot as the source reports it."""

    name: str
    active_pid: int | None
    confirmed: Position | None
    retained_bytes: int
    wal_status: str | None
    safe_wal_bytes: int | None = None  # may still be written before the slot can be lost
    invalid_reason: str | None = None
    xmin_age: int | None = None  # transactions since the oldest whose dead rows must be kept

    @property
    def lost(self) -> bool:
        return self.wal_status == "lost" or self.invalid_reason is not None


@dataclass(frozen=True, slots=True)
class SourceStatus:
    """Where the source's log stands now."""

    current: Position
    slot: SlotStatus | None
    keep_bytes: int | None = None  # the most a slot may retain; None: no limit is set
    log_bytes: int | None = None  # all of the log on the source's disk
    by_time: bool = False  # it is kept for a time, read or not: no slot holds it for us
    expiry_seconds: float | None = None  # that time; None: for ever
    parts: Mapping[int, int] = field(default_factory=dict)
    """Bytes of each file of a log that is kept in files, by the number that places have."""
