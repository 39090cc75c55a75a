"""Tables read at a cut: all rows once, the same text as the log, an exact handover to it."""

from __future__ import annotations

import random
import threading
from collections.abc import Iterable
from typing import Any

import pytest

from tidegate.connectors.cut import Cut, ExactCut, LoneCut, SharedCut
from tidegate.connectors.protocol import Capability, Source
from tidegate.errors import RetriableError
from tidegate.schema.table import Column, TableSchema
from tidegate.schema.types import Kind
from tidegate.testing.connector.history import (
    ITEMS,
    LogRow,
    deployed,
    drained,
    in_order,
    make_tables,
)
from tidegate.testing.connector.subject import Subject

TYPED = "typed"
CHUNK_ROWS = 100
SEED = 20261117
Rows = dict[str, list[str | None]]
"""By key."""


class SweepChecks:
    """``cut``: what ``Cut`` promises."""

    def test_chunks_cover_every_row_once(self, subject: Subject) -> None:
        make_tables(subject, ITEMS)
        _fill(subject, 1000)
        table = subject.table(ITEMS)
        with (
            deployed(subject, ITEMS) as (connector, made),
            connector.cut((table,), head=made.start) as cut,
        ):
            schema = cut.schema(table)
            assert schema == connector.discover(table)
            assert cut.count(table) == 1000
            chunks = cut.chunks(table, schema, CHUNK_ROWS, by_key=True)
            assert len(chunks) > 2
            assert (chunks[0].lower, chunks[-1].upper) == (None, None)
            assert sorted(_keys(subject, cut, schema, chunks)) == list(range(1000))
            rest = cut.chunks(table, schema, CHUNK_ROWS, by_key=True, after=chunks[1].upper)
            both = [*chunks[:2], *rest]
            assert sorted(_keys(subject, cut, schema, both)) == list(range(1000))
            assert [type(chunk).from_dict(chunk.to_dict()) for chunk in chunks] == chunks
            cut.check()

    def test_an_empty_table_is_read_as_empty(self, subject: Subject) -> None:
        make_tables(subject, ITEMS)
        table = subject.table(ITEMS)
        with (
            deployed(subject, ITEMS) as (connector, made),
            connector.cut((table,), head=made.start) as cut,
        ):
            schema = cut.schema(table)
            assert _read(subject, cut, schema) == {}
            assert cut.settle(table, schema).survey.rows == 0

    def test_the_log_goes_on_exactly_where_the_cut_was(self, subject: Subject) -> None:
        make_tables(subject, ITEMS)
        _fill(subject, 300)
        table = subject.table(ITEMS)
        with deployed(subject, ITEMS) as (connector, made):
            writer = Writer(subject, 300)
            writer.start()
            try:
                writer.wait_for(5)
                with connector.cut((table,), head=made.start) as cut:
                    writer.wait_for(writer.written + 5)
                    rows = _read(subject, cut, cut.schema(table))
                    writer.wait_for(writer.written + 5)
                    exact = _settled(connector, cut, cut.schema(table), rows)
                    writer.wait_for(writer.written + 5)
            finally:
                writer.stop()
            for row in in_order(drained(connector, exact)):
                _apply_strictly(rows, row)
        assert writer.failure is None
        assert rows == _now(subject)

    def test_a_held_cut_stays_at_its_position(self, subject: Subject) -> None:
        make_tables(subject, ITEMS)
        _fill(subject, 300)
        table = subject.table(ITEMS)
        with deployed(subject, ITEMS) as (connector, made):
            if Capability.CUT_HOLD not in connector.capabilities:
                return
            writer = Writer(subject, 300)
            writer.start()
            try:
                writer.wait_for(5)
                with connector.hold((table,), head=made.start) as cut:
                    schema = cut.schema(table)
                    sums = cut.checksum(table, schema, frozenset(), "true")
                    rows = _held(subject, cut, schema)
                    writer.wait_for(writer.written + 5)
                    assert _held(subject, cut, schema) == rows
                    assert cut.checksum(table, schema, frozenset(), "true") == sums
                    assert cut.count(table) == len(rows)
                    exact = cut.position
            finally:
                writer.stop()
            assert sums is not None
            assert sums.rows == len(rows)
            for row in in_order(drained(connector, exact)):
                _apply_strictly(rows, row)
        assert writer.failure is None
        assert rows == _now(subject)

    def test_both_paths_print_the_same_text(self, subject: Subject) -> None:
        table, samples = subject.table(TYPED), subject.types()
        columns = ", ".join(f"c{n} {sample.type}" for n, sample in enumerate(samples))
        subject.sql(f"CREATE TABLE {table.sql} (id integer PRIMARY KEY, {columns})")
        with deployed(subject, TYPED) as (connector, made):
            for id in range(max(len(sample.literals) for sample in samples) + 1):
                literals = (
                    sample.literals[id] if id < len(sample.literals) else "NULL"
                    for sample in samples
                )
                subject.sql(f"INSERT INTO {table.sql} VALUES ({id}, {', '.join(literals)})")
            with connector.cut((table,), head=made.start) as cut:
                schema = cut.schema(table)
                swept = _read(subject, cut, schema)
            batches = drained(connector, made.start)
        logged = {row["key"][0]: row["after"] for row in in_order(batches)}
        assert set(swept) == set(logged)
        for key, texts in logged.items():
            for column, in_log, at_cut in zip(schema.columns, texts, swept[key], strict=True):
                same = in_log == at_cut or _same_number(column, in_log, at_cut)
                assert same, (column.name, column.source_type, in_log, at_cut)
        assert [seen.schema for batch in batches for seen in batch.schemas] == [schema]


