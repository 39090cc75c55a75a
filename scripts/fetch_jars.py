"""Resolve the Maven coordinates of ``tidegate.lake.jars`` once, by starting Spark with them.

Starting Spark is also the proof that Java, Spark and the jars work together on this machine. The
state file remembers the coordinates and the files, so that a second run only looks at them.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import time
from collections import deque
from pathlib import Path

from tidegate.lake.jars import JARS

PROBE = "--probe"
KEPT_LINES = 30


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--state", type=Path, help="where to remember what was resolved")
    parser.add_argument(PROBE, type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.probe:
        probe(arguments.probe)
        return 0
    if in_place(arguments.state):
        note(f"{len(JARS)} Maven artifacts are in place")
        return 0
    return fetch(arguments.state)


def in_place(state: Path) -> bool:
    if not state.exists():
        return False
    known = json.loads(state.read_text())
    return known["coordinates"] == list(JARS) and all(Path(f).exists() for f in known["files"])


def fetch(state: Path) -> int:
    note(f"fetching {len(JARS)} Maven artifacts and starting Spark once (60 MB the first time)")
    started = time.monotonic()
    found = state.with_suffix(".found")
    command = [sys.executable, __file__, PROBE, str(found)]
    environment = {**os.environ, "PYSPARK_PYTHON": sys.executable}
    tail: deque[str] = deque(maxlen=KEPT_LINES)
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment
    ) as process:
        for line in process.stdout or ():
            tail.append(line)
            artifact = re.search(r"downloading \S*/([^/\s]+\.jar)", line)
            if artifact:
                note(f"fetched {artifact[1]}")
    if process.returncode != 0 or not found.exists():
        sys.stderr.writelines(tail)
        sys.stderr.write(
            "\nThe jars could not be fetched, or Spark did not start (its last lines are above).\n"
            "  no network to a Maven repository?  set spark.jars.ivySettings in\n"
            "  $SPARK_CONF_DIR/spark-defaults.conf to one you can reach, then run the same again\n"
        )
        return 3
    answer = json.loads(found.read_text())
    found.unlink()
    state.write_text(json.dumps({"coordinates": list(JARS), "files": answer["files"]}))
    seconds = time.monotonic() - started
    note(f"{len(answer['files'])} jars ready, Spark {answer['spark']} starts ({seconds:.0f} s)")
    return 0


def probe(found: Path) -> None:
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master("local[1]").appName("tidegate-setup")
    settings = {
        "spark.jars.packages": ",".join(JARS),
        "spark.ui.enabled": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
    }
    spark = builder.config(map=settings).getOrCreate()
    files = [name.removeprefix("file://") for name in spark.conf.get("spark.jars").split(",")]
    found.write_text(json.dumps({"spark": spark.version, "files": files}))
    spark.stop()


def note(text: str) -> None:
    print(f"      {text}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
