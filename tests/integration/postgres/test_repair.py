"""Differences of every kind are named by key and column, and mended by key and nothing else."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.support.stack import Stack
from tidegate import faults
from tidegate.config.verify import Extent
from tidegate.jobs.verdict import TableVerdict
from tidegate.jobs.verify import run_verify
from tidegate.lake import commits, positions
from tidegate.spark.publish import spark_name
from tidegate.spark.verify import Difference

pytestmark = [pytest.mark.spark, pytest.mark.postgres]

TABLE = "public.things"
WIDE = """
CREATE TABLE things (
  id bigint, part text, big numeric(38,0), note text, at timestamp, tags text[], ok boolean,
  PRIMARY KEY (id, part))
"""
ROWS = """
INSERT INTO things SELECT g, 'pä' || g % 3, 12345678901234567890123456789012345670 + g % 10,
  'note ' || g, timestamp '2024-03-31 02:30:00' + g * interval '1 s',
  CASE WHEN g % 4 = 0 THEN NULL ELSE ARRAY['a', NULL, 'x' || g] END, g % 2 = 0
FROM generate_series(1, 2200) g
"""
PLANTED = (
    "DELETE FROM {0} WHERE id = 7",
    "UPDATE {0} SET ok = NULL, at = NULL WHERE id = 9",
    "UPDATE {0} SET part = 'moved' WHERE id = 12",
    "UPDATE {0} SET big = big + 1 WHERE id = 15",
    "UPDATE {0} SET note = concat(note, '  ') WHERE id = 16",
    "INSERT INTO {0} SELECT * FROM {0} WHERE id = 18",
)
FOUND = {
    repr(Difference("missing", {"id": "7", "part": "pä1"})),
    repr(Difference("different", {"id": "9", "part": "pä0"}, ("at", "ok"))),
    repr(Difference("missing", {"id": "12", "part": "pä0"})),
    repr(Difference("extra", {"id": "12", "part": "moved"})),
    repr(Difference("different", {"id": "15", "part": "pä0"}, ("big",))),
    repr(Difference("different", {"id": "16", "part": "pä1"}, ("note",))),
    repr(Difference("extra", {"id": "18", "part": "pä0"})),
}


@pytest.fixture
def made(source_db: Any, stack: Callable[..., Stack]) -> Stack:
    source_db.sql(WIDE, ROWS)
    made = stack(TABLE)
    made.swept()
    return made


def verify(made: Stack, **options: Any) -> TableVerdict:
    (table,) = run_verify(made.spark, made.pipeline, made.platform, **options).tables
    return table


def plant(made: Stack, *statements: str) -> None:
    name = spark_name(made.pipeline.targets[0])
    for statement in statements:
        made.spark.sql(statement.format(name))


def head(made: Stack) -> int | None:
    return commits.head_id(made.table(TABLE))


def test_every_planted_difference_is_named_and_mended_and_nothing_else(made: Stack) -> None:
    good = made.lake(TABLE)
    plant(made, *PLANTED)
    planned = verify(made, repair=True, dry_run=True)
    before = head(made)
    assert planned.error is None, planned.error
    assert (planned.status, planned.reason) == ("different", "7 keys would be read again")
    assert (planned.missing, planned.extra, planned.different) == (2, 2, 3)
    assert set(map(repr, planned.first)) == FOUND
    mended = verify(made, repair=True)
    assert mended.error is None, mended.error
    assert (mended.status, mended.repaired, mended.coverage) == ("repaired", 7, 100.0)
    assert set(map(repr, mended.first)) == FOUND
    assert made.lake(TABLE) == good
    assert head(made) == mended.snapshot_id
    assert before in {
        snapshot.snapshot_id for snapshot in positions.ancestors(made.table(TABLE).metadata)
    }
    assert list(made.table(TABLE).metadata.refs) == ["main"]
    made.db.sql("UPDATE things SET note = 'later' WHERE id = 7")  # increments go on from there
    again = verify(made)
    assert (again.status, again.coverage, again.first) == ("equal", 100.0, ())


def test_a_kill_between_the_steps_of_a_repair_loses_nothing(
    made: Stack, fault: Callable[[str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    good = made.lake(TABLE)
    plant(made, *PLANTED)
    bad = made.lake(TABLE)
    for point in ("after_branch", "after_delete", "after_rows", "after_publish"):
        assert made.lake(TABLE) == bad
        fault(f"repair.{point}")
        with pytest.raises(faults.Fault):
            verify(made, repair=True)
    monkeypatch.delenv("TIDEGATE_FAULT")
    assert made.lake(TABLE) == good  # killed after it was published: the rows are there
    left = verify(made, repair=True)
    assert (left.status, left.coverage) == ("equal", 100.0)


def test_a_branch_that_breaks_the_users_suite_is_not_published(
    source_db: Any, stack: Callable[..., Stack]
) -> None:
    source_db.sql("CREATE TABLE things (id int PRIMARY KEY, note text)")
    source_db.sql("INSERT INTO things SELECT g, 'n' FROM generate_series(1, 300) g")
    rule = {"type": "expect_column_max_to_be_between", "kwargs": {"column": "id", "max_value": 300}}
    count = {"type": "expect_table_row_count_to_be_between", "kwargs": {"min_value": 300}}
    made = stack(TABLE, lake={"tables": {TABLE: {"expectations": [rule, count]}}})
    made.swept()
    plant(made, "DELETE FROM {0} WHERE id = 7")
    halves = sorted(verify(made, repair=True, extent=Extent(0.5)).status for _ in range(2))
    assert halves == ["equal", "repaired"]  # the suite is asked about the whole table
    made.db.sql("INSERT INTO things VALUES (301, 'n')")
    plant(made, "DELETE FROM {0} WHERE id = 7")
    refused = verify(made, repair=True)
    assert refused.error is not None and refused.error.code == "repair.audit_failed"
    assert (refused.status, refused.missing) == ("different", 1)
    assert (7,) not in made.lake(TABLE, "id")


def test_tables_that_keep_old_rows_are_not_mended_by_key(
    source_db: Any, stack: Callable[..., Stack]
) -> None:
    source_db.sql("CREATE TABLE things (id int PRIMARY KEY, note text)")
    source_db.sql("INSERT INTO things SELECT g, 'n' FROM generate_series(1, 50) g")
    made = stack(TABLE, lake={"soft_delete": True})
    made.swept()
    plant(made, "UPDATE {0} SET note = 'x' WHERE id = 3")
    found = verify(made, repair=True)
    assert (found.status, found.different) == ("different", 1)
    assert found.error is not None and found.error.code == "repair.needs_sweep"
    assert found.coverage == 99.9
