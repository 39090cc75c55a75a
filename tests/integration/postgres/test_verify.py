"""Verify: equal tables are equal, and what differs is named by key and column."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.support.stack import Stack
from tidegate.jobs.verify import TableVerdict, run_verify
from tidegate.spark.publish import spark_name
from tidegate.spark.verify import Difference

pytestmark = [pytest.mark.spark, pytest.mark.postgres]

TABLE = "public.things"
WIDE = """
CREATE TABLE things (
  id bigint, part text, amount numeric(12,2), at timestamp, instant timestamptz, day date,
  tags text[], doc jsonb, raw bytea, ok boolean, ratio double precision, free numeric,
  PRIMARY KEY (id, part))
"""
ROWS = """
INSERT INTO things SELECT g, 'p' || g % 3, g * 0.37,
  timestamp '2024-03-31 02:30:00' + g * interval '1 s',
  timestamptz '2024-03-31 02:30:00+01' + g * interval '1 s', date '1999-12-31' + g,
  CASE WHEN g % 4 = 0 THEN NULL ELSE ARRAY['a', NULL, 'x' || g] END, jsonb_build_object('n', g),
  decode(lpad(to_hex(g), 8, '0'), 'hex'), g % 2 = 0, g / 7.0, g / 3.0
FROM generate_series(1, 2200) g
"""


@pytest.fixture
def things(source_db: Any, stack: Callable[..., Stack]) -> Callable[..., Stack]:
    def make(**lake: Any) -> Stack:
        source_db.sql(WIDE, ROWS)
        made = stack(TABLE, lake=lake)
        made.swept()
        return made

    return make


def verdict(made: Stack) -> TableVerdict:
    result = run_verify(made.spark, made.pipeline, made.platform)
    assert result.position is not None
    (table,) = result.tables
    assert table.error is None, table.error
    return table


def test_after_a_sweep_and_changes_source_and_lake_are_equal(things: Callable[..., Stack]) -> None:
    made = things()
    made.db.sql(
        "UPDATE things SET amount = -amount, tags = '{}' WHERE id % 10 = 1",
        "DELETE FROM things WHERE id % 11 = 0",
        "UPDATE things SET id = id + 10000 WHERE id = 5",
        "INSERT INTO things VALUES (-1, '', 0, 'infinity', '-infinity', '0044-03-15 BC')",
    )
    found = verdict(made)
    assert (found.status, found.first) == ("equal", ())
    assert found.source_rows == found.lake_rows == made.db.value("SELECT count(*) FROM things")


def test_every_injected_difference_is_named_by_key_and_column(things: Callable[..., Stack]) -> None:
    made = things()
    name = spark_name(made.pipeline.targets[0])
    made.spark.sql(f"DELETE FROM {name} WHERE id = 7")
    made.spark.sql(f"UPDATE {name} SET amount = 1, ok = NULL WHERE id = 9")
    made.spark.sql(f"UPDATE {name} SET part = 'moved' WHERE id = 12")
    found = verdict(made)
    assert found.status == "different"
    assert (found.missing, found.extra, found.different) == (2, 1, 1)
    assert set(map(repr, found.first)) == {
        repr(Difference("missing", {"id": "7", "part": "p1"})),
        repr(Difference("different", {"id": "9", "part": "p0"}, ("amount", "ok"))),
        repr(Difference("missing", {"id": "12", "part": "p0"})),
        repr(Difference("extra", {"id": "12", "part": "moved"})),
    }


@pytest.mark.parametrize(
    "lake",
    [{"write_mode": "append"}, {"write_mode": "history"}, {"soft_delete": True}],
    ids=["append", "history", "soft_delete"],
)
def test_all_modes_can_be_verified(things: Callable[..., Stack], lake: dict[str, Any]) -> None:
    made = things(**lake)
    made.db.sql(
        "UPDATE things SET amount = 5 WHERE id < 20",
        "UPDATE things SET amount = 6 WHERE id < 10",
        "DELETE FROM things WHERE id BETWEEN 15 AND 25",
        "INSERT INTO things (id, part) VALUES (15, 'p0')",
    )
    assert verdict(made).status == "equal"
    made.swept()
    assert verdict(made).status == "equal"


def test_closed_and_empty_tables_are_skipped_with_the_reason(
    source_db: Any, stack: Callable[..., Stack]
) -> None:
    source_db.sql("CREATE TABLE held (id int PRIMARY KEY)", "CREATE TABLE new (id int PRIMARY KEY)")
    made = stack("public.held", "public.new")
    made.swept("public.held")
    made.gate.hold(["public.held"], "under repair", "test")
    result = run_verify(made.spark, made.pipeline, made.platform)
    assert [(table.table, table.status) for table in result.tables] == [
        ("public.held", "skipped"),
        ("public.new", "skipped"),
    ]
    assert "under repair" in (result.tables[0].reason or "")
    assert "never swept" in (result.tables[1].reason or "")
