"""Reload: the rows of an interval are right afterwards, on whichever side they were in it."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from tests.support.stack import Stack
from tidegate.errors import ConfigError
from tidegate.jobs.reload import run_reload
from tidegate.jobs.verdict import TableVerdict
from tidegate.spark.publish import spark_name

pytestmark = [pytest.mark.spark, pytest.mark.postgres]

TABLES = ("public.events", "public.days", "public.other")
SETUP = (
    "CREATE TABLE events (id text PRIMARY KEY, at timestamptz, note text)",
    "INSERT INTO events SELECT 'e' || g, timestamptz '2026-03-01 00:00Z' + g * interval '1 h', 'n'"
    " FROM generate_series(0, 71) g",
    "CREATE TABLE days (id date PRIMARY KEY, note text)",
    "INSERT INTO days SELECT date '2026-03-01' + g, 'n' FROM generate_series(0, 9) g",
    "CREATE TABLE other (id int PRIMARY KEY)",
)
PLANTED = (
    "DELETE FROM {0} WHERE id = 'e30'",  # of the second of March
    "UPDATE {0} SET note = 'wrong' WHERE id = 'e31'",
    "UPDATE {0} SET at = TIMESTAMP '2020-01-01 00:00:00' WHERE id = 'e32'",  # left the interval
    "UPDATE {0} SET at = TIMESTAMP '2026-03-02 23:59:59.999999' WHERE id = 'e70'",  # came into it
    "UPDATE {0} SET note = 'wrong' WHERE id IN ('e23', 'e48')",  # right before and after it
)
DAY = {"start": datetime(2026, 3, 2, tzinfo=UTC), "end": datetime(2026, 3, 3, tzinfo=UTC)}


def test_the_rows_of_an_interval_are_mended_and_no_others(
    source_db: Any, stack: Callable[..., Stack]
) -> None:
    source_db.sql(*SETUP)
    options = {
        "public.events": {"reload": {"time_column": "at"}},
        "public.days": {"reload": {"time_column": "id"}},
    }
    made = stack(*TABLES, lake={"tables": options})
    for result in made.sweep().tables:
        assert result.error is None, result.error
    good = made.lake("public.events", "id", "at", "note")
    for statement in PLANTED:
        made.spark.sql(statement.format(spark_name(made.pipeline.targets[0])))
    days = spark_name(made.pipeline.targets[1])
    made.spark.sql(f"UPDATE {days} SET note = 'wrong' WHERE id IN ('2026-03-02', '2026-03-03')")

    def reload(**more: Any) -> dict[str, TableVerdict]:
        result = run_reload(made.spark, made.pipeline, made.platform, **DAY, **more)
        assert result.equal, [table.error for table in result.tables]
        return {table.table: table for table in result.tables}

    found = reload(dry_run=True)
    assert sorted(found) == ["public.days", "public.events"]  # the other has no time column
    events = found["public.events"]
    assert (events.status, events.reason) == ("planned", "4 keys would be read again")
    assert (events.missing, events.extra, events.different) == (1, 0, 3)
    assert events.source_rows == 25  # the day's, and the one that the lake has in it
    done = reload()
    assert (done["public.events"].status, done["public.events"].repaired) == ("repaired", 4)
    assert (done["public.days"].status, done["public.days"].repaired) == ("repaired", 1)
    wrong = set(good) ^ set(made.lake("public.events", "id", "at", "note"))
    assert {row[0] for row in wrong} == {"e23", "e48"}
    assert [str(row[0]) for row in made.lake("public.days", "id", where="note = 'wrong'")] == [
        "2026-03-03"
    ]
    again = reload(tables=["public.events"])["public.events"]
    assert (again.status, again.source_rows) == ("equal", 24)
    with pytest.raises(ConfigError, match=r"public\.other"):
        reload(tables=["public.other"])
