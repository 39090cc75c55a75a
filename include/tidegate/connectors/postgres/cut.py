"""Tables at the cut, as the session that holds its snapshot reads them."""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime

from tidegate.connectors.cut import Chunk, JdbcRead, KeyFacts, Settled, Survey, lost_flag
from tidegate.connectors.marking import Changed
from tidegate.connectors.postgres import (
    checksum,
    ddl_messages,
    discover,
    large_values,
    plain,
    row_versions,
    selection,
    types,
)
from tidegate.connectors.postgres import chunks as chunking
from tidegate.connectors.postgres.connection import (
    Connection,
    jdbc,
)
from tidegate.connectors.postgres.failures import translated
from tidegate.connectors.postgres.settings import PostgresSettings
from tidegate.connectors.postgres.table_facts import look, look_in_cut
from tidegate.connectors.selecting import Checksum, ranges_sql
from tidegate.envelope.mark import Mark
from tidegate.envelope.position import Position
from tidegate.envelope.visible import Visible
from tidegate.errors import ConfigError, RetriableError
from tidegate.names import TableId, quote_sql, several
from tidegate.schema.keyspace import Arcs, Ranges
from tidegate.schema.row_text import has_row_text
from tidegate.schema.table import Column, TableSchema
from tidegate.schema.table_facts import TableFacts


