"""The cut of a source whose snapshots cannot be shared between connections (DESIGN §7.4).

Every task reads its chunk in a transaction of its own, at some moment after the cut's position.
When all have read, :meth:`MysqlCut.settle` names a later position with the rows counted exactly
there; draining the log between the two brings every row to it. No transaction is held meanwhile.
"""

from __future__ import annotations

import threading
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import Final

from tidegate.connectors.cut import Chunk, JdbcRead, KeyFacts, Settled, Survey
from tidegate.connectors.mysql import chunks as chunking
from tidegate.connectors.mysql import discover, history, types
from tidegate.connectors.mysql.connection import Connection, connect, jdbc, query
from tidegate.connectors.mysql.failures import translated
from tidegate.connectors.mysql.position import Place
from tidegate.connectors.mysql.settings import MysqlSettings
from tidegate.connectors.mysql.snapshot import exact_snapshot
from tidegate.connectors.selecting import Checksum
from tidegate.envelope.position import Position
from tidegate.errors import ConfigError, DataError
from tidegate.names import TableId, quote_sql
from tidegate.schema.keyspace import Arcs, Ranges
from tidegate.schema.table import Column, TableSchema
from tidegate.schema.table_facts import TableFacts
from tidegate.schema.types import Kind

_SIZE_SQL: Final = """
SELECT data_length FROM information_schema.tables WHERE table_schema = %s AND table_name = %s
"""
_LARGE: Final = ("medium", "long", "geometry", "json")


class MysqlCut:
    """Reads see the tables at or after ``position``."""

    shared = False
    snapshot_name = ""

    def __init__(self, settings: MysqlSettings, connection: Connection, position: Position) -> None:
        self._settings = settings
        self._connection = connection
        self._asked = threading.RLock()
        self.position = position

    @property
    def jdbc(self) -> JdbcRead:
        return jdbc(self._settings)

    def schema(self, table: TableId) -> TableSchema:
        with self._asking("reading the schema"):
            return discover.discover(self._connection, table)

    def count(self, table: TableId) -> int:
        """Rows now; :meth:`settle` counts exactly."""
        with self._asking("counting rows"):
            return int(query(self._connection, f"SELECT count(*) FROM {table.sql}")[0][0])

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
                "sweep.no_key",
                f"{table} has no primary key: it cannot be read in parts that the log completes",
                hint=f"ALTER TABLE {table.sql} ADD PRIMARY KEY (…)",
            )
        with self._asking("planning chunks"):
            return chunking.by_key(self._connection, table, schema, chunk_rows, after)

    def facts(self, table: TableId) -> TableFacts | None:
        return None  # the log carries every DDL

    def survey(self, table: TableId, schema: TableSchema, predicate: str | None = None) -> Survey:
        """Refuses values that are too large, before anything is read."""
        with self._asking("looking for large values"):
            self._refuse_large(table, schema)
        return Survey(rows=0)

    def settle(self, table: TableId, schema: TableSchema) -> Settled:
        keys = [c for c in schema.key_columns if c.type.kind in (Kind.INT, Kind.LONG)]
        names = [quote_sql(key.name) for key in keys]
        asked = [f"COALESCE(SUM(CAST({n} AS DECIMAL(65,0))), 0), MIN({n}), MAX({n})" for n in names]
        sql = f"SELECT {', '.join(['COUNT(*)', *asked])} FROM {table.sql}"
        with (
            self._asking("counting rows at the last cut"),
            exact_snapshot(
                self._settings,
                self._connection,
                (table,),
                self.position.epoch,
                Place.of(self.position).term,
            ) as position,
        ):
            row = query(self._connection, sql)[0]
        facts = {
            key.name: KeyFacts(*(None if v is None else int(v) for v in row[at : at + 3]))  # type: ignore[arg-type]
            for key, at in zip(keys, range(1, len(row), 3), strict=True)
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
        columns = ", ".join(types.select_expression(column) for column in schema.columns)
        if isinstance(predicate, Chunk):
            predicate = predicate.predicate_sql
        return f"SELECT {columns} FROM {table.sql} WHERE {predicate or '1 = 1'}"

    def native(self, column: Column) -> bool:
        return types.native(column)

    def ordered_sql(self, column: Column) -> str:
        name = quote_sql(column.name)
        if column.type.kind is Kind.STRING:
            return f"CAST(CONVERT({name} USING utf8mb4) AS BINARY)"
        return name

    def keys_sql(self, schema: TableSchema, arcs: Arcs) -> str | None:
        return None

    def span(self, table: TableId, column: Column) -> tuple[int, int] | None:
        raise no_shared_cut()

    def ranges_sql(self, column: Column, ranges: Ranges) -> str:
        raise no_shared_cut()

    def text_sql(
        self,
        table: TableId,
        schema: TableSchema,
        predicate: Chunk | str | None = None,
        *,
        too_large: Collection[str] = (),
    ) -> str:
        raise no_shared_cut()  # dead letters of a sweep are rows at its cut

    def too_large_sql(self, column: Column) -> str:
        raise no_shared_cut()

    def interval_sql(self, column: Column, start: datetime, end: datetime) -> str:
        raise no_shared_cut()

    def checksum(
        self, table: TableId, schema: TableSchema, plain: frozenset[str], predicate: str
    ) -> Checksum | None:
        return None

    def check(self) -> None:
        with self._asking("asking the source"):
            query(self._connection, "SELECT 1")

    @contextmanager
    def _asking(self, doing: str) -> Iterator[None]:
        """One at a time: tables are swept side by side, and the driver's connection is one
        conversation."""
        with self._asked, translated(self._settings, doing):
            yield

    def _refuse_large(self, table: TableId, schema: TableSchema) -> None:
        most = self._settings.max_value_bytes
        wide = [c for c in schema.columns if c.source_type.startswith(_LARGE)]
        stored = query(self._connection, _SIZE_SQL, table)
        if not wide or not stored or int(stored[0][0] or 0) <= most:
            return
        counts = ", ".join(f"SUM(OCTET_LENGTH({quote_sql(c.name)}) > {most})" for c in wide)
        (row,) = query(self._connection, f"SELECT {counts} FROM {table.sql}")
        found = {c.name: int(n) for c, n in zip(wide, row, strict=True) if n}
        if found:
            told = ", ".join(f"{name} ({count})" for name, count in found.items())
            raise DataError(
                "sweep.value_too_large",
                f"{table}: values of {told} are larger than {most} bytes",
                hint="shorten or move them at the source, or raise capture.max_value_bytes (and"
                " Spark's memory with it), then sweep again; nothing was published",
            )


def no_shared_cut() -> ConfigError:
    return ConfigError(
        "source.no_shared_cut",
        "MySQL's connections cannot read at one common position",
        hint="sweep the table instead",
    )


@contextmanager
def open_cut(
    settings: MysqlSettings, tables: tuple[TableId, ...], head: Position
) -> Iterator[MysqlCut]:
    """The position from which the log completes whatever is read afterwards."""
    connection = connect(settings)
    try:
        with translated(settings, "making the cut"):
            for table in tables:
                discover.discover(connection, table)
            term = history.term(settings, connection, head)
            with exact_snapshot(settings, connection, tables, head.epoch, term) as position:
                pass
        yield MysqlCut(settings, connection, position)
    finally:
        connection.close()
