"""What a comparison of source and lake says of each table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from tidegate.envelope.position import Position
from tidegate.errors import TidegateError
from tidegate.jobs.result import plain
from tidegate.spark.verify import Comparison, Difference

GOOD: Final = frozenset({"equal", "skipped", "repaired", "planned"})


@dataclass(frozen=True, slots=True)
class TableVerdict:
    """Whether one table is equal, and where not."""

    table: str
    status: str  # equal | different | repaired | planned | skipped | failed
    source_rows: int | None = None  # None: nothing was counted
    lake_rows: int | None = None
    missing: int | None = None
    extra: int | None = None
    different: int | None = None
    repaired: int = 0
    """Differences that were mended; they are among the three numbers before."""
    waiting: int = 0
    """Dead letters; their rows were not compared."""
    not_compared: Mapping[str, str] = field(default_factory=dict)
    """Columns that were left out of the comparison, and why."""
    seconds: float = 0.0
    snapshot_id: int | None = None
    verified_through: str | None = None
    """Every key that counts as covered was found equal at this position or a later one."""
    coverage: float | None = None
    """Percent of the keys that are proven, by this run and the ones before."""
    first: tuple[Difference, ...] = ()
    reason: str | None = None
    error: TidegateError | None = None

    @property
    def equal(self) -> bool:
        return self.status == "equal"

    @classmethod
    def of(cls, table: str, found: Comparison, snapshot_id: int) -> TableVerdict:
        return cls(
            table,
            "equal" if found.equal else "different",
            source_rows=found.source_rows,
            lake_rows=found.lake_rows,
            missing=found.missing,
            extra=found.extra,
            different=found.different,
            snapshot_id=snapshot_id,
            first=found.first,
        )


@dataclass(frozen=True, slots=True)
class VerifyResult:
    """Every table's verdict at one position."""

    run: str
    position: Position | None
    seconds: float
    tables: list[TableVerdict]

    @property
    def equal(self) -> bool:
        """Whether every table that could be compared is equal by now (and none failed)."""
        return all(table.status in GOOD for table in self.tables)

    def without_keys(self) -> dict[str, Any]:
        """As reports keep it: keys are row values, so only their number stays (I9)."""
        body: dict[str, Any] = plain(self)
        for table in body["tables"]:
            table.pop("first", None)
        return body
