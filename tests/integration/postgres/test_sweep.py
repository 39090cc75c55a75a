"""Sweeps of a real PostgreSQL into a real lake: what readers, writers and the gate see."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import psycopg
import pytest

from tests.support.pace import PACE
from tests.support.stack import Stack
from tidegate.config.pipeline import PipelineConfig
from tidegate.connectors.postgres.cut import PostgresCut
from tidegate.errors import ConfigError, DataError, HeldError
from tidegate.lake import positions
from tidegate.lake.gate import GateState
from tidegate.spark.publish import spark_name
from tidegate.testing.postgres_server import PASSWORD

pytestmark = [pytest.mark.spark, pytest.mark.postgres]

ORDERS = """
CREATE TABLE orders (id bigint PRIMARY KEY, customer int NOT NULL, amount numeric(12,2),
                     note text, placed timestamptz NOT NULL DEFAULT '2024-05-01 12:00:00.123456+02')
"""


def fill(stack_db: Any, rows: int, first: int = 1) -> None:
    stack_db.sql(
        "INSERT INTO orders (id, customer, amount, note)"
        " SELECT g, g % 7, g * 1.25, 'order ' || g"
        f" FROM generate_series({first}, {first + rows - 1}) g"
    )


@pytest.fixture
def orders(source_db: Any, stack: Callable[..., Stack]) -> Callable[..., Stack]:
    """A deployed pipeline over ``orders`` with some rows."""

    def make(rows: int = 2500, **options: Any) -> Stack:
        source_db.sql(ORDERS)
        fill(source_db, rows)
        return stack("public.orders", **options)

    return make


def keys(made: Stack, table: str = "public.orders") -> list[int]:
    return sorted(row[0] for row in made.lake(table, "id"))


def test_a_sweep_publishes_every_row_and_stands_at_its_cut(orders: Callable[..., Stack]) -> None:
    made = orders()
    result = made.sweep()
    (table,) = result.tables
    assert (table.status, table.rows) == ("swept", 2500)
    assert table.chunks > 1
    assert positions.applied(made.table("public.orders")) == result.cut
    assert keys(made) == list(range(1, 2501))
    assert made.state("public.orders").state is GateState.OPEN
    assert set(table.checks) >= {"row_count", "keys_unique", "keys_not_null", "key_sum(id)"}
    assert list(made.table("public.orders").metadata.refs) == ["main"]
    one = made.lake("public.orders", "id", "amount", "placed", where="id = 3")[0]
    assert [str(value) for value in one] == ["3", "3.75", "2024-05-01 10:00:00.123456+00:00"]


def test_an_empty_table_is_swept_to_an_empty_table(orders: Callable[..., Stack]) -> None:
    made = orders(rows=0)
    assert made.swept().rows == 0
    assert keys(made) == []
    fill(made.db, 10)
    assert made.swept().rows == 10
    made.db.sql("DELETE FROM orders")
    assert made.swept().rows == 0
    assert keys(made) == []


def test_writers_go_on_and_the_sweep_is_one_moment(orders: Callable[..., Stack]) -> None:
    """Each transaction moves an amount between two rows: at any one moment the sum is the same."""
    made = orders(rows=3000)
    made.db.sql("UPDATE orders SET amount = 100")
    stop, moved = threading.Event(), 0

    def write() -> None:
        nonlocal moved
        with made.db.connect() as connection:
            while not stop.wait(PACE):
                one, two = moved % 3000 + 1, (moved * 7 + 11) % 3000 + 1
                with connection.transaction():
                    connection.execute(
                        "UPDATE orders SET amount = amount - 1 WHERE id = %s", (one,)
                    )
                    connection.execute(
                        "UPDATE orders SET amount = amount + 1 WHERE id = %s", (two,)
                    )
                moved += 1

    writer = threading.Thread(target=write)
    writer.start()
    try:
        made.swept()
    finally:
        stop.set()
        writer.join()
    assert moved > 0
    assert sum(row[0] for row in made.lake("public.orders", "amount")) == 300_000


def test_a_truncate_waits_until_the_sweep_has_read(orders: Callable[..., Stack]) -> None:
    made = orders()
    refused: list[str] = []

    def truncate(stage: str, done: int, total: int | None, unit: str, **facts: Any) -> None:
        if not stage.startswith("sweep"):
            return
        with made.db.connect() as connection:
            connection.execute("SET lock_timeout = '200ms'")
            try:
                connection.execute("TRUNCATE orders")
            except psycopg.errors.LockNotAvailable:
                refused.append(stage)

    assert made.swept(progress=truncate).rows == 2500
    assert refused
    made.db.sql("TRUNCATE orders")


def test_readers_keep_the_old_rows_until_a_second_sweep_is_published(
    orders: Callable[..., Stack],
) -> None:
    made = orders()
    first = made.swept()
    made.db.sql("DELETE FROM orders WHERE id > 1200", "UPDATE orders SET note = 'changed'")
    seen: list[tuple[int, set[str]]] = []

    def look(stage: str, done: int, total: int | None, unit: str, **facts: Any) -> None:
        if stage.startswith("sweep"):
            notes = {row[0][:7] for row in made.lake("public.orders", "note")}
            seen.append((len(keys(made)), notes))
            assert made.state("public.orders").state is GateState.SWEEPING

    made.swept(progress=look)
    assert seen
    assert {(count, frozenset(notes)) for count, notes in seen} == {
        (2500, frozenset({"order 1", *seen[0][1]}))
    }
    assert keys(made) == list(range(1, 1201))
    assert {row[0] for row in made.lake("public.orders", "note")} == {"changed"}
    assert made.table("public.orders").metadata.snapshot_by_id(first.snapshot_id or 0) is not None


def test_a_failed_audit_leaves_main_and_holds_the_table(orders: Callable[..., Stack]) -> None:
    expectation = {
        "type": "expect_column_values_to_be_between",
        "kwargs": {"column": "customer", "min_value": 0, "max_value": 6},
    }
    made = orders(lake={"tables": {"public.orders": {"expectations": [expectation]}}})
    good = made.swept()
    assert any("between" in check for check in good.checks)
    made.db.sql("UPDATE orders SET customer = 99 WHERE id = 5")
    (failed,) = made.sweep(run="bad").tables
    assert failed.status == "failed"
    assert isinstance(failed.error, DataError)
    assert "expect_column_values_to_be_between(customer)" in failed.error.message
    assert "99" not in str(failed.error)
    table = made.table("public.orders")
    assert table.current_snapshot().snapshot_id == good.snapshot_id
    assert "sweep_bad" in table.metadata.refs
    gate = made.state("public.orders")
    assert gate.state is GateState.HELD
    assert "audit failed" in (gate.reason or "")
    made.db.sql("UPDATE orders SET customer = 1 WHERE id = 5")
    assert made.swept().status == "swept"
    assert made.state("public.orders").state is GateState.OPEN
    assert list(made.table("public.orders").metadata.refs) == ["main"]


def test_an_unknown_expectation_is_refused_before_anything_happens(
    orders: Callable[..., Stack],
) -> None:
    wrong = {"type": "expect_column_values_to_not_be_nul", "kwargs": {"column": "id"}}
    made = orders(lake={"tables": {"public.orders": {"expectations": [wrong]}}})
    with pytest.raises(ConfigError, match="nearest is expect_column_values_to_not_be_null"):
        made.sweep()
    assert made.state("public.orders").state is GateState.OPEN


def test_a_new_column_is_added_and_a_retyped_one_holds_the_table(
    orders: Callable[..., Stack],
) -> None:
    made = orders(rows=20)
    before = made.swept()
    made.db.sql("ALTER TABLE orders ADD COLUMN extra int DEFAULT 4")
    made.swept()
    assert {row[0] for row in made.lake("public.orders", "extra")} == {4}
    made.db.sql("ALTER TABLE orders ALTER COLUMN note TYPE int USING 1")
    (held,) = made.sweep().tables
    assert held.status == "held"
    assert isinstance(held.error, HeldError)
    assert "note has another type: text as string → integer as int" in held.error.message
    assert "note   | string | integer as int" in held.error.message
    assert made.state("public.orders").state is GateState.HELD
    assert len(keys(made)) == before.rows


def test_a_dry_run_says_what_it_would_do_and_does_nothing(orders: Callable[..., Stack]) -> None:
    made = orders()
    result = made.sweep(dry_run=True)
    (plan,) = result.tables
    assert plan.status == "planned"
    assert plan.chunks > 1
    assert 2000 < plan.rows < 3000
    assert result.cut is not None
    assert not made.catalog.table_exists((made.pipeline.namespace, "orders"))
    assert made.state("public.orders").state is GateState.OPEN


def test_partitioned_and_sorted_tables_are_written_as_told(orders: Callable[..., Stack]) -> None:
    made = orders(
        lake={
            "tables": {
                "public.orders": {
                    "partition_by": ["bucket(4, customer)"],
                    "sort_by": ["amount desc"],
                }
            }
        }
    )
    made.swept()
    table = made.table("public.orders")
    assert len({str(f) for f in table.inspect.files()["partition"].to_pylist()}) == 4
    assert keys(made) == list(range(1, 2501))


def test_tables_fail_one_by_one(source_db: Any, stack: Callable[..., Stack]) -> None:
    source_db.sql(
        "CREATE TABLE good (id int PRIMARY KEY)",
        "INSERT INTO good SELECT generate_series(1, 5)",
        "CREATE TABLE bad (id int PRIMARY KEY, at int)",
        "INSERT INTO bad VALUES (1, 1)",
    )
    made = stack("public.bad", "public.good")
    made.sweep()
    source_db.sql("ALTER TABLE bad ALTER COLUMN at TYPE text", "INSERT INTO good VALUES (6)")
    result = made.sweep()
    assert {table.table: table.status for table in result.tables} == {
        "public.bad": "held",
        "public.good": "swept",
    }
    assert len(made.lake("public.good", "id")) == 6


def test_values_the_lake_cannot_hold_follow_the_policy_and_are_counted(
    source_db: Any, stack: Callable[..., Stack]
) -> None:
    source_db.sql(
        "CREATE TABLE odd (id int PRIMARY KEY, day date, at timestamptz, amount numeric(10,2))",
        "INSERT INTO odd VALUES (1, 'infinity', '-infinity', 'NaN'),"
        " (2, '2024-02-29', '2024-02-29 23:59:59.999999+00', 12.34), (3, NULL, NULL, NULL)",
    )
    made = stack("public.odd")
    assert made.swept().adjusted == {"day": 1, "at": 1, "amount": 1}
    rows = made.lake("public.odd", "id", "day", "at", "amount")
    assert [[str(value) for value in row] for row in rows] == [
        ["1", "9999-12-31", "0001-01-01 00:00:00+00:00", "None"],
        ["2", "2024-02-29", "2024-02-29 23:59:59.999999+00:00", "12.34"],
        ["3", "None", "None", "None"],
    ]


ARRAYS = {
    "i": "int[]", "l": "bigint[]", "s": "smallint[]", "b": "boolean[]", "f": "real[]",
    "d": "double precision[]", "t": "text[]", "v": "varchar(9)[]", "it's": "text[]",
}  # fmt: skip


def test_arrays_are_what_the_source_holds_by_either_way(
    source_db: Any, stack: Callable[..., Stack]
) -> None:
    """Most are read as arrays; with one that has other bounds, a column is read as text."""
    columns = ", ".join(f'"{name}" {type_}' for name, type_ in ARRAYS.items())
    values = [
        [1, None, -(2**31)], [2**63 - 1, None], [-32768, None], [True, False, None],
        [1.5, None], [-0.0, 1e-300], ["", "NULL", None, 'a,"b\\', "{}"], ["null", None], ["it's"],
    ]  # fmt: skip
    rows = [values, [[] for _ in ARRAYS], [None for _ in ARRAYS]]
    with source_db.connect() as connection:
        for table in ("plain", "odd"):
            connection.execute(f"CREATE TABLE {table} (id int PRIMARY KEY, {columns})")
            marks = ", ".join(f"%s::{type_}" for type_ in ARRAYS.values())
            for number, row in enumerate(rows):
                connection.execute(f"INSERT INTO {table} VALUES ({number}, {marks})", row)
    source_db.sql(
        "INSERT INTO odd (id, t, i) VALUES (3, '[2:3]={a,b}', '{{1,2},{3,4}}'), (4, '{}', '{}')"
    )
    made = stack("public.plain", "public.odd")
    swept = {table.table: table for table in made.sweep().tables}
    wanted = [(number, *row) for number, row in enumerate(rows)]
    assert (swept["public.plain"].rows, swept["public.plain"].parked) == (3, 0)
    assert made.lake("public.plain") == sorted(wanted, key=repr)
    assert (swept["public.odd"].rows, swept["public.odd"].parked) == (5, 1)
    rest = (4, *([] if name in ("t", "i") else None for name in ARRAYS))
    assert made.lake("public.odd") == sorted([*wanted, rest], key=repr)


def test_a_key_range_is_read_again_and_the_rest_stays_current(
    orders: Callable[..., Stack],
) -> None:
    made = orders(rows=300)
    made.swept()
    name = spark_name(made.pipeline.targets[0])
    made.spark.sql(f"DELETE FROM {name} WHERE id IN (50, 150)")  # drift that a sweep mends
    made.db.sql(
        "UPDATE orders SET note = 'new' WHERE id IN (10, 60)", "DELETE FROM orders WHERE id = 20"
    )
    (partial,) = made.sweep(where="id >= 40 and id < 100").tables
    assert partial.status == "failed"  # row 150 is still missing: the count gives it away
    assert partial.error is not None
    assert "the source has 299 rows at the cut, the branch 298" in partial.error.message
    result = made.swept(where="id >= 40 and id <= 150")
    assert positions.applied(made.table("public.orders")) == result.position
    rows = made.db.rows("SELECT id, note FROM orders")
    assert made.lake("public.orders", "id", "note") == sorted(map(tuple, rows), key=repr)


@pytest.mark.parametrize(
    ("where", "why"),
    [("note = 'x'", "whole key"), ("id > 'x'", "than a number"), ("id", "not a range")],
)
def test_a_wrong_key_range_is_refused(orders: Callable[..., Stack], where: str, why: str) -> None:
    made = orders(rows=5)
    with pytest.raises(ConfigError, match=why):
        made.sweep(where=where)
    assert made.state("public.orders").state is GateState.OPEN


def test_what_may_not_be_read_is_said_in_the_servers_words_with_the_grant(
    source_db: Any, stack: Callable[..., Stack], monkeypatch: pytest.MonkeyPatch
) -> None:
    role = f"reader_{source_db.name}"
    source_db.sql(
        f"CREATE ROLE {role} LOGIN REPLICATION PASSWORD '{PASSWORD}'",
        "CREATE TABLE parts (id int, v text) PARTITION BY RANGE (id)",
        "CREATE TABLE parts_a PARTITION OF parts FOR VALUES FROM (0) TO (2000)",
        "CREATE TABLE parts_b PARTITION OF parts FOR VALUES FROM (2000) TO (4000)",
        *(f"ALTER TABLE {name} REPLICA IDENTITY FULL" for name in ("parts", "parts_a", "parts_b")),
        "INSERT INTO parts SELECT g, 'v' FROM generate_series(1, 3000) g",
        "CREATE PUBLICATION mine FOR TABLE parts WITH (publish_via_partition_root = true)",
        f"GRANT SELECT ON parts, parts_a, parts_b TO {role}",
    )
    made = stack("public.parts", lake={"write_mode": "append"}, deployed=False)
    config = made.pipeline.model_dump()
    config["source"] |= {"username": role, "publication_name": "mine", "password": PASSWORD}
    made.pipeline = PipelineConfig.model_validate(config)
    made.deploy()
    source_db.sql(f"REVOKE SELECT ON parts_b FROM {role}")
    (refused,) = made.sweep().tables
    assert refused.error is not None and refused.error.code == "source.privilege"
    assert "public.parts_b" in refused.error.message
    grant = refused.error.hint.partition(" (")[0]
    assert grant.startswith("GRANT SELECT ON ") and grant.endswith(f'TO "{role}"')
    source_db.sql(grant)
    with monkeypatch.context() as patch:  # taken away when it was looked for already
        revoke = f"REVOKE SELECT ON parts_a, parts_b FROM {role}"
        patch.setattr(PostgresCut, "_check_readable", lambda *_: source_db.sql(revoke))
        (refused,) = made.sweep().tables
    assert refused.error is not None and refused.error.code == "source.privilege"
    assert "permission denied for table parts_" in refused.error.message
    assert made.state("public.parts").reason == f"{refused.error.message} → {refused.error.hint}"
