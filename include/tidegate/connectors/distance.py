"""Bytes of log between two positions. What a place's number means, only its connector knows."""

from __future__ import annotations

from typing import Protocol

from tidegate.connectors.source_status import SourceStatus
from tidegate.envelope.position import Position


class Distance(Protocol):
    """Bytes of the source's log from ``low`` to ``high``, 0 if it lies before; None where that
    means nothing, or cannot be told without ``seen``, what the source said of its log."""

    def __call__(
        self, low: Position, high: Position, seen: SourceStatus | None = None
    ) -> int | None: ...


def by_number(low: Position, high: Position, seen: SourceStatus | None = None) -> int | None:
    """Of a source whose places are offsets in one log."""
    return None if low.epoch != high.epoch else max(0, high.lsn - low.lsn)
