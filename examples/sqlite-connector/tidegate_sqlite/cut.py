"""The cut: a sealed position, chunks by key; what is read later the log brings right."""

from __future__ import annotations

import itertools
import sqlite3
import threading
from collections.abc import Collection, Iterator
from contextlib import contextmanager

from tidegate.connectors.cut import Chunk, JdbcRead, KeyFacts, Settled, Survey, lost_flag
from tidegate.envelope.position import Position
from tidegate.errors import ConfigError, FatalError
from tidegate.names import TableId, quote_sql
from tidegate.schema.table import Column, TableSchema
from tidegate.schema.table_facts import TableFacts
from tidegate.schema.types import Kind
from tidegate_sqlite.change_table import ChangeTable
from tidegate_sqlite.database import session, translated, writing
from tidegate_sqlite.settings import SqliteSettings
from tidegate_sqlite.types import discover, literal, text_expression


class SqliteCut:
    """Implements ``Cut``."""

    def __init__(
        self, settings: SqliteSettings, connection: sqlite3.Connection, position: Position
    ) -> None:
        self._settings = settings
        self._sql = connection
        self._asked = threading.RLock()
        self.position = position

    @property
    def jdbc(self) -> JdbcRead:
        return JdbcRead(
            url=f"jdbc:sqlite:{self._settings.database}",
            driver="org.sqlite.JDBC",
            properties={},
            session_init="PRAGMA query_only = 1",
        )

    def schema(self, table: TableId) -> TableSchema:
        with self._asking("reading the schema"):
            return discover(self._sql, table)

    def facts(self, table: TableId) -> TableFacts | None:
        return None

    def count(self, table: TableId) -> int:
        with self._asking("counting rows"):
            return int(self._sql.execute(f"SELECT count(*) FROM {table.sql}").fetchone()[0])

    def chunks(
        self,
        table: TableId,
        schema: TableSchema,
        chunk_rows: int,
        *,
        by_key: bool | None = None,
        after: tuple[str, ...] | None = None,
    ) -> list[Chunk]:
        if not schema.key_columns or by_key is False:
            raise ConfigError(
                "sweep.no_key", f"{table} has no primary key", hint="give it one, or leave it out"
            )
        with self._asking("planning chunks"):
            bounds = [after, *self._bounds(schema, chunk_rows, after), None]
        return [
            Chunk(str(n), _between(schema, low, high), low, high, chunk_rows)
            for n, (low, high) in enumerate(itertools.pairwise(bounds))
        ]

    def survey(self, table: TableId, schema: TableSchema, predicate: str | None = None) -> Survey:
        return Survey(rows=0)

    def settle(self, table: TableId, schema: TableSchema) -> Settled:
        numbers = [c for c in schema.key_columns if c.type.kind is Kind.LONG]
        asked = [
            f"coalesce(sum({n}), 0), min({n}), max({n})"
            for n in (quote_sql(c.name) for c in numbers)
        ]
        with self._asking("counting rows at the last cut"), writing(self._sql):
            position = ChangeTable(self._sql, self._settings.pipeline_id).seal()
            row = self._sql.execute(
                f"SELECT {', '.join(['count(*)', *asked])} FROM {table.sql}"
            ).fetchone()
        facts = {
            column.name: KeyFacts(*row[at : at + 3])
            for column, at in zip(numbers, range(1, len(row), 3), strict=True)
        }
        return Settled(position, Survey(rows=int(row[0]), keys=facts))

    def select_sql(
        self,
        table: TableId,
        schema: TableSchema,
        predicate: Chunk | str | None = None,
        *,
        plain_columns: frozenset[str] = frozenset(),
        too_large: Collection[str] = (),
    ) -> str:
        return self.text_sql(table, schema, predicate, too_large=too_large)

    def text_sql(
        self,
        table: TableId,
        schema: TableSchema,
        predicate: Chunk | str | None = None,
        *,
        too_large: Collection[str] = (),
    ) -> str:
        if isinstance(predicate, Chunk):
            predicate = predicate.predicate_sql
        columns, flags = [], []
        for slot, column in enumerate(schema.columns):
            value = text_expression(column)
            if column.name in too_large:
                large = self.too_large_sql(column)
                value = f"CASE WHEN NOT {large} THEN {value} END"
                flags.append(f"{large} AS {lost_flag(slot)}")
            columns.append(f"{value} AS {quote_sql(column.name)}")
        return f"SELECT {', '.join(columns + flags)} FROM {table.sql} WHERE {predicate or '1 = 1'}"

    def too_large_sql(self, column: Column) -> str:
        name = quote_sql(column.name)
        return f"coalesce(length(CAST({name} AS BLOB)) > {self._settings.max_value_bytes}, 0)"

    def ordered_sql(self, column: Column) -> str:
        return f"{quote_sql(column.name)} COLLATE BINARY"

    def native(self, column: Column) -> bool:
        return False  # a column may hold values of any type: text is what is certain

    def check(self) -> None:
        with self._asking("keeping the cut"):
            self._sql.execute("SELECT 1")

    def _bounds(
        self, schema: TableSchema, chunk_rows: int, after: tuple[str, ...] | None
    ) -> Iterator[tuple[str, ...]]:
        """The first key of every chunk but the first."""
        keys = ", ".join(quote_sql(column.name) for column in schema.key_columns)
        texts = ", ".join(text_expression(column) for column in schema.key_columns)
        low = after
        while True:
            sql = f"SELECT {texts} FROM {schema.table.sql} WHERE {_between(schema, low, None)}"
            found = self._sql.execute(f"{sql} ORDER BY {keys} LIMIT 1 OFFSET {chunk_rows}")
            row = found.fetchone()
            if row is None:
                return
            low = tuple(row)
            yield low

    @contextmanager
    def _asking(self, doing: str) -> Iterator[None]:
        """One at a time: tables are swept side by side."""
        with self._asked, translated(self._settings, doing):
            yield


def _between(schema: TableSchema, low: tuple[str, ...] | None, high: tuple[str, ...] | None) -> str:
    keys = ", ".join(quote_sql(column.name) for column in schema.key_columns)

    def bound(sign: str, key: tuple[str, ...]) -> str:
        pairs = zip(schema.key_columns, key, strict=True)
        return f"({keys}) {sign} ({', '.join(literal(column, text) for column, text in pairs)})"

    parts = [bound(">=", low)] if low is not None else []
    parts += [bound("<", high)] if high is not None else []
    return " AND ".join(parts) or "1 = 1"


@contextmanager
def open_cut(
    settings: SqliteSettings, tables: tuple[TableId, ...], epoch: str
) -> Iterator[SqliteCut]:
    with session(settings, "making the cut") as connection:
        connection.execute("PRAGMA busy_timeout")  # opens the file
        for table in tables:
            discover(connection, table)
        log = ChangeTable(connection, settings.pipeline_id)
        with writing(connection):
            position = log.seal()
        if position.epoch != epoch:
            raise FatalError(
                "sqlite.other_log",
                "the change log was taken of another file",
                hint="`tidegate recover` begins a new log and sweeps",
            )
        yield SqliteCut(settings, connection, position)
