"""What a statement means for the tables that are taken."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from tidegate.connectors.mysql.sql_cursor import Named
from tidegate.names import TableId

REWRITES: Final = "changes values without sending rows"
DROPPED: Final = "dropped the table"
RENAMED: Final = "renamed the table, or another to its name"
STATEMENT: Final = (
    "a change was logged as a statement (binlog_format is not ROW): which rows of which tables it"
    " changed was not sent"
)
NOT_UNDERSTOOD: Final = "is not understood"
ROWS_GONE: Final = "takes rows away, or brings some, without sending them"
ENGINE: Final = "gave the table another engine than InnoDB: its changes have no transactions"
NOT_INNODB: Final = "its engine is not InnoDB: its changes have no transactions"
KEY: Final = "changed the primary key"
CASCADES: Final = (
    "has a foreign key that changes or deletes its rows without a trace in the log (ON DELETE or"
    " ON UPDATE with CASCADE, SET NULL or SET DEFAULT)"
)


@dataclass(slots=True)
class Effects:
    """Of one statement. What is in none of these concerns no table that is taken."""

    truncated: list[TableId] = field(default_factory=list)
    held: dict[TableId, str] = field(default_factory=dict)
    left: dict[TableId, frozenset[str]] = field(default_factory=dict)  # columns
    came: dict[TableId, frozenset[str]] = field(default_factory=dict)
    touched: set[TableId] = field(default_factory=set)
    """Tables whose definition or files it changed, or may have: it explains that they did."""

    def hold(self, tables: Iterable[TableId], reason: str) -> None:
        for table in tables:
            self.held.setdefault(table, reason)
            self.touched.add(table)

    hidden: set[TableId] = field(default_factory=set)
    """Tables that a temporary one of their name hides from the session, from here on."""
    shown: set[TableId] = field(default_factory=set)  # and not any more


@dataclass(frozen=True, slots=True)
class Taken:
    """The tables that are taken, found by the names that the server means."""

    tables: frozenset[TableId]
    folded: bool = False
    """The server does not tell names by case (``lower_case_table_names`` is not 0)."""
    _found: dict[tuple[str, str], TableId] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        found = {(self._fold(t.schema), self._fold(t.name)): t for t in self.tables}
        object.__setattr__(self, "_found", found)

    def find(self, database: str, name: str) -> TableId | None:
        return self._found.get((self._fold(database), self._fold(name)))

    def named(self, named: Named, database: str) -> list[TableId]:
        """The one that a statement names, or none."""
        found = self.find(named.database or database, named.name)
        return [] if found is None else [found]

    def called(self, names: Iterable[str]) -> list[TableId]:
        """All with one of these names, whatever their database."""
        folded = {self._fold(name) for name in names}
        return sorted(t for (_, name), t in self._found.items() if name in folded)

    def inside(self, databases: Iterable[str]) -> list[TableId]:
        folded = {self._fold(name) for name in databases}
        return sorted(t for (database, _), t in self._found.items() if database in folded)

    def _fold(self, name: str) -> str:
        return name.lower() if self.folded else name
