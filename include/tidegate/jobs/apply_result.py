"""What an apply run did, table by table. Counts, positions and reasons; never a value (I9)."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from tidegate.envelope.position import Position
from tidegate.errors import TidegateError


class Status(StrEnum):
    APPLIED = "applied"  # changes were published
    UNCHANGED = "unchanged"  # there were none
    WAITING = "waiting"  # another writer or a sweep comes first; the next run goes on
    HELD = "held"  # a person must act
    FAILED = "failed"
    MISSING = "missing"  # no lake table yet: needs its first sweep


@dataclass(frozen=True, slots=True)
class TableResult:
    """One table's part of a run."""

    table: str
    status: Status
    inserted: int = 0
    updated: int = 0
    deleted: int = 0
    truncated: bool = False
    from_position: Position | None = None
    to_position: Position | None = None
    """What the table is known to reflect; it may stand at an earlier one if nothing changed."""
    snapshot_id: int | None = None
    seconds: float = 0.0
    adjusted: dict[str, int] = field(default_factory=dict)
    parked: int = 0
    """Changes that became dead letters in this run (I7)."""
    reason: str | None = None
    error: TidegateError | None = None


@dataclass(frozen=True, slots=True)
class ApplyResult:
    """A run."""

    run: str
    tables: list[TableResult]
    seconds: float = 0.0

    @property
    def failed(self) -> list[TableResult]:
        return [table for table in self.tables if table.status is Status.FAILED]

    @property
    def idle(self) -> bool:
        """Nothing was written and nothing is wrong."""
        return all(table.status is Status.UNCHANGED for table in self.tables)
