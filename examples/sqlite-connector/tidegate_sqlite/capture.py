"""The change stream: polls the change table, whole seals at a time."""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Literal

import numpy as np
import pyarrow as pa

from tidegate.connectors.changes import ChangeBatch, SchemaSeen, TableHold
from tidegate.envelope import log_rows
from tidegate.envelope.position import Position, boundary
from tidegate.names import TableId
from tidegate.schema.table_facts import TableFacts
from tidegate_sqlite.change_table import ChangeTable
from tidegate_sqlite.database import session, translated, writing
from tidegate_sqlite.settings import SqliteSettings

_ALTERED = "its columns changed: deploy again, then sweep it"


class SqliteStream:
    """Implements ``ChangeStream``."""

    def __init__(
        self,
        settings: SqliteSettings,
        connection: sqlite3.Connection,
        table: ChangeTable,
        after: Position,
        target: Position | None,
    ) -> None:
        self._settings = settings
        self._sql = connection
        self._table = table
        self._through = after
        self._target = target
        self._seen: set[str] = set()

    def __iter__(self) -> Iterator[ChangeBatch]:
        while self._target is None or self._through < self._target:
            with writing(self._sql):
                end = self._table.seal()
            found = list(self._table.rows(self._through, end))
            if not found and self._target is None:
                time.sleep(self._settings.poll_seconds)
            self._through = end
            yield self._batch(found, end)

    def _batch(self, found: list[tuple[Any, ...]], through: Position) -> ChangeBatch:
        names = {str(row[3]) for row in found}
        held = self._table.altered(tuple(TableId.parse(name) for name in sorted(names)))
        return ChangeBatch(
            rows=log_table(through.epoch, found),
            schemas=tuple(self._schemas(found, through.epoch)),
            through=through,
            transactions=len({row[0] for row in found}),
            raw_bytes=sum(len(text or "") for row in found for text in row[6:]),
            holds=tuple(TableHold(str(table), _ALTERED) for table in held),
        )

    def _schemas(self, found: list[tuple[Any, ...]], epoch: str) -> Iterator[SchemaSeen]:
        for number, *_, schema_id, _key, _old, _new in found:
            if schema_id not in self._seen:
                self._seen.add(schema_id)
                yield SchemaSeen(self._table.schema(schema_id), boundary(epoch, number))

    def confirm(self, position: Position) -> None:
        with writing(self._sql):
            self._table.forget(position)

    def settle(self) -> None:
        """A confirmation is a transaction of its own: it is noted already."""

    def look(self) -> Mapping[TableId, TableFacts]:
        return {}

    def keep_alive(self) -> None:
        """A file does not wait for us."""


def log_table(epoch: str, found: list[tuple[Any, ...]]) -> pa.Table:
    """Rows of the change log, tables one after the other."""
    found = sorted(found, key=lambda row: (row[3], row[0], row[1]))
    numbers = np.array([row[0] for row in found], dtype=np.uint64)
    indexes = np.array([row[1] for row in found], dtype=np.uint64)
    columns = {
        "epoch": log_rows.constant(epoch, len(found)),
        "shard": log_rows.constant(log_rows.SHARD, len(found)),
        "position": log_rows.places(numbers, indexes),
        "tx_id": [row[0] for row in found],
        "commit_ts": pa.array([row[2] for row in found], pa.string()).cast(
            pa.timestamp("us", tz="UTC")
        ),
        "captured_at": log_rows.now(len(found)),
        "table": [row[3] for row in found],
        "op": [row[4] for row in found],
        "schema_id": [row[5] for row in found],
        "key": [_texts(row[6]) for row in found],
        "before": [_texts(row[7]) for row in found],
        "after": [_texts(row[8]) for row in found],
        "unchanged": [None] * len(found),
        "event_id": log_rows.event_ids(epoch, numbers, indexes),
    }
    return pa.Table.from_pydict(columns, schema=log_rows.ARROW_SCHEMA)


def _texts(stored: str | None) -> list[str | None] | None:
    return None if stored is None else json.loads(stored)


@contextmanager
def open_changes(
    settings: SqliteSettings, after: Position, until: Position | Literal["now"] | None
) -> Iterator[SqliteStream]:
    with session(settings, "reading changes") as connection:
        table = ChangeTable(connection, settings.pipeline_id)
        table.check(after)
        if until == "now":
            with writing(connection):
                until = table.seal()
        with translated(settings, "reading changes"):
            yield SqliteStream(settings, connection, table, after, until)
