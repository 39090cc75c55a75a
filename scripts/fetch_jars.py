"""Resolve the Maven coordinates of ``tidegate.lake.jars`` once, by starting Spark with them.

Starting Spark is also the proof that Java, Spark and the jars work together on this machine. The
paths of the jars are written to a file, one a line, so that a later run can look whether they are
still there without starting anything.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tidegate.lake.jars import JARS

PROBE = "--probe"
TELLING = re.compile(r"exception|error|unresolved|not found|denied", re.IGNORECASE)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--files", type=Path, help="where to write the jars' paths")
    parser.add_argument(PROBE, type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.probe:
        probe(arguments.probe)
        return 0
    return fetch(arguments.files)


def fetch(files: Path | None) -> int:
    note(f"fetching {len(JARS)} Maven artifacts and starting Spark once (60 MB the first time)")
    started = time.monotonic()
    lines: list[str] = []
    with tempfile.TemporaryDirectory() as folder:
        found = Path(folder) / "found.json"
        code = run([sys.executable, __file__, PROBE, str(found)], lines)
        answer = json.loads(found.read_text()) if code == 0 else None
    if answer is None:
        sys.stderr.writelines([line for line in lines if TELLING.search(line)][:12])
        sys.stderr.write(
            "\nThe jars could not be fetched, or Spark did not start; what it said is above.\n"
            "  no network to a Maven repository?  set spark.jars.ivySettings in\n"
            "  $SPARK_CONF_DIR/spark-defaults.conf to one you can reach, then run the same again\n"
        )
        return 3
    if files:
        files.write_text("".join(f"{file}\n" for file in answer["files"]))
    seconds = time.monotonic() - started
    note(f"{len(answer['files'])} jars ready, Spark {answer['spark']} starts ({seconds:.0f} s)")
    return 0


def run(command: list[str], lines: list[str]) -> int:
    environment = {**os.environ, "PYSPARK_PYTHON": sys.executable}
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment
    ) as process:
        for line in process.stdout or ():
            lines.append(line)
            artifact = re.search(r"downloading \S*/([^/\s]+\.jar)", line)
            if artifact:
                note(f"fetching {artifact[1]}")
    return process.returncode


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
