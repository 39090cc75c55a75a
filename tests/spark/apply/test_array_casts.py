"""Arrays as a real PostgreSQL prints them come out as psycopg reads them; all others fail."""

from __future__ import annotations

import random
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from tests.spark.apply.cast_oracle import column
from tests.support.postgres import SourceDatabase
from tidegate.schema.types import STRING, Kind, LogicalType, Policy
from tidegate.spark.casts import cast

pytestmark = [pytest.mark.spark, pytest.mark.postgres]

TEXTS = LogicalType(Kind.LIST, element=STRING)
NUMBERS = LogicalType(Kind.LIST, element=LogicalType(Kind.LONG))
MONEYS = LogicalType(Kind.LIST, element=LogicalType(Kind.DECIMAL, 12, 2))
FLAGS = LogicalType(Kind.LIST, element=LogicalType(Kind.BOOLEAN))
BLOBS = LogicalType(Kind.LIST, element=LogicalType(Kind.BINARY))
DAYS = LogicalType(Kind.LIST, element=LogicalType(Kind.DATE))

TRICKY = [
    "", " ", "NULL", "null", "a", "a b", "a,b", "{", "}", "{}", '"', '""', "\\", '\\"', "\n", "\t",
    "é", "💧", "'", "$1", "\\1", "[1:2]={3}", "\v", "\u00a0", "\u2003", ",", ",,", "x" * 5000,
    '{"json": ["a", 1]}', '\\"' * 3000,
]  # fmt: skip


def evaluate(
    spark: SparkSession, type_: LogicalType, texts: list[str | None], policy: Policy = Policy.CLAMP
) -> list[tuple[Any, bool, bool]]:
    frame = spark.createDataFrame(list(enumerate(texts)), "n int, t string")
    result = cast(column(type_, policy), F.col("t"))
    rows = frame.select("n", result.value.alias("v"), result.failed, result.adjusted)
    return [(row.v, row[2], row[3]) for row in rows.orderBy("n").collect()]


def test_text_arrays_of_a_real_server(spark: SparkSession, source_db: SourceDatabase) -> None:
    rng = random.Random(5)
    arrays: list[list[str | None]] = [[], [None], [""], *([text] for text in TRICKY)]
    arrays += [rng.choices([None, *TRICKY], k=rng.randint(2, 6)) for _ in range(150)]
    with source_db.connect() as connection:
        printed = [
            connection.execute("SELECT %s::text[]::text", (array,)).fetchone()[0]
            for array in arrays
        ]
    found = evaluate(spark, TEXTS, [*printed, None])
    assert [value for value, *_ in found] == [*arrays, None]
    assert not any(failed or adjusted for _, failed, adjusted in found)


def test_typed_arrays_of_a_real_server(spark: SparkSession, source_db: SourceDatabase) -> None:
    with source_db.connect() as connection:
        numbers, moneys, flags, blobs = connection.execute(
            "SELECT '{1,NULL,-9223372036854775808}'::int8[]::text,"
            " '{1.50,NULL}'::numeric(12,2)[]::text,"
            r" '{t,f,NULL}'::bool[]::text, array['\x00ff'::bytea, NULL, '\x']::text"
        ).fetchone()
    (found,) = evaluate(spark, NUMBERS, [numbers])
    assert found == ([1, None, -(2**63)], False, False)
    (found,) = evaluate(spark, MONEYS, [moneys])
    assert [str(one) for one in found[0]] == ["1.50", "None"]
    (found,) = evaluate(spark, FLAGS, [flags])
    assert found[0] == [True, False, None]
    (found,) = evaluate(spark, BLOBS, [blobs])
    assert [one if one is None else bytes(one) for one in found[0]] == [b"\x00\xff", None, b""]


def test_what_is_no_plain_array_fails(spark: SparkSession) -> None:
    wrong = [
        "", "{", "}", "1,2", "{{1},{2}}", "{{1,2},{3,4}}", "[2:3]={1,2}", "{1,}", "{,1}", "{1 2}",
        '{"a}', '{"a"b}', "{1}{2}", "{1}x", " {1}", "{1} ", '{"a\\"}', "{ 1}",
    ]  # fmt: skip
    for type_ in (TEXTS, NUMBERS):
        assert [(v, f) for v, f, _ in evaluate(spark, type_, wrong)] == [(None, True)] * len(wrong)


def test_elements_fail_and_adjust_like_columns(spark: SparkSession) -> None:
    found = evaluate(spark, NUMBERS, ["{1,x}", "{1,1.5}", "{9223372036854775808}", "{}", "{NULL}"])
    assert [failed for _, failed, _ in found] == [True, True, True, False, False]
    found = evaluate(spark, MONEYS, ["{1.239}", "{NaN}", "{1.20}"], Policy.NULL)
    assert [(failed, adjusted) for _, failed, adjusted in found] == [
        (True, False),
        (False, True),
        (False, False),
    ]
    found = evaluate(spark, DAYS, ["{infinity,2024-02-30}", "{infinity}"])
    assert [(failed, adjusted) for _, failed, adjusted in found] == [(True, True), (False, True)]
