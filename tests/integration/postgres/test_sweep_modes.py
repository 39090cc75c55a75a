"""What a second sweep means in each write mode."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.support.stack import Stack
from tidegate.names import CATALOG

pytestmark = [pytest.mark.spark, pytest.mark.postgres]

TABLE = "public.items"


@pytest.fixture
def items(source_db: Any, stack: Callable[..., Stack]) -> Callable[..., Stack]:
    """Three rows, swept once; then one is changed, one deleted, one added."""

    def make(**lake: Any) -> Stack:
        source_db.sql(
            "CREATE TABLE items (id int, part text, v text, PRIMARY KEY (id, part))",
            "INSERT INTO items VALUES (1, 'a', 'one'), (2, 'b', NULL), (3, 'c', 'three')",
        )
        made = stack(TABLE, lake=lake)
        made.swept()
        source_db.sql(
            "UPDATE items SET v = 'ONE' WHERE id = 1",
            "DELETE FROM items WHERE id = 3",
            "INSERT INTO items VALUES (4, 'd', 'four')",
        )
        return made

    return make


def test_soft_delete_replaces_and_keeps_what_is_gone_flagged(items: Callable[..., Stack]) -> None:
    made = items(soft_delete=True)
    cut = str(made.swept().position)
    expected = [
        (1, "ONE", False, None),
        (2, None, False, None),
        (3, "three", True, cut),
        (4, "four", False, None),
    ]
    columns = ("id", "v", "_cdc_deleted", "_cdc_position")
    assert made.lake(TABLE, *columns) == expected
    # A third sweep carries the flagged row over with the position it was deleted at; a row that
    # came back is not there twice.
    made.db.sql("DELETE FROM items WHERE id = 4", "INSERT INTO items VALUES (5, 'e', 'five')")
    later = str(made.swept().position)
    assert made.lake(TABLE, *columns) == [
        *expected[:3],
        (4, "four", True, later),
        (5, "five", False, None),
    ]
    made.db.sql("INSERT INTO items VALUES (3, 'c', 'back')")
    made.swept()
    assert [row for row in made.lake(TABLE, *columns) if row[0] == 3] == [(3, "back", False, None)]


def test_history_closes_what_differs_and_opens_what_is_new(items: Callable[..., Stack]) -> None:
    made = items(write_mode="history")
    first = made.table(TABLE).scan().to_arrow()["_cdc_from_position"][0].as_py()
    cut = str(made.swept().position)
    columns = ("id", "v", "_cdc_from_position", "_cdc_to_position", "_cdc_current", "_cdc_deleted")
    assert made.lake(TABLE, *columns) == sorted(
        [
            (1, "one", first, cut, False, False),
            (1, "ONE", cut, None, True, False),
            (2, None, first, None, True, False),
            (3, "three", first, cut, False, True),
            (4, "four", cut, None, True, False),
        ],
        key=repr,
    )
    # Nothing changed since: nothing is written but the new position.
    again = made.swept()
    assert str(again.position) > cut
    assert len(made.lake(TABLE, "id")) == 5


def test_append_adds_every_row_once_more_as_read(items: Callable[..., Stack]) -> None:
    made = items(write_mode="append")
    cut = str(made.swept().position)
    rows = made.lake(TABLE, "id", "v", "_cdc_op", "_cdc_position", "_cdc_event_id")
    assert {row[2] for row in rows} == {"r"}
    assert sorted((row[0], row[1]) for row in rows if row[3] == cut) == [
        (1, "ONE"),
        (2, None),
        (4, "four"),
    ]
    assert sorted(row[0] for row in rows if row[3] != cut) == [1, 2, 3]
    assert len({row[4] for row in rows}) == 6
    assert all(len(row[4]) == 36 for row in rows)


def test_a_table_without_a_key_is_swept_in_append_mode(
    source_db: Any, stack: Callable[..., Stack]
) -> None:
    source_db.sql(
        "CREATE TABLE events (at timestamp, what text)",
        "ALTER TABLE events REPLICA IDENTITY FULL",
        "INSERT INTO events SELECT '2024-01-01', 'same' FROM generate_series(1, 2100)",
    )
    made = stack("public.events", lake={"write_mode": "append"})
    assert made.swept().rows == 2100
    assert len(made.lake("public.events", "what")) == 2100


def test_without_auto_create_table_a_lake_table_must_exist(
    source_db: Any, stack: Callable[..., Stack]
) -> None:
    source_db.sql(
        "CREATE TABLE items (id int PRIMARY KEY, v text)", "INSERT INTO items VALUES (1, 'one')"
    )
    made = stack(TABLE, lake={"auto_create_table": False})
    (refused,) = made.sweep(TABLE).tables
    assert refused.error is not None and refused.error.code == "sweep.lake_table_missing"
    assert "auto_create_table is false" in (made.state(TABLE).reason or "")
    namespace, name = made.pipeline.targets[0].identifier
    made.spark.sql(
        f"CREATE TABLE {CATALOG}.{namespace}.{name} (id int NOT NULL, v string) USING iceberg"
        " TBLPROPERTIES ('format-version' = '3')"
    )
    made.swept()
    assert made.lake(TABLE) == [(1, "one")]
