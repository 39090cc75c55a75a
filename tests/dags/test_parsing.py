"""Parsing is YAML and nothing else, for as many pipelines as one likes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from tests.dags.conftest import PROJECT, PipelineFile

PIPELINES = 50
DAGS = 8
"""Of each."""
TASKS = 3
"""Of a Dag, on average."""
LIMIT_RATIO = 6.0
"""CPU time against as many plain Dags and tasks in the same process; 5.0 was seen
beside two other suites. Fifty pipelines took 1.8 s, on a loaded machine."""
HEAVY = ("pyspark", "pyiceberg", "pyarrow", "pandas", "psycopg", "psycopg2", "great_expectations")

# Airflow itself takes seconds to import; the Dag processor has it loaded when it parses. So has its
# OpenLineage provider, a listener, which the Spark provider imports where it is installed.
PROBE = """
import json, runpy, sys, time
import airflow.dag_processing.dagbag, airflow.models, airflow.sdk
import airflow.providers.common.compat.openlineage.utils.spark
from airflow.providers.standard.operators.empty import EmptyOperator
before = set(sys.modules)
began = time.process_time()
made = runpy.run_path(sys.argv[1])
seconds = time.process_time() - began
new = {name.partition(".")[0] for name in set(sys.modules) - before}
began = time.process_time()
for number in range(int(sys.argv[2])):
    with airflow.sdk.DAG(f"plain_{number}", schedule=None, params={"a": airflow.sdk.Param(1)}):
        for place in range(int(sys.argv[3])):
            EmptyOperator(task_id=f"t{place}")
plain = time.process_time() - began
dags = [name for name in made if "__" in name and not name.startswith("__")]
print(json.dumps({"ratio": seconds / plain, "dags": len(dags), "new": sorted(new)}))
"""


def test_fifty_pipelines_cost_little_more_than_their_dags_and_import_nothing_heavy(
    pipelines: Path, pipeline_file: PipelineFile
) -> None:
    for number in range(PIPELINES):
        pipeline_file(f"shop_{number}")
    done = subprocess.run(
        [
            sys.executable,
            "-c",
            PROBE,
            str(PROJECT / "dags" / "tidegate_pipelines.py"),
            str(DAGS * PIPELINES),
            str(TASKS),
        ],
        check=True,
        capture_output=True,
        text=True,
        env={
            **os.environ,
            "TIDEGATE_PIPELINES_DIR": str(pipelines),
            "PYTHONPATH": str(PROJECT / "include"),
            "PYTHONWARNINGS": "ignore",
        },
    )
    seen = json.loads(done.stdout.splitlines()[-1])
    assert seen["dags"] == DAGS * PIPELINES
    assert not set(HEAVY) & set(seen["new"])
    assert seen["ratio"] < LIMIT_RATIO, seen["ratio"]


def test_the_factory_opens_no_connection(pipelines: Path, pipeline_file: PipelineFile) -> None:
    """A source, a catalog and a connection that do not exist disturb nobody at parse time."""
    pipeline_file("shop", source="  connection_id: nowhere\n")
    platform = pipelines.parent / "platform.yaml"
    platform.write_text("lake: {catalog: {type: rest, uri: 'http://127.0.0.1:1'}}\n")
    probe = (
        "import socket, sys\n"
        "def refuse(*_): raise AssertionError('a socket at parse time')\n"
        "import airflow.sdk\n"
        "socket.socket.connect = refuse\n"
        "from tidegate.airflow.factory import build_dags\n"
        "print(len(build_dags(sys.argv[1], sys.argv[2])))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", probe, str(pipelines), str(platform)],
        check=True,
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(PROJECT / "include"), "PYTHONWARNINGS": "ignore"},
    )
    assert done.stdout.split()[-1] == str(DAGS)
