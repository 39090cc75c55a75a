"""Temporary tables with the name of one that is taken: what a session says of it means them.

They are in the log only if the session logs statements, and then from CREATE to DROP: a server does
not let it change its way of logging in between. A statement's own flag does not tell, because
a procedure sets it for all that come after the first. What is open where a batch ends would be
forgotten if this process ended there, so its table is held.
"""

from __future__ import annotations

from collections.abc import Set
from typing import Final

from tidegate.connectors.mysql.query_events import Statement
from tidegate.connectors.mysql.statement_effects import Effects
from tidegate.names import TableId

OPEN: Final = (
    "a session that logs statements has a temporary table of this name open: what it says of it"
    " cannot be told from what it says of the table"
)


class TemporaryTables:
    """Of all sessions of one stream."""

    def __init__(self) -> None:
        self._open: dict[int, set[TableId]] = {}

    def hidden(self, said: Statement) -> Set[TableId]:
        """Tables that the statement's session does not see."""
        return self._open.get(said.thread, set()) if said.temporary else frozenset()

    def follow(self, said: Statement, found: Effects) -> None:
        if found.hidden or found.shown:
            own = self._open.setdefault(said.thread, set())
            own |= found.hidden
            own -= found.shown

    def open(self) -> list[TableId]:
        return sorted({table for own in self._open.values() for table in own})
