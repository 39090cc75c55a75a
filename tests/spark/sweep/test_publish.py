"""Branches: stamped commits, the fence of fast-forward, the audit of a branch."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from pyspark.sql import SparkSession

from tidegate.config.platform import PlatformConfig
from tidegate.connectors.cut import KeyFacts
from tidegate.errors import HeldError
from tidegate.lake.catalog import ensure_namespace, open_catalog
from tidegate.spark import publish
from tidegate.spark.audit import Wanted, audit

pytestmark = pytest.mark.spark


@pytest.fixture
def table(
    spark: SparkSession, spark_platform: PlatformConfig, unique_pipeline_id: Callable[[], str]
) -> tuple[str, str]:
    identifier = (unique_pipeline_id(), "t")
    ensure_namespace(open_catalog(spark_platform), identifier[0])
    spark.sql(
        f"CREATE TABLE {publish.spark_name(identifier)} (id bigint, v string) USING iceberg"
        " TBLPROPERTIES ('format-version' = '3')"
    )
    return identifier


def rows(spark: SparkSession, table: tuple[str, str], branch: str | None = None) -> list[int]:
    found = spark.table(publish.spark_name(table, branch)).collect()
    return sorted(row.id for row in found)


def test_a_branch_is_unseen_until_it_is_published(
    spark: SparkSession, table: tuple[str, str]
) -> None:
    frame = spark.range(3).selectExpr("id", "'a' AS v")
    publish.create_branch(spark, table, "b", retain_seconds=3600)
    first = publish.append(frame, table, branch="b", properties={"tidegate.step": "one"})
    assert first.rows == 3
    assert publish.summary(spark, table, first.snapshot_id)["tidegate.step"] == "one"
    replaced = publish.replace(
        frame.where("id = 1"), table, branch="b", properties={"tidegate.step": "two"}
    )
    assert replaced.rows == 1
    assert rows(spark, table) == []
    stamped = publish.stamp(spark, table, branch="b", properties={"tidegate.position": "e/1"})
    assert publish.fast_forward(spark, table, "b") == stamped
    assert rows(spark, table) == [1]
    publish.drop_branch(spark, table, "b")
    assert publish.refs(spark, table) == {"main": stamped}


def test_a_stale_branch_cannot_be_published(spark: SparkSession, table: tuple[str, str]) -> None:
    publish.stamp(spark, table, branch=None, properties={"tidegate.position": "e/1"})
    publish.create_branch(spark, table, "stale", retain_seconds=3600)
    publish.stamp(spark, table, branch="stale", properties={"tidegate.position": "e/3"})
    now = publish.stamp(spark, table, branch=None, properties={"tidegate.position": "e/2"})
    with pytest.raises(HeldError, match="nothing was published"):
        publish.fast_forward(spark, table, "stale")
    with pytest.raises(HeldError, match="the branch is gone"):
        publish.fast_forward(spark, table, "never")
    assert publish.refs(spark, table)["main"] == now


@pytest.mark.parametrize(
    ("query", "failing"),
    [
        ("SELECT id FROM range(1, 6)", set()),
        ("SELECT id * 1000000 AS id FROM range(1, 6)", {"key_sum(id)"}),
        ("SELECT id FROM range(1, 5)", {"row_count", "key_sum(id)"}),
        ("SELECT id % 4 + 2 AS id FROM range(1, 6)", {"keys_unique", "key_sum(id)"}),
        (
            "SELECT (id % 4 + 2) * 1000000 AS id FROM range(1, 6)",
            {"keys_unique", "key_sum(id)"},
        ),
        ("SELECT nullif(id, 2) AS id FROM range(1, 6)", {"keys_not_null", "key_sum(id)"}),
    ],
)
@pytest.mark.parametrize("span", [(1, 5), (1, 10**12)])  # counted in bitmaps, or by a shuffle
def test_the_audit_sees_what_is_wrong_with_keys(
    spark: SparkSession, query: str, failing: set[str], span: tuple[int, int]
) -> None:
    outcome = audit(spark.sql(query), Wanted(5, ("id",), {"id": KeyFacts(15, *span)}), ())
    assert {v.name for v in outcome.verdicts if not v.passed} == failing
    assert outcome.passed is (not failing)


def test_the_audit_of_compound_keys_and_of_no_rows(spark: SparkSession) -> None:
    pairs = spark.sql("SELECT id % 2 AS a, id AS `b.c` FROM range(10)")
    keys = {"a": KeyFacts(5), "b.c": KeyFacts(45)}
    assert audit(pairs, Wanted(10, ("a", "b.c"), keys), ()).passed
    assert not audit(pairs.unionAll(pairs), Wanted(20, ("a", "b.c")), ()).passed
    assert audit(pairs.where("false"), Wanted(0, ("a", "b.c"), {"a": KeyFacts(0)}), ()).passed
    assert audit(pairs.where("false"), Wanted(0, ()), ()).passed
