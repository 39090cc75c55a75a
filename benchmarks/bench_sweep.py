"""A warm sweep against ``psql COPY`` and against dlt's full load of the same table."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from benchmarks import report, workload
from benchmarks.stage import DATABASE, Stage, median, stage, timed
from tidegate.jobs.sweep import run_sweep
from tidegate.spark.session import spark_session

ROUNDS = 3
DLT_PYTHON = os.environ.get("TIDEGATE_DLT_PYTHON")
"""A Python with dlt in it (its dependencies clash with Airflow's): ``make bench`` makes one."""


def main(rows: int, table: str = "bench") -> None:
    with stage("warm", table, rows=50_000) as at:
        spark = spark_session(at.platform, at.pipeline, app_name="bench sweep")
        run_sweep(spark, at.pipeline, at.platform, run="warm", tables=["public.warm"])
        workload.fill(at.connection, table, 50_001, rows)
        at.connection.execute(f"VACUUM ANALYZE {table}")
        copies, sweeps = [], []
        for number in range(ROUNDS + 1):
            copy = at.copy_out(table)
            run = f"round_{number}"
            seconds, result = timed(
                lambda run=run: run_sweep(
                    spark, at.pipeline, at.platform, run=run, tables=[f"public.{table}"]
                )
            )
            assert not result.failed, result
            print(f"COPY {copy:.1f} s, sweep {seconds:.1f} s", flush=True)
            if number:  # the first round only warms up: the JVM compiles
                copies.append(copy)
                sweeps.append(seconds)
        spark.stop()
        measures = [
            {"name": "psql COPY TO STDOUT", "value": rows / median(copies), "unit": "rows/s"},
            {
                "name": "sweep, audited and published",
                "value": rows / median(sweeps),
                "unit": "rows/s",
                "note": f"{rows:,} rows, median of {ROUNDS}",
            },
            {
                "name": "sweep ÷ COPY",
                "value": median(copies) / median(sweeps),
                "target": "≥ 0.4",
            },
        ]
        peer = load_with_dlt(at, table) if DLT_PYTHON else None
        if peer is not None:
            measures += [
                {"name": "dlt full load to Iceberg", "value": rows / peer, "unit": "rows/s"},
                {
                    "name": "sweep ÷ dlt",
                    "value": peer / median(sweeps),
                    "target": "≥ 1.5",
                    "note": "one dlt load, pyarrow backend",
                },
            ]
    name = "sweep" if table == "bench" else f"sweep-{table}"
    report.save(name, f"python -m benchmarks.bench_sweep {rows} {table}", measures)


def load_with_dlt(at: Stage, table: str) -> float | None:
    """Seconds of dlt's own run, as it reports them (its start-up is not counted); None where it
    cannot take the table, which says nothing about ours."""
    script = Path(__file__).with_name("peer_dlt.py")
    port = str(at.server.port)
    done = subprocess.run(
        [str(DLT_PYTHON), str(script), port, DATABASE, table, str(at.folder / "dlt")],
        check=False,
        capture_output=True,
        text=True,
    )
    if done.returncode:
        print(f"dlt could not load {table}: {(done.stderr.strip().splitlines() or ['?'])[-1]}")
        return None
    return float(done.stdout.strip().splitlines()[-1])


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 5_000_000, *sys.argv[2:3])
