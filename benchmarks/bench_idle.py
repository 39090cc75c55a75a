"""What nothing costs, and whether a backlog costs memory."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import yaml

from benchmarks import report, workload
from benchmarks.stage import Stage, stage
from tidegate.jobs.apply import run_apply
from tidegate.jobs.capture import run_capture
from tidegate.jobs.sweep import run_sweep
from tidegate.lake.catalog import open_catalog
from tidegate.spark.session import spark_session

IDLE_RUNS = 5


def main(small: int, large: int) -> None:
    with stage("bench", rows=1_000) as at:
        lake, log = idle_commits(at)
        peaks = []
        for changes in (small, large):
            workload.change(at.connection, "bench", changes)
            peaks.append(peak_memory(at))
            print(f"{changes:,} changes: peak {peaks[-1]:.0f} MiB", flush=True)
    report.save(
        "idle",
        f"python -m benchmarks.bench_idle {small} {large}",
        [
            {
                "name": f"lake commits of {IDLE_RUNS} idle runs",
                "value": lake,
                "target": "0",
            },
            {
                "name": f"change-log commits of {IDLE_RUNS} idle runs",
                "value": log,
                "target": "≤ 1 per few minutes",
            },
            {"name": "capture's peak memory", "value": peaks[1], "unit": "MiB"},
            {
                "name": f"peak memory, backlog of {large:,} ÷ {small:,} changes",
                "value": peaks[1] / peaks[0],
                "target": "≤ 1.2",
            },
        ],
    )


def idle_commits(at: Stage) -> tuple[int, int]:
    spark = spark_session(at.platform, at.pipeline, app_name="bench idle")
    run_sweep(spark, at.pipeline, at.platform, run="first")
    before = snapshots(at)
    for number in range(IDLE_RUNS):
        run_capture(at.pipeline, at.platform)
        run_apply(spark, at.pipeline, at.platform, run=f"idle_{number}")
    spark.stop()
    after = snapshots(at)
    return after[0] - before[0], after[1] - before[1]


def snapshots(at: Stage) -> tuple[int, int]:
    catalog = open_catalog(at.platform, at.pipeline)
    names = [(at.pipeline.namespace, "bench"), (at.pipeline.control_namespace, "change_log")]
    lake, log = (len(catalog.load_table(name).metadata.snapshots) for name in names)
    return lake, log


def peak_memory(at: Stage) -> float:
    """MiB of a capture process, as the kernel counted them."""
    document = at.pipeline.model_dump(mode="json", exclude_defaults=True)
    document["source"]["password"] = at.pipeline.source.password.get_secret_value()
    pipeline, platform = at.folder / "pipeline.yaml", at.folder / "platform.yaml"
    pipeline.write_text(yaml.safe_dump(document))
    platform.write_text(yaml.safe_dump(at.platform.model_dump(mode="json", exclude_defaults=True)))
    command = [sys.executable, "-m", "tidegate.jobs.capture", "--run", "bench"]
    command += ["--pipeline", str(pipeline), "--platform", str(platform)]
    result = at.folder / "result.json"
    process = subprocess.Popen([*command, "--result", str(result)], env=os.environ)
    _, status, usage = os.wait4(process.pid, 0)
    assert status == 0, Path(result).read_text()
    assert json.loads(result.read_text())["error"] is None
    return usage.ru_maxrss / 1024


if __name__ == "__main__":
    sizes = [int(text) for text in sys.argv[1:3]] or [500_000, 5_000_000]
    main(sizes[0], sizes[1])
