"""What an apply costs as its table grows, and what reading costs with and without upkeep."""

from __future__ import annotations

import sys
from typing import Any

from benchmarks import report, workload
from benchmarks.stage import Stage, median, stage, timed
from tidegate.jobs.apply import run_apply
from tidegate.jobs.capture import run_capture
from tidegate.jobs.maintain import run_maintain
from tidegate.jobs.sweep import run_sweep
from tidegate.spark.session import spark_session

ROUNDS = 3
CHANGES = 10_000
APPLIES = 20


def main(small: int, large: int) -> None:
    with stage("small", "large", rows=1_000) as at:
        for table, rows in (("small", small), ("large", large)):
            workload.fill(at.connection, table, 1_001, rows)
            at.connection.execute(f"VACUUM ANALYZE {table}")
        spark = spark_session(at.platform, at.pipeline, app_name="bench growth")
        run_sweep(spark, at.pipeline, at.platform, run="first")
        recent = {table: applies(at, spark, table, False) for table in ("small", "large")}
        scattered = {table: applies(at, spark, table, True) for table in ("small", "large")}
        before, after, fresh = scans(at, spark)
        spark.stop()
    note = f"{CHANGES:,} changes, {large:,} rows ÷ {small:,} rows, median of {ROUNDS}"
    report.save(
        "growth",
        f"python -m benchmarks.bench_growth {small} {large}",
        [
            {
                "name": "apply to recent keys, large ÷ small table",
                "value": recent["large"] / recent["small"],
                "target": "≤ 1.5",
                "note": note,
            },
            {
                "name": "apply to scattered keys, large ÷ small table",
                "value": scattered["large"] / scattered["small"],
                "note": note,
            },
            {
                "name": f"scan after {APPLIES} applies ÷ after maintenance",
                "value": before / after,
            },
            {
                "name": "scan after maintenance ÷ freshly written table",
                "value": after / fresh,
                "target": "≤ 1.2",
            },
        ],
    )


def applies(at: Stage, spark: Any, table: str, scattered: bool) -> float:
    seconds = []
    for number in range(ROUNDS + 1):
        workload.change(at.connection, table, CHANGES, scattered=scattered)
        run_capture(at.pipeline, at.platform)
        run = f"{table}_{scattered}_{number}"
        took, result = timed(
            lambda run=run: run_apply(
                spark, at.pipeline, at.platform, run=run, tables=[f"public.{table}"]
            )
        )
        assert not result.failed, result
        print(f"{table}, {'scattered' if scattered else 'recent'}: {took:.2f} s", flush=True)
        if number:
            seconds.append(took)
    return median(seconds)


def scans(at: Stage, spark: Any) -> tuple[float, float, float]:
    """The small table after many applies, after upkeep, and written anew."""
    for number in range(APPLIES):
        workload.change(at.connection, "small", CHANGES, scattered=True)
        run_capture(at.pipeline, at.platform)
        tables = ["public.small"]
        run_apply(spark, at.pipeline, at.platform, run=f"scan_{number}", tables=tables)
    before = scan(spark, "lake.bench.small")
    kept = run_maintain(spark, at.pipeline, at.platform, tables=["public.small"], force=True)
    assert not kept.failed, kept
    after = scan(spark, "lake.bench.small")
    spark.sql(
        "CREATE TABLE lake.bench.fresh USING iceberg AS SELECT * FROM lake.bench.small ORDER BY id"
    )
    return before, after, scan(spark, "lake.bench.fresh")


def scan(spark: Any, table: str) -> float:
    """Median seconds of a query that reads every column's bytes."""
    query = f"SELECT count(*), sum(id), sum(amount), max(note), max(updated_at) FROM {table}"
    times = [timed(lambda: spark.sql(query).collect())[0] for _ in range(2 * ROUNDS + 1)]
    return median(times[1:])


if __name__ == "__main__":
    sizes = [int(text) for text in sys.argv[1:3]] or [1_000_000, 10_000_000]
    main(sizes[0], sizes[1])
