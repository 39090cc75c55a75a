"""A change that could not be applied, or waits behind one, and what is known about it (I7)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

from tidegate.envelope.position import Position

BEHIND_LETTER: Final = "apply.behind_letter"
"""The code of a change that nothing is wrong with, but that an earlier one waits."""
Key = tuple[str | None, ...]
"""A row's key in the source's own text."""


class Role(StrEnum):
    FAILED = "failed"  # it could not be applied itself
    WAITING = "waiting"  # an earlier change of the same row could not


@dataclass(frozen=True, slots=True)
class Parked:
    """A change on its way to the dead letters.

    ``event`` has the change log's columns, values included: a letter outlives the log's rows. It
    is stored, never logged (I9). ``message`` names columns and rules, never values.
    """

    position: Position
    key: Key
    new_key: Key
    """Where the change leaves the row; the same as ``key`` unless it moves it."""
    role: Role
    code: str
    message: str
    event: Mapping[str, Any]
    stack: str = ""
    """Frames of the code that could not apply it; empty for one that only waits."""

    @property
    def event_id(self) -> str:
        return str(self.event["event_id"])
