"""Verify: equal tables are equal, and what differs is named by key and column."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.support.stack import Stack
from tidegate.config.verify import Extent
from tidegate.control import dead_letters
from tidegate.jobs import comparing
from tidegate.jobs.verdict import TableVerdict
from tidegate.jobs.verify import run_verify
from tidegate.lake.dead_letter_choice import Choice
from tidegate.spark.publish import spark_name

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
    assert result.tables[0].source_rows is None  # nothing was counted
    assert "under repair" in (result.tables[0].reason or "")
    assert "never swept" in (result.tables[1].reason or "")


def test_a_table_of_many_columns_and_those_after_it_are_compared(
    source_db: Any, stack: Callable[..., Stack], monkeypatch: pytest.MonkeyPatch
) -> None:
    """PostgreSQL passes at most 100 arguments to a function."""
    columns = [f"c{n} {('text', 'int', 'numeric(9,2)')[n % 3]}" for n in range(220)]
    source_db.sql(
        f"CREATE TABLE broad (id int PRIMARY KEY, {', '.join(columns)})",
        "INSERT INTO broad (id, c0, c219, c100) VALUES (1, 'a', 'b', 5), (2, '', NULL, -1)",
        "CREATE TABLE goods (id int PRIMARY KEY, price int,"
        " total int GENERATED ALWAYS AS (price * 2) STORED)",
        "INSERT INTO goods VALUES (1, 10)",
    )
    made = stack("public.broad", "public.goods")
    assert [table.error for table in made.sweep().tables] == [None, None]
    monkeypatch.setattr(comparing, "compare", None)  # sums suffice
    broad, goods = run_verify(made.spark, made.pipeline, made.platform).tables
    assert (broad.status, broad.source_rows, broad.not_compared) == ("equal", 2, {})
    assert (goods.status, goods.source_rows) == ("equal", 1)
    assert goods.not_compared == {"total": "generated at the source, which does not send it"}


def test_rows_whose_key_waits_as_a_letter_do_not_differ(
    source_db: Any, stack: Callable[..., Stack]
) -> None:
    """The lake cannot hold the key itself; a row without a letter is missing all the same."""
    source_db.sql(
        "CREATE TABLE things (id numeric(6,2), part text, note text, PRIMARY KEY (id, part))",
        "INSERT INTO things VALUES (1, 'a', 'x'), ('NaN', 'a', 'y'), ('NaN', 'b', 'z')",
    )
    made = stack(TABLE)
    assert made.swept().parked == 2
    found = verdict(made)
    assert (found.status, found.first, found.waiting) == ("equal", (), 2)
    letters = dead_letters.find(made.pipeline, made.platform, None, Choice()).letters
    one = next(letter.event_id for letter in letters if "b" in letter.key)
    chosen = Choice(event_ids=frozenset({one}))
    dead_letters.discard(made.pipeline, made.platform, None, chosen, actor="test")
    found = verdict(made)
    assert (found.status, found.missing, found.waiting) == ("different", 1, 1)
    assert str(found.first[0]).startswith(
        "missing in the lake: id = (a value the lake cannot hold)"
    )


PLAIN = """
CREATE TABLE things (
  id uuid PRIMARY KEY, small smallint, n int, big bigint, amount numeric(38,10), whole numeric(38),
  day date, at timestamp, instant timestamptz, ok boolean, note text, code char(5), doc jsonb,
  raw bytea, addr inet, free numeric, long varchar(80), span interval,
  ratio double precision, near real)
"""
PLAIN_ROWS = r"""
INSERT INTO things VALUES
  ('00000000-0000-0000-0000-000000000001', -1, 0, 9223372036854775807, 0, -1, '0001-01-01',
   '1900-01-01', '9999-12-31 23:59:59.999999Z', true, '', 'ab', '{"a": [1, null]}', '', '10.0.0.1',
   'NaN', E'tab\t and \\ and ''', '1 day 02:03:04.5',
   0.1, -1.5),
  ('00000000-0000-0000-0000-000000000002', 1, -5, -9223372036854775808, -0.0000000001,
   99999999999999999999999999999999999999, '9999-12-31', '2024-02-29 23:59:59.999999',
   '2024-03-31 02:30:00.5+01', false, E'é😀\u001f~', 'é', '"x"', '\x00ff', '::1/64', 1.10, '~',
   NULL, 'NaN', '-Infinity')
