"""A source table in Python that writes its changes to a real change log.

:class:`ModelTable` holds rows as texts, prints every change the way pgoutput would (old key, old
row with replica identity FULL, ``unchanged`` slots for TOASTed values that stayed), and knows what
the lake must look like afterwards in every write mode. It is the oracle of the apply tests.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa

from tidegate.envelope.log_rows import ARROW_SCHEMA
from tidegate.envelope.position import Position, boundary, lsn_place
from tidegate.names import TableId
from tidegate.schema.table import Column, TableSchema
from tidegate.schema.types import STRING, Kind, LogicalType, Policy, TextRule

EPOCH = "model-1"
BIG = "~"
"""Texts that begin with this stand for TOASTed values: not sent while they stay the same."""
BEGAN = datetime(2024, 5, 1, 12, tzinfo=UTC)

LONG = LogicalType(Kind.LONG)
MONEY = LogicalType(Kind.DECIMAL, 12, 2)


def number(name: str, key: int | None = None, type_: LogicalType = LONG) -> Column:
    return Column(name, str(type_), type_, TextRule.PG_NUMBER, nullable=key is None, key=key)


def text(name: str, key: int | None = None) -> Column:
    return Column(name, "text", STRING, TextRule.PLAIN, nullable=key is None, key=key)


def money(name: str) -> Column:
    return Column(name, "numeric(12,2)", MONEY, TextRule.PG_NUMBER, Policy.NULL)


def schema(table: str, *columns: Column) -> TableSchema:
    return TableSchema(TableId.parse(table), columns)


@dataclass
class Clock:
    """LSNs and commit times of one source, shared by its tables."""

    lsn: int = 0x1000

    def commit(self) -> tuple[int, datetime]:
        self.lsn += 0x10
        return self.lsn, BEGAN + timedelta(seconds=self.lsn)

    @property
    def position(self) -> Position:
        """Everything committed so far lies before it."""
        return boundary(EPOCH, self.lsn + 1)


@dataclass
class Version:
    """One version of a row, as history mode shows it."""

    key: tuple[str, ...]
    row: list[str | None]
    begin: str
    end: str | None = None
    deleted: bool = False


@dataclass
class ModelTable:
    """A table, its changes so far (``events``), and what every write mode makes of them."""

    schema: TableSchema
    clock: Clock
    full: bool = False
    """Replica identity FULL: old rows are sent."""
    rows: list[list[str | None]] = field(default_factory=list)
    events: list[dict[str, Any]] = field(default_factory=list)
    appended: list[tuple[Any, ...]] = field(default_factory=list)
    versions: list[Version] = field(default_factory=list)
    _open: list[dict[str, Any]] = field(default_factory=list)

    @property
    def name(self) -> str:
        return str(self.schema.table)

    def key_of(self, row: Sequence[str | None]) -> tuple[str, ...]:
        places = [self.schema.columns.index(column) for column in self.schema.key_columns]
        return tuple(str(row[place]) for place in places)

    def find(self, *key: str) -> list[str | None]:
        """The last row that came under ``key``."""
        return next(row for row in reversed(self.rows) if self.key_of(row) == key)

    # changes of the transaction that is open

    def insert(self, *row: str | None) -> None:
        self.rows.append(list(row))
        self._event("c", key=self.key_of(row), after=list(row), shown=list(row))

    def update(self, row: list[str | None], **changes: str | None) -> None:
        """Change ``row`` (one of ``rows``) in place; a changed key moves it."""
        old = list(row)
        for name, value in changes.items():
            row[[column.name for column in self.schema.columns].index(name)] = value
        kept = [
            slot
            for slot, (was, now) in enumerate(zip(old, row, strict=True))
            if was == now and was is not None and was.startswith(BIG)
        ]
        sent = [None if slot in kept else value for slot, value in enumerate(row)]
        self._event(
            "u", key=self.key_of(old), old=old, after=sent, unchanged=kept or None, shown=list(row)
        )

    def delete(self, row: list[str | None]) -> None:
        self.rows.remove(row)
        shown = list(row) if self.full else self._key_only(row)
        self._event("d", key=self.key_of(row), old=list(row), shown=shown)

    def truncate(self) -> None:
        self.rows.clear()
        self._event("t", key=None, shown=[None] * len(self.schema.columns))

    def commit(self) -> None:
        """End the transaction: its changes get places in the log."""
        lsn, at = self.clock.commit()
        for index, event in enumerate(self._open, start=1):
            place = lsn_place(lsn, index)
            shown, old = event.pop("shown"), event.pop("old", None)
            event |= {"position": place, "tx_id": lsn, "commit_ts": at, "captured_at": at}
            event["event_id"] = str(uuid.uuid5(uuid.NAMESPACE_OID, f"{EPOCH}/{place}"))
            self.events.append(event)
            self._remember(event["op"], f"{EPOCH}/{place}", event["key"], old, shown)
        self._open.clear()

    def evolve(self, new: TableSchema, default: str | None = None) -> None:
        """ALTER TABLE: columns are matched by name, new ones are ``default`` in old rows."""
        names = [column.name for column in self.schema.columns]
        for row in self.rows:
            old = dict(zip(names, row, strict=True))
            row[:] = [old.get(column.name, default) for column in new.columns]
        self.schema = new

    def _key_only(self, row: list[str | None]) -> list[str | None]:
        pairs = zip(self.schema.columns, row, strict=True)
        return [value if column.key is not None else None for column, value in pairs]

    def _event(self, op: str, **facts: Any) -> None:
        key = facts.pop("key")
        event = {
            "epoch": EPOCH,
            "shard": "0",
            "table": self.name,
            "op": op,
            "schema_id": self.schema.schema_id,
            "key": None if key is None else list(key),
            "before": facts.get("old") if self.full else None,
            "after": facts.pop("after", None),
            "unchanged": facts.pop("unchanged", None),
            **facts,
        }
        self._open.append(event)

    def _remember(
        self, op: str, at: str, key: list[str] | None, old: Any, shown: list[str | None]
    ) -> None:
        if op == "u" and key is not None and self.key_of(shown) != tuple(key):
            self.appended.append(("d", at, *self._key_only(old)))
        self.appended.append((op, at, *shown))
        if op == "t":
            for version in self.versions:
                self._end(version, at, deleted=True)
            return
        assert key is not None
        if op in ("u", "d"):
            same = [v for v in self.versions if v.end is None and v.key == tuple(key)]
            match = next((v for v in reversed(same) if v.row == old), same[-1] if same else None)
            moved = op == "d" or self.key_of(shown) != tuple(key)
            if match is not None:
                self._end(match, at, deleted=moved)
        if op in ("c", "u"):
            self.versions.append(Version(self.key_of(shown), shown, at))

    @staticmethod
    def _end(version: Version, at: str, *, deleted: bool) -> None:
        if version.end is None:
            version.end, version.deleted = at, deleted


def batch(events: list[dict[str, Any]]) -> pa.RecordBatch:
    """Log rows of ``events``, by position."""
    ordered = sorted(events, key=lambda event: event["position"])
    return pa.RecordBatch.from_pylist(ordered, schema=ARROW_SCHEMA)
