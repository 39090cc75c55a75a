"""A verification of an equal table against ``count(*)`` of the same table at the source."""

from __future__ import annotations

import sys

from benchmarks import report, workload
from benchmarks.stage import median, stage, timed
from tidegate.jobs.sweep import run_sweep
from tidegate.jobs.verify import run_verify
from tidegate.spark.publish import spark_name
from tidegate.spark.session import spark_session

ROUNDS = 3
SAMPLE = 0.05


def main(rows: int, table: str = "bench") -> None:
    with stage(table) as at:
        spark = spark_session(at.platform, at.pipeline, app_name="bench verify")
        workload.fill(at.connection, table, 1, rows)
        at.connection.execute(f"VACUUM ANALYZE {table}")
        swept = run_sweep(spark, at.pipeline, at.platform, run="first")
        assert not swept.failed, swept
        # Of the table itself: an index-only scan would count keys.
        at.connection.execute("SET enable_indexonlyscan = off")
        counts: list[float] = []
        seconds: dict[float, list[float]] = {1.0: [], SAMPLE: []}
        for number in range(ROUNDS + 1):
            counted, _ = timed(lambda: at.connection.execute(f"SELECT count(*) FROM {table}"))
            counts += [counted] if number else []
            for sample, own in seconds.items():
                took, result = timed(
                    lambda sample=sample: run_verify(spark, at.pipeline, at.platform, sample=sample)
                )
                assert result.tables[0].status == "equal", result
                own += [result.tables[0].seconds] if number else []  # the first round warms up
                print(f"count {counted:.2f} s, verify {sample:.0%} {took:.1f} s", flush=True)
        name = spark_name(at.pipeline.targets[0])
        spark.sql(f"UPDATE {name} SET note = concat(note, ' ') WHERE id = {rows // 2}")
        found = run_verify(spark, at.pipeline, at.platform, repair=True).tables[0]
        assert (found.status, found.different) == ("repaired", 1), found
        spark.stop()
    count, whole, part = (median(own) for own in (counts, seconds[1.0], seconds[SAMPLE]))
    measures = [
        {"name": "count(*) at the source", "value": count, "unit": "s"},
        {
            "name": "comparison of an equal table",
            "value": whole,
            "unit": "s",
            "note": f"{rows:,} rows, median of {ROUNDS}; cut, capture and apply not counted",
        },
        {"name": "comparison ÷ count(*)", "value": whole / count, "target": "≤ 3"},
        {"name": "comparison of 5 % of the keys", "value": part, "unit": "s"},
        {
            "name": "finding one trailing space, and mending it",
            "value": found.seconds,
            "unit": "s",
        },
    ]
    title = "verify" if table == "bench" else f"verify-{table}"
    report.save(title, f"python -m benchmarks.bench_verify {rows} {table}", measures)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 5_000_000, *sys.argv[2:3])
