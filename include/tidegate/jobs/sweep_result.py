"""How a sweep ended."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tidegate.envelope.position import Position
from tidegate.errors import TidegateError

if TYPE_CHECKING:
    from tidegate.spark.sweep import Built


@dataclass(frozen=True, slots=True)
class TableSweep:
    """How one table's sweep ended."""

    table: str
    status: str  # swept | opened | failed | held | planned
    rows: int = 0
    chunks: int = 0
    seconds: float = 0.0
    rows_per_second: float = 0.0
    position: Position | None = None
    snapshot_id: int | None = None
    branch: str | None = None
    resumed: bool = False
    adjusted: dict[str, int] = field(default_factory=dict)
    parked: int = 0
    """Rows that became dead letters (I7)."""
    checks: tuple[str, ...] = ()
    error: TidegateError | None = None


@dataclass(frozen=True, slots=True)
class SweepResult:
    """How a sweep ended, table by table."""

    run: str
    cut: Position | None
    seconds: float
    tables: list[TableSweep]

    @property
    def failed(self) -> bool:
        return any(table.error is not None for table in self.tables)


def swept(built: Built, snapshot: int, checks: tuple[str, ...], seconds: float) -> TableSweep:
    """A table whose sweep was published."""
    return TableSweep(
        table=built.mode.target.source,
        status="swept",
        rows=built.survey.rows,
        chunks=built.chunks,
        seconds=round(seconds, 3),
        rows_per_second=round(built.survey.rows / seconds if seconds else 0.0, 1),
        position=built.mode.cut,
        snapshot_id=snapshot,
        resumed=built.resumed,
        adjusted=dict(built.seen.adjusted),
        parked=len(built.parking.keys),
        checks=checks,
    )
