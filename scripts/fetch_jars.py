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

from tidegate.lake.jars import CLASSES, FETCHED, SETUP_JARS

PROBE = "--probe"
STATEMENTS = (
    "CREATE NAMESPACE lake.warm",
    "CREATE TABLE lake.warm.t (id bigint, v string) USING iceberg TBLPROPERTIES"
    " ('format-version' = '3', 'write.merge.mode' = 'merge-on-read')",
    "INSERT INTO lake.warm.t SELECT id, string(id) FROM range(10)",
    "MERGE INTO lake.warm.t t USING (SELECT id, 'x' v FROM range(5, 15)) s ON t.id = s.id"
    " WHEN MATCHED THEN UPDATE SET v = s.v WHEN NOT MATCHED THEN INSERT *",
    "SELECT count(*), max(xxhash64(v)) FROM lake.warm.t GROUP BY id % 3",
)
"""What a sweep and an apply do, in small."""
TELLING = re.compile(r"exception|error|unresolved|not found|denied", re.IGNORECASE)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(PROBE, type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.probe:
        probe(arguments.probe)
        return 0
    return fetch()


def fetch() -> int:
    note(
        f"fetching {len(SETUP_JARS)} Maven artifacts and starting Spark once (60 MB the first time)"
    )
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
    FETCHED.write_text("".join(f"{file}\n" for file in answer["files"]))
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
    """Start Spark as jobs do, write and read a table, and leave the classes it took in a file that
    later JVMs map instead of loading them one by one."""
    from pyspark import SparkContext

    from tidegate.config.platform import LakeConfig, PlatformConfig, SparkConfig
    from tidegate.spark.session import spark_session

    CLASSES.unlink(missing_ok=True)
    FETCHED.unlink(missing_ok=True)  # resolved by name once, here
    CLASSES.parent.mkdir(exist_ok=True)
    made = CLASSES.with_suffix(".made")
    conf = {
        "spark.jars.packages": ",".join(SETUP_JARS),
        "spark.driver.extraJavaOptions": f"-XX:ArchiveClassesAtExit={made} -Xlog:cds=off",
    }
    spark = spark_session(
        PlatformConfig(
            lake=LakeConfig(home=str(found.parent)),
            spark=SparkConfig(master="local[1]", driver_memory="1g", conf=conf),
        ),
        app_name="tidegate-setup",
    )
    for statement in STATEMENTS:
        spark.sql(statement).collect()
    files = [name.removeprefix("file://") for name in spark.conf.get("spark.jars").split(",")]
    found.write_text(json.dumps({"spark": spark.version, "files": files}))
    gateway = SparkContext._gateway
    spark.stop()
    gateway.shutdown()
    gateway.proc.stdin.close()
    gateway.proc.wait(timeout=120)  # the file is written on the way out
    if made.exists():
        made.rename(CLASSES)


def note(text: str) -> None:
    print(f"      {text}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
