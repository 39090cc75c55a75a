"""The log: triggers write every change into a table of ours, and *seals* divide it.

SQLite has one writer at a time, so the sequence numbers of committed rows are in commit order. A
trigger cannot tell where a transaction ends; a seal can: made under the write lock, it closes
everything that is committed. What lies between two seals is told as one transaction. It may be
several of the source's, and is never a part of one. Seals are kept, so every reading is the same.
"""

from __future__ import annotations

import sqlite3
import uuid
from collections.abc import Iterator

from tidegate.envelope.position import Position, boundary
from tidegate.errors import FatalError
from tidegate.names import TableId, quote_sql
from tidegate.schema.table import TableSchema
from tidegate_sqlite.types import discover, text_expression

NOW = "strftime('%Y-%m-%dT%H:%M:%fZ', 'now')"
OPERATIONS = {"c": "INSERT", "u": "UPDATE", "d": "DELETE"}


class ChangeTable:
    """What one pipeline keeps in the source; every method works on an open connection."""

    def __init__(self, connection: sqlite3.Connection, pipeline_id: str) -> None:
        self._sql = connection
        self._prefix = f"_tidegate_{pipeline_id}_"
        self.name = f"{self._prefix}log"

    @property
    def deployment(self) -> str | None:
        """Whose it is; None where there is none."""
        known = self._sql.execute("SELECT 1 FROM sqlite_master WHERE name = ?", (self._t("state"),))
        return str(self._state("deployment")) if known.fetchone() else None

    def create(self, deployment: str) -> None:
        epoch = f"sqlite-{uuid.uuid4().hex}"
        self._sql.execute(
            f"CREATE TABLE {self._t('log')} (seq INTEGER PRIMARY KEY AUTOINCREMENT, at TEXT,"
            " tbl TEXT, op TEXT, schema_id TEXT, key TEXT, old TEXT, new TEXT)"
        )
        self._sql.execute(f"CREATE TABLE {self._t('seal')} (number INTEGER PRIMARY KEY, upto INT)")
        self._sql.execute(f"INSERT INTO {self._t('seal')} VALUES (0, 0)")
        self._sql.execute(f"CREATE TABLE {self._t('schema')} (id TEXT PRIMARY KEY, json TEXT)")
        self._sql.execute(f"CREATE TABLE {self._t('state')} (deployment, epoch, confirmed INT)")
        self._sql.execute(f"INSERT INTO {self._t('state')} VALUES (?, ?, 1)", (deployment, epoch))

    def watch(self, schema: TableSchema) -> None:
        """Triggers that note every change of a table."""
        for op, event in OPERATIONS.items():
            self._sql.execute(f"DROP TRIGGER IF EXISTS {quote_sql(self._trigger(schema, op))}")
            self._sql.execute(self._trigger_sql(schema, op, event))
        self._sql.execute(
            f"INSERT OR IGNORE INTO {self._t('schema')} VALUES (?, ?)",
            (schema.schema_id, schema.to_json()),
        )

    def watched(self, schema: TableSchema) -> bool:
        """Whether the triggers note exactly these columns."""
        return all(
            self._trigger_sql(schema, op, event) == self._definition(self._trigger(schema, op))
            for op, event in OPERATIONS.items()
        )

    def objects(self) -> list[tuple[str, str]]:
        """Everything of ours that is there: kinds and names, triggers first."""
        found = self._sql.execute(
            "SELECT type, name FROM sqlite_master WHERE type IN ('table', 'trigger')"
            " AND substr(name, 1, ?) = ? ORDER BY type DESC, name",
            (len(self._prefix), self._prefix),
        )
        return [(str(kind), str(name)) for kind, name in found]

    def seal(self) -> Position:
        """Close what is committed, in a transaction that holds the write lock; the boundary."""
        number, upto = self._last()
        (newest,) = self._sql.execute(f"SELECT max(seq) FROM {self._t('log')}").fetchone()
        if newest is not None and newest > upto:
            number += 1
            self._sql.execute(f"INSERT INTO {self._t('seal')} VALUES (?, ?)", (number, newest))
        return boundary(self.epoch, number + 1)

    @property
    def epoch(self) -> str:
        return str(self._state("epoch"))

    @property
    def confirmed(self) -> Position:
        return boundary(self.epoch, int(str(self._state("confirmed"))))

    def check(self, after: Position) -> None:
        """FatalError if not everything after ``after`` is here."""
        if self.deployment is None or after.epoch != self.epoch:
            raise self._refuse("sqlite.other_log", "is not what the change log was taken of")
        if after.lsn < self.confirmed.lsn or after.lsn > self._last()[0] + 1:
            raise self._refuse("sqlite.log_gap", "does not continue where the change log ends")

    def rows(self, after: Position, until: Position) -> Iterator[tuple[object, ...]]:
        """Number of the seal, index behind it, and the change, in log order."""
        return self._sql.execute(
            f"SELECT s.number, l.seq - p.upto, l.at, l.tbl, l.op, l.schema_id, l.key, l.old, l.new"
            f" FROM {self._t('seal')} s JOIN {self._t('seal')} p ON p.number = s.number - 1"
            f" JOIN {self._t('log')} l ON l.seq > p.upto AND l.seq <= s.upto"
            " WHERE s.number >= ? AND s.number < ? ORDER BY l.seq",
            (after.lsn, until.lsn),
        )

    def schema(self, schema_id: str) -> TableSchema:
        sql = f"SELECT json FROM {self._t('schema')} WHERE id = ?"
        return TableSchema.from_json(self._sql.execute(sql, (schema_id,)).fetchone()[0])

    def forget(self, position: Position) -> None:
        """Delete what lies at or before ``position``, which is durable elsewhere (I2)."""
        last = position.lsn - 1
        self._sql.execute(
            f"DELETE FROM {self._t('log')}"
            f" WHERE seq <= (SELECT upto FROM {self._t('seal')} WHERE number = ?)",
            (last,),
        )
        self._sql.execute(f"DELETE FROM {self._t('seal')} WHERE number < ?", (last,))
        self._sql.execute(
            f"UPDATE {self._t('state')} SET confirmed = max(confirmed, ?)", (position.lsn,)
        )

    def retained_bytes(self) -> int:
        (size,) = self._sql.execute(
            f"SELECT coalesce(sum(length(key) + length(coalesce(old, ''))"
            f" + length(coalesce(new, ''))), 0) FROM {self._t('log')}"
        ).fetchone()
        return int(size)

    def altered(self, tables: tuple[TableId, ...]) -> list[TableId]:
        """Tables whose columns are not those that the triggers note."""
        return [table for table in tables if not self.watched(discover(self._sql, table))]

    def _t(self, part: str) -> str:
        return f"{self._prefix}{part}"

    def _state(self, column: str) -> object:
        return self._sql.execute(f"SELECT {column} FROM {self._t('state')}").fetchone()[0]

    def _last(self) -> tuple[int, int]:
        sql = f"SELECT number, upto FROM {self._t('seal')} ORDER BY number DESC LIMIT 1"
        number, upto = self._sql.execute(sql).fetchone()
        return int(number), int(upto)

    def _trigger(self, schema: TableSchema, op: str) -> str:
        return f"{self._prefix}{schema.table.name}_{op}"

    def _trigger_sql(self, schema: TableSchema, op: str, event: str) -> str:
        def row(prefix: str, wanted: bool, columns: tuple[object, ...] = schema.columns) -> str:
            texts = (text_expression(column, prefix) for column in columns)  # type: ignore[arg-type]
            return f"json_array({', '.join(texts)})" if wanted else "NULL"

        key = row("NEW." if op == "c" else "OLD.", True, schema.key_columns)
        name, table = str(schema.table).replace("'", "''"), quote_sql(schema.table.name)
        return (
            f"CREATE TRIGGER {quote_sql(self._trigger(schema, op))} AFTER {event} ON {table} BEGIN"
            f" INSERT INTO {self._t('log')} (at, tbl, op, schema_id, key, old, new) VALUES ({NOW},"
            f" '{name}', '{op}', '{schema.schema_id}', {key}, {row('OLD.', op != 'c')},"
            f" {row('NEW.', op != 'd')}); END"
        )

    def _definition(self, trigger: str) -> str | None:
        sql = "SELECT sql FROM sqlite_master WHERE type = 'trigger' AND name = ?"
        found = self._sql.execute(sql, (trigger,)).fetchone()
        return None if found is None else str(found[0])

    def _refuse(self, code: str, what: str) -> FatalError:
        return FatalError(
            code, f"{self.name} {what}", hint="`tidegate recover` begins a new log and sweeps"
        )
