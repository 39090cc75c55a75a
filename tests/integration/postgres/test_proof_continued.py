"""A proof that is continued reads what changed, and finds whatever a whole comparison would."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from tests.support.stack import Stack
from tidegate.config.verify import extent
from tidegate.connectors.postgres.cut import PostgresCut
from tidegate.jobs.maintain import run_maintain
from tidegate.jobs.verdict import TableVerdict
from tidegate.jobs.verify import run_verify
from tidegate.names import POSITION_PROPERTY, STEP_PROPERTY
from tidegate.spark.publish import spark_name

pytestmark = [pytest.mark.spark, pytest.mark.postgres]

TABLE = "public.goods"
ROWS = 3000
SETUP = (
    "CREATE TABLE goods (id int PRIMARY KEY, name text, price numeric(38,2), at timestamptz)",
    f"INSERT INTO goods SELECT g, 'good ' || g, g / 7.0, now() FROM generate_series(1, {ROWS}) g",
)


@pytest.fixture
def proven(source_db: Any, stack: Callable[..., Stack]) -> Stack:
    """A table that was swept and found equal in every row."""
    source_db.sql(*SETUP)
    made = stack(TABLE)
    made.swept()
    assert whole(made).status == "equal"
    return made


@pytest.fixture
def surveyed(monkeypatch: pytest.MonkeyPatch) -> list[str | None]:
    """Predicates of the source's passes over values: none for all rows."""
    asked: list[str | None] = []
    survey = PostgresCut.survey

    def noted(self: Any, table: Any, schema: Any, predicate: str | None = None) -> Any:
        asked.append(predicate)
        return survey(self, table, schema, predicate)

    monkeypatch.setattr(PostgresCut, "survey", noted)
    return asked


def whole(made: Stack, **options: Any) -> TableVerdict:
    (table,) = run_verify(made.spark, made.pipeline, made.platform, **options).tables
    assert table.error is None, table.error
    return table


def changed(made: Stack, **options: Any) -> TableVerdict:
    return whole(made, extent=extent("changed"), **options)


def test_what_changed_is_compared_and_the_whole_table_is_proven(
    proven: Stack, surveyed: list[str | None]
) -> None:
    untouched = changed(proven)
    assert (untouched.status, untouched.source_rows, untouched.coverage) == ("equal", ROWS, 100.0)
    assert "0 rows changed" in str(untouched.reason)
    assert surveyed == []
    proven.db.sql(
        "UPDATE goods SET price = price + 1 WHERE id % 100 = 0",
        "DELETE FROM goods WHERE id IN (1, 2, 3)",
        f"INSERT INTO goods VALUES ({ROWS + 1}, 'new', 1, now())",
        "UPDATE goods SET id = -id WHERE id = 50",
        "DELETE FROM goods WHERE id = 60",
        "INSERT INTO goods VALUES (60, 'again', 60, now())",
    )
    verdict = changed(proven)
    assert (verdict.status, verdict.source_rows, verdict.coverage) == ("equal", ROWS - 2, 100.0)
    # 30 updates, a new key, a key that moved, one that came back; the deleted are nowhere.
    assert "33 rows changed" in str(verdict.reason)
    assert surveyed and None not in surveyed
    # Upkeep rewrites files and expires the snapshot: what was carried over begins anew.
    run_maintain(proven.spark, proven.pipeline, proven.platform, force=True)
    proven.db.sql("UPDATE goods SET name = 'later' WHERE id = 7")
    assert changed(proven).status == "equal"


@contextmanager
def posing_as_ours(made: Stack) -> Iterator[str]:
    """What is written carries the properties of an apply, so that no proof is withdrawn by it."""
    snapshot = made.table(TABLE).current_snapshot()
    assert snapshot is not None and snapshot.summary is not None
    position = snapshot.summary.additional_properties[POSITION_PROPERTY]
    conf = "spark.sql.iceberg.snapshot-property"
    pairs = {f"{conf}.{STEP_PROPERTY}": "apply", f"{conf}.{POSITION_PROPERTY}": position}
    for name, value in pairs.items():
        made.spark.conf.set(name, value)
    try:
        yield spark_name(made.pipeline.targets[0])
    finally:
        for name in pairs:
            made.spark.conf.unset(name)


PLANTED = {
    "DELETE FROM {t} WHERE id IN (10, 11)": (2, 0, 0),
    "INSERT INTO {t} SELECT id + 100000, name, price, at FROM {t} WHERE id = 5": (0, 1, 0),
    "INSERT INTO {t} SELECT * FROM {t} WHERE id = 5": (0, 1, 0),
    "UPDATE {t} SET name = name || ' ' WHERE id = 9": (0, 0, 1),
    "MERGE INTO {t} USING (SELECT 8 AS id) s ON {t}.id = s.id"
    " WHEN MATCHED THEN UPDATE SET price = price + 0.01": (0, 0, 1),
}


def test_a_wrong_step_of_our_own_is_found(proven: Stack) -> None:
    for planted, counts in PLANTED.items():
        with posing_as_ours(proven) as name:
            proven.spark.sql(planted.format(t=name))
        found = changed(proven, repair=True)
        assert (found.missing, found.extra, found.different) == counts, planted
        assert found.status == "repaired"
    # Without a repair, a difference is no ground to go on from.
    with posing_as_ours(proven) as name:
        proven.spark.sql(f"DELETE FROM {name} WHERE id = 12")
    assert [changed(proven).missing for _ in range(2)] == [1, 1]


def test_changes_that_never_reached_the_log_are_found(proven: Stack) -> None:
    publication = f"ALTER PUBLICATION {proven.pipeline.publication_name}"
    proven.db.sql(f"{publication} SET (publish = 'insert')")
    proven.db.sql("UPDATE goods SET name = 'silent' WHERE id = 30")
    found = changed(proven, repair=True)
    assert (found.status, found.different) == ("repaired", 1)
    # As many rows on both sides, and none of them was written since: only keys tell.
    proven.db.sql("DELETE FROM goods WHERE id = 22")
    with posing_as_ours(proven) as name:
        proven.spark.sql(f"DELETE FROM {name} WHERE id = 21")
    found = changed(proven)
    assert (found.source_rows, found.lake_rows) == (ROWS - 1, ROWS - 1)
    assert (found.status, found.missing, found.extra) == ("different", 1, 1)


def test_another_shape_of_the_table_is_looked_at_in_full(
    proven: Stack, surveyed: list[str | None]
) -> None:
    for statement in ("VACUUM FULL goods", "ALTER TABLE goods ALTER COLUMN name TYPE varchar"):
        with proven.db.connect() as connection:
            connection.execute(statement)
        assert changed(proven).status == "equal"
        assert None in surveyed
        surveyed.clear()


def test_types_that_print_what_others_are_called_are_looked_at_in_full(
    source_db: Any, stack: Callable[..., Stack], surveyed: list[str | None]
) -> None:
    source_db.sql(
        "CREATE TABLE first_name (id int)",
        "CREATE TABLE goods (id int PRIMARY KEY, about regclass)",
        "INSERT INTO goods VALUES (1, 'first_name'), (2, 'goods')",
    )
    made = stack(TABLE)
    made.swept()
    assert whole(made).status == "equal"
    source_db.sql("ALTER TABLE first_name RENAME TO second_name")
    found = changed(made)
    assert (found.status, found.different) == ("different", 1)