class FaultChecks:
    """What goes away comes back; nothing is lost in between."""

    def test_a_broken_stream_is_retriable_and_resumes(self, subject: Subject) -> None:
        make_tables(subject, ITEMS)
        items = subject.table(ITEMS).sql
        assert subject.faults()
        with deployed(subject, ITEMS) as (connector, made):
            for number, fault in enumerate(subject.faults()):
                rows: list[LogRow] = []
                through = connector.status(made.start).current
                begin = number * 100
                subject.sql(f"INSERT INTO {items} VALUES ({begin}, 'before', 0)")
                with (
                    pytest.raises(RetriableError) as broken,
                    connector.changes(through) as stream,
                ):
                    batches = iter(stream)
                    while not rows:
                        batch = next(batches)
                        rows += in_order([batch])
                        through = batch.through or through
                    with fault.strike():
                        for batch in batches:
                            assert not batch.rows.num_rows
                assert broken.value.hint, fault.name
                subject.sql(f"INSERT INTO {items} VALUES ({begin + 1}, 'after', 0)")
                rows += in_order(drained(connector, through))
                assert [row["key"] for row in rows] == [[str(begin)], [str(begin + 1)]]


class Writer(threading.Thread):
    """Writes transactions of a few statements until it is stopped."""

    def __init__(self, subject: Subject, known: int) -> None:
        super().__init__(daemon=True)
        self._subject = subject
        self._random = random.Random(SEED)
        self._ids = list(range(known))
        self._next = known
        self._ended = threading.Event()
        self._progress = threading.Condition()
        self.written = 0
        self.failure: BaseException | None = None

    def run(self) -> None:
        connection = self._subject.connect()
        try:
            cursor = connection.cursor()
            while not self._ended.is_set():
                for _ in range(self._random.randint(1, 4)):
                    cursor.execute(self._statement())
                connection.commit()
                with self._progress:
                    self.written += 1
                    self._progress.notify_all()
        except Exception as error:  # noqa: BLE001 - told by the test's own thread
            self.failure = error
        finally:
            connection.close()
            self._ended.set()
            with self._progress:
                self._progress.notify_all()

    def wait_for(self, count: int) -> None:
        """Until so many transactions are committed."""
        with self._progress:
            assert self._progress.wait_for(
                lambda: self.written >= count or self._ended.is_set(), timeout=60
            )
        assert self.failure is None, self.failure

    def stop(self) -> None:
        self._ended.set()
        self.join(timeout=60)

    def _statement(self) -> str:
        table, kind = self._subject.table(ITEMS).sql, self._random.random()
        if kind < 0.4 or not self._ids:
            self._ids.append(self._next)
            self._next += 1
            return f"INSERT INTO {table} VALUES ({self._ids[-1]}, 'new', {self._next})"
        id = self._random.choice(self._ids)
        if kind < 0.6:
            self._ids.remove(id)
            return f"DELETE FROM {table} WHERE id = {id}"
        if kind < 0.7:
            self._ids[self._ids.index(id)] = self._next
            self._next += 1
            return f"UPDATE {table} SET id = {self._next - 1} WHERE id = {id}"
        return f"UPDATE {table} SET amount = {self._random.randint(0, 10**6)} WHERE id = {id}"


