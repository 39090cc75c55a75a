"""The log: order, wholeness, resuming anywhere, reading again."""

from __future__ import annotations

import itertools

import pytest

from tidegate.envelope import log_rows
from tidegate.envelope.change import Op
from tidegate.errors import FatalError
from tidegate.testing.connector.history import (
    ITEMS,
    OTHER,
    LogRow,
    deployed,
    drained,
    in_order,
    make_tables,
    repeatable,
    write_history,
)
from tidegate.testing.connector.subject import Subject


class ChangesChecks:
    """``changes``: what ``ChangeStream`` promises."""

    def test_a_history_is_told_exactly(self, subject: Subject) -> None:
        make_tables(subject, ITEMS, OTHER)
        with deployed(subject, ITEMS, OTHER) as (connector, made):
            history = write_history(subject, connector, made.start)
            schemas = {s.schema.schema_id: s.schema for b in history.batches for s in b.schemas}
        for batch in history.batches:
            assert batch.rows.schema.equals(log_rows.ARROW_SCHEMA)
        items, other = (str(subject.table(name)) for name in (ITEMS, OTHER))
        odd = 'it\'s \\ "odd" é 漢 🌊'
        assert [_short(row) for row in history.rows] == [
            (items, "c", ["1"], ["1", "one", "10"]),
            (items, "c", ["2"], ["2", "two", None]),
            (other, "c", ["1"], ["1", "", "0"]),
            (items, "u", ["1"], ["1", "one", "11"]),
            (items, "u", ["2"], ["2", None, None]),
            (items, "u", ["2"], ["20", None, None]),
            (items, "d", ["1"], None),
            (items, "c", ["1"], ["1", "again", "1"]),
            (other, "c", ["2"], ["2", odd, "-5"]),
            (other, "d", ["1"], None),
        ]
        for row in history.rows:
            schema = schemas[row["schema_id"]]
            assert str(schema.table) == row["table"]
            assert [column.name for column in schema.columns] == ["id", "name", "amount"]
            assert row["before"] is None or len(row["before"]) == len(schema.columns)
            assert Op(row["op"])

    def test_positions_are_text_in_log_order_and_no_two_are_alike(self, subject: Subject) -> None:
        make_tables(subject, ITEMS, OTHER)
        with deployed(subject, ITEMS, OTHER) as (connector, made):
            history = write_history(subject, connector, made.start)
        places = [str(row["position"]) for row in history.rows]
        assert places == sorted(set(places))
        assert len({len(place) for place in places}) == 1
        assert len({row["event_id"] for row in history.rows}) == len(places)
        assert {row["epoch"] for row in history.rows} == {made.start.epoch}
        assert all(made.start.place < place for place in places)
        through = [batch.through for batch in history.batches if batch.through is not None]
        assert through == sorted(through)
        assert through[-1].place >= places[-1]
        assert all(position.is_boundary for position in through)

    def test_resuming_at_any_boundary_gives_exactly_the_rest(self, subject: Subject) -> None:
        make_tables(subject, ITEMS, OTHER)
        with deployed(subject, ITEMS, OTHER) as (connector, made):
            history = write_history(subject, connector, made.start)
            known = repeatable(history.rows)
            assert len(history.boundaries) > 2
            for at in history.boundaries:
                told = repeatable(in_order(drained(connector, made.start, until=at)))
                wanted = [row for row in known if str(row["position"]) <= at.place]
                assert told[: len(wanted)] == wanted
            for at in history.boundaries:  # forwards: what lies before may be forgotten
                rest = [row for row in known if str(row["position"]) > at.place]
                assert repeatable(in_order(drained(connector, at))) == rest

    def test_reading_again_gives_the_same_rows_and_ids(self, subject: Subject) -> None:
        make_tables(subject, ITEMS, OTHER)
        with deployed(subject, ITEMS, OTHER) as (connector, made):
            history = write_history(subject, connector, made.start)
            assert repeatable(in_order(drained(connector, made.start))) == repeatable(history.rows)

    def test_transactions_are_whole_and_in_commit_order(self, subject: Subject) -> None:
        make_tables(subject, ITEMS)
        items = subject.table(ITEMS).sql
        with deployed(subject, ITEMS) as (connector, made):
            first, second = subject.connect(), subject.connect()
            try:
                early, late = first.cursor(), second.cursor()
                early.execute(f"INSERT INTO {items} VALUES (1, 'begun first', 1)")
                if not subject.interleaves:
                    first.commit()
                late.execute(f"INSERT INTO {items} VALUES (2, 'committed first', 2)")
                second.commit()
                early.execute(f"INSERT INTO {items} VALUES (3, 'begun first', 3)")
                first.commit()
            finally:
                first.close()
                second.close()
            many = ", ".join(f"({id}, 'many', {id})" for id in range(100, 400))
            subject.transaction(f"INSERT INTO {items} VALUES {many}")
            batches = drained(connector, made.start)
        rows = in_order(batches)
        keys = [int(row["key"][0]) for row in rows]
        begun = [2, 1, 3] if subject.interleaves else [1, 2, 3]
        assert keys == [*begun, *range(100, 400)]
        transactions = [tx for tx, _ in itertools.groupby(row["tx_id"] for row in rows)]
        assert len(transactions) == len(set(transactions)), "one of them is told in two parts"
        for batch in batches:
            _ends_between_transactions(batch.through.place if batch.through else None, rows)

    def test_a_large_transaction_has_no_boundary_inside(self, subject: Subject) -> None:
        make_tables(subject, ITEMS)
        items = subject.table(ITEMS).sql
        with deployed(subject, ITEMS, batch_bytes=64 * 1024) as (connector, made):
            text = "x" * 40
            subject.transaction(
                *(
                    f"INSERT INTO {items} VALUES "
                    + ", ".join(f"({at + id}, '{text}', {id})" for id in range(500))
                    for at in range(0, 2000, 500)
                )
            )
            subject.sql(f"INSERT INTO {items} VALUES (-1, 'after', 0)")
            batches = drained(connector, made.start)
        rows = in_order(batches)
        assert [int(row["key"][0]) for row in rows] == [*range(2000), -1]
        for batch in batches:
            _ends_between_transactions(batch.through.place if batch.through else None, rows)

    def test_what_was_confirmed_is_never_silently_missing(self, subject: Subject) -> None:
        make_tables(subject, ITEMS, OTHER)
        with deployed(subject, ITEMS, OTHER) as (connector, made):
            history = write_history(subject, connector, made.start)
            half = history.boundaries[len(history.boundaries) // 2]
            with connector.changes(made.start, until="now") as stream:
                list(stream)
                stream.confirm(half)
                stream.settle()
            known = repeatable(history.rows)
            rest = [row for row in known if str(row["position"]) > half.place]
            assert repeatable(in_order(drained(connector, half))) == rest
            try:
                again = repeatable(in_order(drained(connector, made.start)))
            except FatalError as refused:
                assert refused.hint
            else:
                assert again == known

    def test_a_quiet_source_says_so(self, subject: Subject) -> None:
        make_tables(subject, ITEMS)
        with deployed(subject, ITEMS) as (connector, made):
            with connector.changes(made.start) as stream:
                batch = next(iter(stream))
            assert batch.rows.num_rows == 0
            assert batch.through is None or batch.through >= made.start
            assert connector.status(made.start).current >= made.start


def _short(row: LogRow) -> tuple[object, ...]:
    return row["table"], row["op"], row["key"], row["after"]


def _ends_between_transactions(place: str | None, rows: list[LogRow]) -> None:
    """No transaction has changes on both sides of ``place``."""
    if place is None:
        return
    before = {row["tx_id"] for row in rows if str(row["position"]) <= place}
    after = {row["tx_id"] for row in rows if str(row["position"]) > place}
    if before & after:
        pytest.fail(f"the boundary {place} lies inside a transaction")
