"""A change: its operation, and the whole of it as the change log stores it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from tidegate.envelope.position import Position
from tidegate.schema.table import Column, TableSchema

Row = dict[str, str | None]
"""Values by column, in the source's own text."""


class Op(StrEnum):
    """What a change does; the letters are Debezium's, plus ``m`` for a logical message."""

    CREATE = "c"
    UPDATE = "u"
    DELETE = "d"
    TRUNCATE = "t"
    READ = "r"
    MESSAGE = "m"


@dataclass(frozen=True, slots=True)
class Change:
    """One row of the change log with the schema it names. Holds row values: shown to whoever asks
    for it, never logged (I9)."""

    position: Position
    table: str
    op: Op
    tx_id: int | None
    commit_ts: datetime | None
    captured_at: datetime
    event_id: str
    schema: TableSchema
    key_values: tuple[str | None, ...] | None  # of the row addressed: the old key
    before_values: tuple[str | None, ...] | None
    after_values: tuple[str | None, ...] | None
    unchanged_slots: tuple[int, ...] = ()
    """Slots of ``after`` that were not sent; below zero: left out for their size."""

    @property
    def key(self) -> Row | None:
        """The key of the row addressed, before the change."""
        if self.key_values is None:
            return None
        return _by_name(self.key_columns, self.key_values)

    @property
    def before(self) -> Row | None:
        """The whole old row, where the source sent it."""
        if self.before_values is None:
            return None
        return _by_name(self.schema.columns, self.before_values)

    @property
    def after(self) -> Row | None:
        """The new row; columns in :attr:`unchanged` have no value here."""
        if self.after_values is None:
            return None
        return _by_name(self.schema.columns, self.after_values)

    @property
    def unchanged(self) -> tuple[str, ...]:
        """Columns of ``after`` that the source did not send."""
        return tuple(self.schema.columns[slot].name for slot in self.unchanged_slots if slot >= 0)

    @property
    def left_out(self) -> tuple[str, ...]:
        """Columns of ``after`` that were too large to be captured."""
        slots = (-1 - slot for slot in self.unchanged_slots if slot < 0)
        return tuple(self.schema.columns[slot].name for slot in slots)

    @property
    def key_columns(self) -> tuple[Column, ...]:
        """Columns of the key, in key order; all columns where the whole row is the key."""
        keyed = self.schema.key_columns
        whole = self.key_values is not None and len(self.key_values) == len(self.schema.columns)
        return self.schema.columns if whole and not keyed else keyed

    @property
    def new_key_values(self) -> tuple[str | None, ...] | None:
        """The key after the change; the old one where the source did not send it again."""
        after = self.after
        if after is None or self.key_values is None:
            return self.key_values
        unsent = {*self.unchanged, *self.left_out}
        return tuple(
            old if column.name in unsent else after[column.name]
            for column, old in zip(self.key_columns, self.key_values, strict=False)
        )

    @property
    def moves(self) -> bool:
        """Whether the change gives its row another key."""
        return self.op is Op.UPDATE and self.new_key_values != self.key_values


def _by_name(columns: Sequence[Column], values: Iterable[str | None]) -> Row:
    return {column.name: value for column, value in zip(columns, values, strict=False)}
