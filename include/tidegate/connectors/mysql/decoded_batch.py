"""What one parcel of the log gives, while it is decoded."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from tidegate.connectors.changes import Altered, SchemaSeen
from tidegate.connectors.mysql.inflate import Inner
from tidegate.connectors.mysql.row_groups import Groups
from tidegate.names import TableId


@dataclass(slots=True)
class Batch:
    groups: Groups
    inner: Inner
    view: memoryview
    seen: list[SchemaSeen] = field(default_factory=list)
    holds: dict[TableId, str] = field(default_factory=dict)
    altered: list[Altered] = field(default_factory=list)
    transactions: int = 0

    def hold(self, tables: Iterable[TableId], why: str) -> None:
        """The first reason stays."""
        for table in tables:
            self.holds.setdefault(table, why)
