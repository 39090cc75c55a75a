"""Which changes cannot be applied a second time, because of values that they leave out.

A value the source did not send (unchanged TOAST) comes from the row as the lake has it. A replay
begins with the newest rows, so that value is right only as long as the row keeps its key to the
end of the range: a row that moved on or was deleted is no longer found under the old key, and
another row may stand there. What the range itself brings whole needs nothing from the lake.
"""

from __future__ import annotations

from collections.abc import Iterable

from pyiceberg.table import Table

from tidegate.envelope.change import Change, Op
from tidegate.envelope.position import Position
from tidegate.lake import log_reader
from tidegate.lake.log_reader import Span, Wanted
from tidegate.lake.schema_history import SchemaHistory

_Key = tuple[str | None, ...]


def last_unrepeatable(
    log: Table, history: SchemaHistory, span: Span, source_table: str
) -> Position | None:
    """The last change of ``span`` that a replay of it could not apply as it was applied first."""
    if not log_reader.leaves_values_out(log, span, source_table):
        return None
    wanted = Wanted(tables=frozenset({source_table}))
    return _last(log_reader.read(log, history, span, wanted))


def _last(changes: Iterable[Change]) -> Position | None:
    """``changes`` in log order."""
    whole: set[_Key] = set()  # rows that the replay itself has written in full
    open_: dict[_Key, Position] = {}  # rows that took a value from the lake, and where
    found: list[Position] = []
    for change in changes:
        if change.op is Op.TRUNCATE:
            found += open_.values()
            whole.clear()
            open_.clear()
            continue
        old, new = change.key_values, change.new_key_values
        if old is None or new is None:
            continue
        asks = bool(change.unchanged) and change.before_values is None and old not in whole
        leaves = change.op is Op.DELETE or old != new
        if leaves:
            whole.discard(old)
            found += [open_.pop(old)] if old in open_ else []
        if asks and leaves:
            found.append(change.position)
        elif asks:
            open_[new] = change.position
        elif change.op is not Op.DELETE:
            whole.add(new)
    return max(found, default=None)
