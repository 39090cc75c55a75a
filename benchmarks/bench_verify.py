"""A verification of an equal table against ``count(*)`` of the same table at the source, and of
one in which a difference of every kind was planted."""

from __future__ import annotations

import sys

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from benchmarks import report, workload
from benchmarks.stage import Stage, median, stage, timed
from tidegate.config.verify import CHANGED, extent
from tidegate.jobs.sweep import run_sweep
from tidegate.jobs.verify import run_verify
from tidegate.spark.publish import spark_name
from tidegate.spark.session import spark_session

ROUNDS = 3
CHANGES = 10_000
SAMPLE = "5%"
WIDE = "1234567890123456789012345678901234567{}"
"""38 digits, the last of which is planted."""


def plant(spark: SparkSession, name: str, rows: int) -> None:
    """A row too few, one too many, one column, the last of 38 digits, a trailing space."""
    spark.sql(f"DELETE FROM {name} WHERE id = {rows // 7}")
    copied = f"SELECT * FROM {name} WHERE id = {rows // 5}"
    spark.sql(copied).withColumn("id", F.lit(10 * rows).cast("bigint")).writeTo(name).append()
    changes = (
        ("status = 'lost'", rows // 4),
        (f"wide = {WIDE.format(9)}", rows // 3),
        ("note = concat(note, ' ')", rows // 2),
    )
    for change, key in changes:
        spark.sql(f"UPDATE {name} SET {change} WHERE id = {key}")


def _changed(at: Stage, spark: SparkSession, table: str) -> float:
    """Seconds a comparison of what changed takes after some rows all over the table did."""
    workload.change(at.connection, table, CHANGES, scattered=True)
    result = run_verify(spark, at.pipeline, at.platform, extent=extent(CHANGED)).tables[0]
    assert result.status == "equal", result
    assert "changed since" in (result.reason or ""), result
    return result.seconds


def main(rows: int, table: str = "bench") -> None:
    with stage(table) as at:
        spark = spark_session(at.platform, at.pipeline, app_name="bench verify")
        wide = f"numeric(38) NOT NULL DEFAULT {WIDE.format(8)}"
        at.connection.execute(f"ALTER TABLE {table} ADD COLUMN wide {wide}")
        workload.fill(at.connection, table, 1, rows)
        at.connection.execute(f"VACUUM ANALYZE {table}")
        swept = run_sweep(spark, at.pipeline, at.platform, run="first")
        assert not swept.failed, swept
        # Of the table itself: an index-only scan would count keys.
        at.connection.execute("SET enable_indexonlyscan = off")
        counts: list[float] = []
        seconds: dict[str, list[float]] = {"100%": [], SAMPLE: [], CHANGED: []}
        for number in range(ROUNDS + 1):
            counted, _ = timed(lambda: at.connection.execute(f"SELECT count(*) FROM {table}"))
            counts += [counted] if number else []
            for sample, own in seconds.items():
                took, result = timed(
                    lambda sample=sample: run_verify(
                        spark, at.pipeline, at.platform, extent=extent(sample)
                    )
                )
                assert result.tables[0].status == "equal", result
                own += [result.tables[0].seconds] if number else []  # the first round warms up
                print(f"count {counted:.2f} s, verify {sample} {took:.1f} s", flush=True)
        mixed = _changed(at, spark, table)
        plant(spark, spark_name(at.pipeline.targets[0]), rows)
        found = run_verify(spark, at.pipeline, at.platform, repair=True).tables[0]
        kinds = (found.status, found.missing, found.extra, found.different)
        assert kinds == ("repaired", 1, 1, 3), found
        columns = sorted(column for one in found.first for column in one.columns)
        assert columns == ["note", "status", "wide"], found
        assert run_verify(spark, at.pipeline, at.platform).tables[0].status == "equal"
        spark.stop()
    count = median(counts)
    whole, part, none = (median(own) for own in seconds.values())
    measures = [
        {"name": "count(*) at the source", "value": count, "unit": "s"},
        {
            "name": "comparison of an equal table",
            "value": whole,
            "unit": "s",
            "note": f"{rows:,} rows, median of {ROUNDS}; cut, capture and apply not counted",
        },
        {"name": "comparison ÷ count(*)", "value": whole / count, "note": "no proof before it"},
        {"name": "comparison of 5 % of the keys", "value": part, "unit": "s"},
        {"name": "comparison of 5 % ÷ count(*)", "value": part / count},
        {"name": "comparison of what changed: nothing did", "value": none, "unit": "s"},
        {
            "name": "comparison of what changed ÷ count(*), nothing did",
            "value": none / count,
            "target": "≤ 3",
            "note": "all rows are proven by it",
        },
        {
            "name": f"comparison of what changed ÷ count(*), {CHANGES:,} changes",
            "value": mixed / count,
            "note": "60/30/10 %, all rows are proven by it",
        },
        {
            "name": "finding a difference of each kind, and mending them",
            "value": found.seconds,
            "unit": "s",
        },
    ]
    title = "verify" if table == "bench" else f"verify-{table}"
    report.save(title, f"python -m benchmarks.bench_verify {rows} {table}", measures)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 5_000_000, *sys.argv[2:3])
