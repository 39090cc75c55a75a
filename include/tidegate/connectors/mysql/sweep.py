"""The cut of a source whose snapshots cannot be shared between connections (DESIGN §7.4).

Every task reads its chunk in a transaction of its own, at some moment after the cut's position.
When all have read, :meth:`MysqlCut.settle` names a later position with the rows counted exactly
there; draining the log between the two brings every row to it. No transaction is held meanwhile.
"""

from __future__ import annotations

import threading
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from typing import Final

from tidegate.connectors.cut import Chunk, JdbcRead, KeyFacts, Settled, Survey, lost_flag
from tidegate.connectors.mysql import chunks as chunking
from tidegate.connectors.mysql import discover, looks, types
from tidegate.connectors.mysql.connection import Connection, jdbc, query
from tidegate.connectors.mysql.failures import translated
from tidegate.connectors.mysql.position import Place
from tidegate.connectors.mysql.settings import MysqlSettings
from tidegate.connectors.mysql.snapshot import exact_snapshot, joined
from tidegate.envelope.position import Position
from tidegate.errors import ConfigError, DataError
from tidegate.names import TableId, quote_sql
from tidegate.schema.table import Column, TableSchema
from tidegate.schema.table_facts import TableFacts
from tidegate.schema.types import Kind

_SIZE_SQL: Final = """
SELECT data_length FROM information_schema.tables WHERE table_schema = %s AND table_name = %s
"""
_LARGE: Final = ("medium", "long", "geometry", "json")


class MysqlCut:
    """Reads see the tables at or after ``position``."""

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

    def facts(self, table: TableId) -> TableFacts:
        """What later looks are compared with."""
        with self._asking("reading the catalog"):
            where = looks.server(self._connection)
            return looks.see(self._connection, table, where).facts

    def survey(self, table: TableId, schema: TableSchema, predicate: str | None = None) -> Survey:
        """Refuses values that are too large, before anything is read."""
        with self._asking("looking for what cannot be swept"):
            self._refuse_untold(table)
            self._refuse_large(table, schema)
        return Survey(rows=0)

    def settle(self, table: TableId, schema: TableSchema) -> Settled:
        keys = [c for c in schema.key_columns if c.type.kind in (Kind.INT, Kind.LONG)]
        names = [quote_sql(key.name) for key in keys]
        # + 0: MySQL gives bits as bytes.
        asked = [
            f"COALESCE(SUM(CAST({n} AS DECIMAL(65,0))), 0), MIN({n}) + 0, MAX({n}) + 0"
            for n in names
        ]
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
        return _select(columns, table, predicate)

    def native(self, column: Column) -> bool:
        return types.native(column)

    def ordered_sql(self, column: Column) -> str:
        name = quote_sql(column.name)
        if column.type.kind is Kind.STRING:
            return f"CAST(CONVERT({name} USING utf8mb4) AS BINARY)"
        return name

    def text_sql(
        self,
        table: TableId,
        schema: TableSchema,
        predicate: Chunk | str | None = None,
        *,
        too_large: Collection[str] = (),
    ) -> str:
        columns, flags = [], []
        for slot, column in enumerate(schema.columns):
            value = types.text_expression(column)
            if column.name in too_large:
                large = self.too_large_sql(column)
                value = f"CASE WHEN NOT {large} THEN {value} END"
                flags.append(f"{large} AS {lost_flag(slot)}")
            columns.append(f"{value} AS {quote_sql(column.name)}")
        return _select(", ".join(columns + flags), table, predicate)

    def too_large_sql(self, column: Column) -> str:
        most = self._settings.max_value_bytes
        return f"COALESCE(OCTET_LENGTH({quote_sql(column.name)}) > {most}, FALSE)"

    def check(self) -> None:
        with self._asking("asking the source"):
            query(self._connection, "SELECT 1")

    @contextmanager
    def _asking(self, doing: str) -> Iterator[None]:
        """One at a time: tables are swept side by side, and the driver's connection is one
        conversation."""
        with self._asked, translated(self._settings, doing):
            yield

    def _refuse_untold(self, table: TableId) -> None:
        """What it reads would be right, and wrong with the next change."""
        found = looks.see(self._connection, table, "").trouble
        if found is not None:
            raise ConfigError(
                "sweep.untold_changes",
                f"{table}: {found}",
                hint="`tidegate validate` names it with the statement that mends it; then sweep",
            )

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


def _select(columns: str, table: TableId, predicate: Chunk | str | None) -> str:
    if isinstance(predicate, Chunk):
        predicate = predicate.predicate_sql
    return f"SELECT {columns} FROM {table.sql} WHERE {predicate or '1 = 1'}"


@contextmanager
def open_cut(
    settings: MysqlSettings, tables: tuple[TableId, ...], head: Position
) -> Iterator[MysqlCut]:
    """The position from which the log completes whatever is read afterwards."""
    with joined(settings, tables, head) as (connection, snapshot):
        with translated(settings, "making the cut"), snapshot as position:
            pass
        yield MysqlCut(settings, connection, position)