def _fill(subject: Subject, rows: int) -> None:
    values = ", ".join(f"({id}, 'row', {id})" for id in range(rows))
    subject.sql(f"INSERT INTO {subject.table(ITEMS).sql} VALUES {values}")


def _read(subject: Subject, cut: Cut, schema: TableSchema) -> Rows:
    """All rows, chunk by chunk, each on a connection of its own, as the log prints them."""
    key = [column.name for column in schema.columns].index(schema.key_columns[0].name)
    rows: Rows = {}
    for chunk in cut.chunks(schema.table, schema, CHUNK_ROWS, by_key=True):
        for row in _ask(subject, cut, cut.text_sql(schema.table, schema, chunk)):
            assert str(row[key]) not in rows
            rows[str(row[key])] = list(row)
    return rows


def _held(subject: Subject, cut: ExactCut, schema: TableSchema) -> Rows:
    if not isinstance(cut, LoneCut):
        return _read(subject, cut, schema)
    names = [column.name for column in schema.columns]
    key = names.index(schema.key_columns[0].name)
    sql = cut.select_sql(schema.table, schema)
    parts = [part.to_pydict() for part in cut.fetch(sql, CHUNK_ROWS)]
    rows = [list(row) for part in parts for row in zip(*(part[n] for n in names), strict=True)]
    return {row[key]: row for row in rows}


def _keys(subject: Subject, cut: Cut, schema: TableSchema, chunks: Iterable[Any]) -> list[int]:
    return [
        int(row[0])
        for chunk in chunks
        for row in _ask(subject, cut, cut.select_sql(schema.table, schema, chunk))
    ]


def _ask(subject: Subject, cut: Cut, sql: str) -> list[tuple[Any, ...]]:
    with subject.reader(cut) as connection:
        cursor = connection.cursor()
        cursor.execute(sql)
        return [tuple(row) for row in cursor.fetchall()]


def _settled(connector: Source, cut: Cut, schema: TableSchema, rows: Rows) -> Any:
    """The position that the rows are exact at, once the log up to there is applied."""
    settled = cut.settle(schema.table, schema)
    if isinstance(cut, SharedCut):
        assert settled.position == cut.position
    for row in in_order(drained(connector, cut.position, until=settled.position)):
        if str(row["position"]) <= settled.position.place:
            _apply(rows, row)
    assert len(rows) == settled.survey.rows
    for column, facts in settled.survey.keys.items():
        assert column == schema.key_columns[0].name
        assert facts.total == sum(int(key) for key in rows)
    return settled.position


def _same_number(column: Column, one: str | None, other: str | None) -> bool:
    """1e300 is 1e+300; of every other type, each letter counts."""
    floating = column.type.kind in (Kind.FLOAT, Kind.DOUBLE)
    return floating and one is not None and other is not None and float(one) == float(other)


def _apply(rows: Rows, row: LogRow) -> None:
    """What a row was read with may be later than the change."""
    rows.pop(row["key"][0], None)
    if row["after"] is not None:
        rows[row["after"][0]] = row["after"]


def _apply_strictly(rows: Rows, row: LogRow) -> None:
    """Nothing is missing, nothing is there already."""
    known = row["key"][0] in rows
    assert known is (row["op"] != "c"), (row["op"], row["key"], row["position"])
    _apply(rows, row)


def _now(subject: Subject) -> Rows:
    found = subject.rows(f"SELECT id, name, amount FROM {subject.table(ITEMS).sql}")
    return {str(row[0]): [None if v is None else str(v) for v in row] for row in found}
