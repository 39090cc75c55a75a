"""Capture, and capture + apply, against ``pg_recvlogical`` on the same range of the log."""

from __future__ import annotations

import sys

from benchmarks import report, workload
from benchmarks.stage import median, stage, timed
from tidegate.jobs.apply import run_apply
from tidegate.jobs.capture import run_capture
from tidegate.jobs.sweep import run_sweep
from tidegate.spark.session import spark_session

ROUNDS = 3


def main(changes: int, table: str = "bench") -> None:
    captures, wholes, limits = [], [], []
    with stage(table, rows=100_000, peer=True) as at:
        spark = spark_session(at.platform, at.pipeline, app_name="bench capture")
        run_sweep(spark, at.pipeline, at.platform, run="first")
        for number in range(ROUNDS + 1):
            workload.change(at.connection, table, changes)
            limit = at.receive_with_peer()
            capture, result = timed(lambda: run_capture(at.pipeline, at.platform))
            run = f"round_{number}"
            apply, _ = timed(lambda run=run: run_apply(spark, at.pipeline, at.platform, run=run))
            print(
                f"{result.rows:,} changes: limit {limit:.2f} s, capture {capture:.2f} s,", end=" "
            )
            print(f"apply {apply:.2f} s; ratio {limit / capture:.2f}", flush=True)
            if number:  # the first round only warms up: the JVM compiles
                limits.append(changes / limit)
                captures.append(limit / capture)
                wholes.append(limit / (capture + apply))
        spark.stop()
    note = f"median of {ROUNDS} rounds of {changes:,} changes, {workload.INSERTS // 10}/"
    note += f"{workload.UPDATES // 10}/{workload.DELETES // 10} %, 1,000 a transaction"
    report.save(
        "capture" if table == "bench" else f"capture-{table}",
        f"python -m benchmarks.bench_capture {changes} {table}",
        [
            {"name": "pg_recvlogical", "value": median(limits), "unit": "changes/s", "note": note},
            {"name": "capture ÷ pg_recvlogical", "value": median(captures), "target": "≥ 0.85"},
            {
                "name": "capture + apply ÷ pg_recvlogical",
                "value": median(wholes),
                "target": "≥ 0.4",
                "note": "from WAL to the merged table, JVM start excluded",
            },
        ],
    )


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000, *sys.argv[2:3])