"""
EMPTY_ROW = "INSERT INTO things (id) VALUES ('00000000-0000-0000-0000-000000000003')"


def test_sums_alone_settle_an_equal_table_of_plain_types(
    source_db: Any, stack: Callable[..., Stack], monkeypatch: pytest.MonkeyPatch
) -> None:
    source_db.sql(PLAIN, PLAIN_ROWS, EMPTY_ROW)
    made = stack(TABLE)
    made.swept()
    monkeypatch.setattr(comparing, "compare", None)  # nothing is read row by row
    found = verdict(made)
    assert (found.status, found.source_rows, found.lake_rows) == ("equal", 3, 3)
    made.db.sql("UPDATE things SET note = note || '.', raw = NULL WHERE n = 0")
    assert verdict(made).status == "equal"
    monkeypatch.undo()
    name = spark_name(made.pipeline.targets[0])
    made.spark.sql(f"UPDATE {name} SET code = rtrim(code) WHERE n = 0")
    assert verdict(made).different == 1


PLANTED = {
    "-900": ("missing", ()),
    "17": ("different", ("note",)),
    "2500": ("different", ("wide",)),
    "4000": ("extra", ()),
    "4999": ("different", ("code",)),
    "5000000": ("extra", ()),
}


def test_a_planted_difference_of_every_kind_is_found_whole_and_by_samples(
    source_db: Any, stack: Callable[..., Stack]
) -> None:
    digits = "1234567890123456789012345678901234567"
    made_up = 4000  # within a stripe of the source's numbers, but no row
    source_db.sql(
        "CREATE TABLE things (id int PRIMARY KEY, wide numeric(38), code text, note text)",
        f"INSERT INTO things SELECT g, {digits}8, 'code ' || g, 'note' FROM"
        f" generate_series(-1000, 5000) g WHERE g <> {made_up}",
    )
    made = stack(TABLE)
    made.swept()
    name = spark_name(made.pipeline.targets[0])
    for statement in (
        f"DELETE FROM {name} WHERE id = -900",
        f"INSERT INTO {name} SELECT {made_up}, wide, code, note FROM {name} WHERE id = 1",
        f"INSERT INTO {name} SELECT 5000000, wide, code, note FROM {name} WHERE id = 1",
        f"UPDATE {name} SET note = 'other' WHERE id = 17",
        f"UPDATE {name} SET wide = {digits}9 WHERE id = 2500",
        f"UPDATE {name} SET code = concat(code, ' ') WHERE id = 4999",
    ):
        made.spark.sql(statement)
    # By samples: each finds what lies in its part of the keys; parts that differ come again.
    keys: set[str] = set()
    for covered in (50, 100):
        (part,) = run_verify(made.spark, made.pipeline, made.platform, extent=Extent(0.5)).tables
        assert (part.status, part.error) == ("different", None)
        assert 2800 < part.source_rows < 3200
        keys |= {one.key["id"] for one in part.first}
        assert keys <= set(PLANTED) and part.coverage == pytest.approx(covered, abs=2)
    found = verdict(made)
    assert (found.missing, found.extra, found.different) == (1, 2, 3)
    assert {one.key["id"]: (one.kind, one.columns) for one in found.first} == PLANTED
    assert {str(one) for one in found.first} >= {
        "missing in the lake: id = -900",
        "different in note: id = 17",
        "in the lake only: id = 4000",
    }
    (mended,) = run_verify(
        made.spark, made.pipeline, made.platform, extent=Extent(0.01), repair=True
    ).tables
    assert (mended.status, mended.repaired, mended.coverage) == ("repaired", 6, 100.0)
