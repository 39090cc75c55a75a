"""A cut that stays exact: one connection's snapshot, which reads everything itself.

What is compared is mostly summed up by the server; only where sums differ do rows travel over the
one connection there is.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from datetime import datetime

import pyarrow as pa
from pymysql.cursors import SSCursor

from tidegate.connectors.cut import Chunk, Survey
from tidegate.connectors.mysql import chunks as chunking
from tidegate.connectors.mysql import selection
from tidegate.connectors.mysql.checksum import checksum_sql, has_text
from tidegate.connectors.mysql.connection import query
from tidegate.connectors.mysql.failures import translated
from tidegate.connectors.mysql.settings import MysqlSettings
from tidegate.connectors.mysql.snapshot import joined
from tidegate.connectors.mysql.sweep import MysqlCut
from tidegate.connectors.selecting import Checksum, ranges_sql
from tidegate.envelope.position import Position
from tidegate.names import TableId, quote_sql
from tidegate.schema.keyspace import Arcs, Ranges
from tidegate.schema.row_text import IF_PLAIN, has_row_text
from tidegate.schema.table import Column, TableSchema


class HeldCut(MysqlCut):
    """Implements ``LoneCut``."""

    def chunks(
        self,
        table: TableId,
        schema: TableSchema,
        chunk_rows: int,
        *,
        by_key: bool | None = None,
        after: tuple[str, ...] | None = None,
    ) -> list[Chunk]:
        """Nobody reads side by side, so physical ranges are one: to walk the key for more would
        cost a pass over its index, also where sums are equal and nothing is read."""
        if by_key is False:
            return [Chunk("whole", chunking.WHOLE)]
        return super().chunks(table, schema, chunk_rows, by_key=by_key, after=after)

    def survey(self, table: TableId, schema: TableSchema, predicate: str | None = None) -> Survey:
        """Nothing is counted. Zero and partial dates print otherwise than in the lake: sums then
        differ, and the rows are looked at."""
        with self._asking("looking for large values"):
            self._refuse_large(table, schema)
        return Survey(0, frozenset(c.name for c in schema.columns if c.type.kind in IF_PLAIN))

    def select_sql(
        self,
        table: TableId,
        schema: TableSchema,
        predicate: Chunk | str | None = None,
        *,
        plain_columns: frozenset[str] = frozenset(),
        too_large: Collection[str] = (),
    ) -> str:
        return self.text_sql(table, schema, predicate)

    def native(self, column: Column) -> bool:
        return False

    def fetch(self, sql: str, rows: int) -> Iterator[pa.Table]:
        with self._asking("reading rows"), self._connection.cursor(SSCursor) as cursor:
            cursor.execute(sql)
            names = [str(column[0]) for column in cursor.description or ()]
            part = cursor.fetchmany(rows)
            while True:
                columns = zip(*part, strict=True) if part else ((),) * len(names)
                yield pa.table([pa.array(c, pa.string()) for c in columns], names=names)
                part = cursor.fetchmany(rows)
                if not part:
                    return

    def keys_sql(self, schema: TableSchema, arcs: Arcs) -> str | None:
        return selection.keys_sql(schema, arcs)

    def span(self, table: TableId, column: Column) -> tuple[int, int] | None:
        name = quote_sql(column.name)
        with self._asking("looking for the ends of the key"):
            sql = f"SELECT MIN({name}) + 0, MAX({name}) + 0 FROM {table.sql}"  # bits are bytes
            ((low, high),) = query(self._connection, sql)
        return None if low is None else (int(low), int(high))

    def ranges_sql(self, column: Column, ranges: Ranges) -> str:
        return ranges_sql(column, ranges)

    def interval_sql(self, column: Column, start: datetime, end: datetime) -> str:
        return selection.interval_sql(column, start, end)

    def left_out(self, table: TableId) -> Mapping[str, str]:
        return {}  # the log's rows are whole, generated columns included

    def checksum(
        self, table: TableId, schema: TableSchema, plain: frozenset[str], predicate: str
    ) -> Checksum | None:
        if not has_row_text(schema, plain) or not has_text(schema):
            return None
        with self._asking("summing rows up"):
            ((rows, total),) = query(self._connection, checksum_sql(schema, table, predicate))
        return Checksum(int(rows), int(total))


@contextmanager
def open_held(
    settings: MysqlSettings, tables: tuple[TableId, ...], head: Position
) -> Iterator[HeldCut]:
    """A snapshot of ``tables`` at a position that continues ``head``."""
    with joined(settings, tables, head) as (connection, snapshot), ExitStack() as held:
        with translated(settings, "making the cut"):
            # The server ends the snapshot even if this process hangs (I11).
            query(connection, f"SET SESSION wait_timeout = {int(settings.max_snapshot_seconds)}")
            position = held.enter_context(snapshot)
        yield HeldCut(settings, connection, position)
