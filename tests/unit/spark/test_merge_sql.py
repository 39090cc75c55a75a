"""The text of a merge: names are quoted, values are parameters."""

from __future__ import annotations

from pyspark.sql.types import LongType, StringType, TimestampType

from tidegate.spark.bounds import Bound
from tidegate.spark.merge import history_sql, parameters, soft_delete_sql, upsert_sql
from tidegate.spark.typed import BITS, LakeShape

SHAPE = LakeShape(("id", "odd `name`", "at"), (LongType(), StringType(), TimestampType()), (0, 2))
BOUNDS = (Bound(0, ((17, 18), (4242, 4243))), Bound(1, ((5, 6),), mark="timestamp_micros({})"))


def test_bounds_are_parameters_and_never_in_the_text() -> None:
    for make in (upsert_sql, soft_delete_sql, history_sql):
        sql = make("`lake`.`n`.`t`.`branch_b`", SHAPE, BOUNDS)
        assert "4242" not in sql and "17" not in sql
        first = "(t.`id` >= :low0_0 AND t.`id` <= :high0_0)"
        assert f"({first} OR (t.`id` >= :low0_1 AND t.`id` <= :high0_1))" in sql
        assert "t.`at` >= timestamp_micros(:low1_0)" in sql
    assert parameters(BOUNDS) == {
        "low0_0": 17, "high0_0": 18, "low0_1": 4242, "high0_1": 4243, "low1_0": 5, "high1_0": 6,
    }  # fmt: skip


def test_odd_names_are_quoted() -> None:
    assert "t.`odd ``name``` = s.v1" in upsert_sql("t", SHAPE, ())


def test_every_key_column_joins() -> None:
    assert "ON t.`id` = s.k0 AND t.`at` = s.k1" in upsert_sql("t", SHAPE, ())


def test_wide_tables_have_more_than_one_bit_set() -> None:
    wide = LakeShape(("c",) * (BITS + 1), (LongType(),) * (BITS + 1), (0,))
    assert list(wide.words) == [0, 1]