class PostgresCut:
    """One exported snapshot, its position and the session that keeps both alive."""

    def __init__(
        self,
        settings: PostgresSettings,
        holder: Connection,
        position: Position,
        snapshot_name: str,
        timeline: int,
        relations: dict[TableId, discover.Relation],
    ) -> None:
        self._settings = settings
        self._holder = holder
        self._timeline = timeline
        self._relations = relations
        self._schemas: dict[TableId, TableSchema] = {}
        self._asked = threading.RLock()
        self._deadline = time.monotonic() + settings.max_snapshot_seconds
        self.position = position
        self.snapshot_name = snapshot_name

    @property
    def jdbc(self) -> JdbcRead:
        return jdbc(self._settings, self.snapshot_name)

    def schema(self, table: TableId) -> TableSchema:
        if table not in self._schemas:  # it cannot change within the snapshot
            with self._asking("reading the schema"):
                found = discover.discover(self._holder, table, self._settings.publication)
            self._schemas[table] = found
        return self._schemas[table]

    def facts(self, table: TableId) -> TableFacts:
        with self._asking("reading the catalog"):
            return look(self._holder, (table,))[table]

    def facts_since(self, table: TableId, known: TableFacts | None) -> TableFacts:
        with self._asking("reading the catalog"):
            told_by = ddl_messages.told_by(self._holder, self._settings)
            return look_in_cut(self._holder, table, known, told_by)

    def count(self, table: TableId) -> int:
        with self._asking("counting rows"):
            row = self._holder.execute(f"SELECT count(*) FROM {self._from(table)}".encode())
            return int((row.fetchone() or (0,))[0])

    def chunks(
        self,
        table: TableId,
        schema: TableSchema,
        chunk_rows: int,
        *,
        by_key: bool | None = None,
        after: tuple[str, ...] | None = None,
    ) -> list[Chunk]:
        found = self._relation(table)
        keyed = bool(schema.key_columns) if by_key is None else by_key
        with self._asking("planning chunks"):
            parts = chunking.parts(self._holder, found.oid)
            if not keyed:
                self._check_readable(table, parts)
                return chunking.by_ctid(parts, found.kind == "p", chunk_rows)
            rows = sum(part.rows for part in parts)
            return chunking.by_key(self._holder, self._from(table), schema, rows, chunk_rows, after)

    def survey(self, table: TableId, schema: TableSchema, predicate: str | None = None) -> Survey:
        source = self._from(table) + (f" WHERE {predicate}" if predicate else "")
        with self._asking("looking for large values"):
            large = large_values.too_large(
                self._holder, table, schema, source, self._settings.max_value_bytes
            )
        with self._asking("surveying values"):
            sql = plain.survey_sql(schema, source)
            row = self._holder.execute(sql.encode()).fetchone() or (0,)
        keys = plain.summed(schema)
        facts = {
            column.name: KeyFacts(int(row[at]), row[at + 1], row[at + 2])
            for column, at in zip(keys, itertools.count(1, 3), strict=False)
        }
        asked = zip(plain.candidates(schema), row[1 + 3 * len(keys) :], strict=True)
        return Survey(
            rows=int(row[0]),
            plain=frozenset(column.name for column, fine in asked if fine) - large.keys(),
            keys=facts,
            too_large=large,
        )

    def settle(self, table: TableId, schema: TableSchema) -> Settled:
        """All reads were at the cut already."""
        return Settled(self.position, self.survey(table, schema))

    def select_sql(
        self,
        table: TableId,
        schema: TableSchema,
        predicate: Chunk | str | None = None,
        *,
        plain_columns: frozenset[str] = frozenset(),
        too_large: Collection[str] = (),
    ) -> str:
        columns = []
        for column in schema.columns:
            if column.name in plain_columns:
                columns.append(plain.expression(column))
            elif column.name in too_large:
                columns.append(self._bounded(column, types.selected(column), instead=True))
            else:
                columns.append(types.select_expression(column))
        return self._select(", ".join(columns), table, predicate)

    def text_sql(
        self,
        table: TableId,
        schema: TableSchema,
        predicate: Chunk | str | None = None,
        *,
        too_large: Collection[str] = (),
    ) -> str:
        columns = [
            self._bounded(column, types.text_expression(column), instead=False)
            if column.name in too_large
            else f"{types.text_expression(column)} AS {quote_sql(column.name)}"
            for column in schema.columns
        ]
        columns += [
            f"{self.too_large_sql(column)} AS {lost_flag(slot)}"
            for slot, column in enumerate(schema.columns)
            if column.name in too_large
        ]
        return self._select(", ".join(columns), table, predicate)

    def too_large_sql(self, column: Column) -> str:
        return large_values.exceeds(column, self._settings.max_value_bytes)

    def _bounded(self, column: Column, value: str, *, instead: bool) -> str:
        """``value``; of one that is too large its stand-in, or nothing."""
        other = f"ELSE {large_values.stand_in(column)} " if instead else ""
        fits = f"NOT {self.too_large_sql(column)}"
        return f"CASE WHEN {fits} THEN {value} {other}END AS {quote_sql(column.name)}"

    def _select(self, columns: str, table: TableId, predicate: Chunk | str | None) -> str:
        source = self._from(table)
        if isinstance(predicate, Chunk):
            source = f"ONLY {predicate.relation}" if predicate.relation else source
            predicate = predicate.predicate_sql
        return f"SELECT {columns} FROM {source} WHERE {predicate or 'true'}"

    def keys_sql(self, schema: TableSchema, arcs: Arcs) -> str | None:
        return selection.keys_sql(schema, arcs)

    def span(self, table: TableId, column: Column) -> tuple[int, int] | None:
        name = quote_sql(column.name)
        with self._asking("looking for the ends of the key"):
            sql = f"SELECT min({name})::bigint, max({name})::bigint FROM {self._from(table)}"
            low, high = self._holder.execute(sql.encode()).fetchone() or (None, None)
        return None if low is None or high is None else (int(low), int(high))

    def ranges_sql(self, column: Column, ranges: Ranges) -> str:
        return ranges_sql(column, ranges)

    def ordered_sql(self, column: Column) -> str:
        return selection.ordered_sql(column)

    def interval_sql(self, column: Column, start: datetime, end: datetime) -> str:
        return selection.interval_sql(column, start, end)

    def left_out(self, table: TableId) -> Mapping[str, str]:
        with self._asking("reading the schema"):
            found = self._relation(table)
            return discover.left_out(self._holder, found, self._settings.publication)

    def checksum(
        self, table: TableId, schema: TableSchema, plain: frozenset[str], predicate: str
    ) -> Checksum | None:
        if not has_row_text(schema, plain):
            return None
        with self._asking("summing rows up"):
            sql = checksum.checksum_sql(schema, self._from(table), predicate)
            rows, total = self._holder.execute(sql.encode()).fetchone() or (0, 0)
        return Checksum(int(rows), int(total))

    def mark(self, table: TableId, schema: TableSchema) -> Mark | None:
        facts = self.facts(table)
        with self._asking("marking the rows"):
            return row_versions.mark(self._holder, self._timeline, schema, facts)

    def changed(self, table: TableId, schema: TableSchema, since: Mark) -> Changed | None:
        facts = self.facts(table)
        with self._asking("looking for changed rows"):
            return row_versions.changed(
                self._holder, self._timeline, self._from(table), schema, facts, since
            )

    def native(self, column: Column) -> bool:
        return types.native(column)

    def check(self) -> None:
        with self._asking("keeping the cut"):
            self._holder.execute("SELECT 1")

    def _check_readable(self, table: TableId, parts: list[chunking.Part]) -> None:
        """Before any task is told so in the middle of its read."""
        closed = [part.sql_name for part in parts if not part.readable]
        if closed:
            user = self._settings.username
            raise ConfigError(
                "source.privilege",
                f"{table}: {user} may not read {several(closed)}, and partitions are read one by"
                " one",
                hint=f"GRANT SELECT ON {', '.join(closed)} TO {quote_sql(user)} (and USAGE on their"
                " schema); `tidegate validate` looks at every partition",
            )

    def _relation(self, table: TableId) -> discover.Relation:
        return self._relations[table]

    def _from(self, table: TableId) -> str:
        return chunking.from_clause(table, self._relation(table).kind == "p")

    @contextmanager
    def _asking(self, doing: str) -> Iterator[None]:
        """One at a time, each in a savepoint: what fails for one table would otherwise end the
        transaction that holds the snapshot of all of them."""
        if time.monotonic() > self._deadline:
            self._holder.close()
            raise RetriableError(
                "sweep.snapshot_too_old",
                f"the cut is older than {self._settings.max_snapshot_seconds:.0f} s",
                hint="run the sweep again: it resumes; raise sweep.max_snapshot_seconds only if the"
                " source can bear the vacuum it holds back",
            )
        with self._asked, translated(self._settings, doing), self._holder.transaction():
            yield


class PostgresBesideCut(PostgresCut):
    """Implements ``BesideCut``."""

    visible: Visible
