"""Commits that stood in the log before anybody could see them.

A commit is in the source's log, and so perhaps in the change log, a moment before a snapshot sees
it; for as long as its synchronous standby takes, where there is one. A cut that was made beside
running transactions may therefore miss changes that lie before its position.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import reduce
from typing import Final

from pyiceberg import expressions
from pyiceberg.expressions import And, BooleanExpression, Or
from pyiceberg.table import Table

from tidegate.envelope.position import Position, boundary
from tidegate.envelope.visible import Visible
from tidegate.lake.log_reader import Span, compare, first_place

LONGEST: Final = timedelta(days=1)
"""No commit waits longer for its standby than this. Numbers of transactions come again some day,
so rows of long ago must not be looked at."""


def unseen_from(log: Table, visible: Visible, position: Position, source_table: str) -> Position:
    """The boundary before the first change of the table that a cut at ``position`` does not hold:
    ``position`` itself, if none that was captured up to there is missing."""
    since = datetime.now(UTC) - LONGEST
    span = Span(position.epoch, until=position.place)
    place = first_place(log, span, source_table, And(_unseen(visible), _captured(since)))
    if place is None:
        return position
    return boundary(position.epoch, Position(position.epoch, place).lsn)


def _unseen(visible: Visible) -> BooleanExpression:
    found: list[BooleanExpression] = [
        And(
            compare(expressions.GreaterThanOrEqual, "tx_id", first),
            compare(expressions.LessThan, "tx_id", end),
        )
        for first, end in visible.unseen_ranges()
    ]
    if visible.running:
        found.append(compare(expressions.In, "tx_id", set(visible.running)))
    return reduce(Or, found)


def _captured(since: datetime) -> BooleanExpression:
    return compare(expressions.GreaterThanOrEqual, "captured_at", since.isoformat())
