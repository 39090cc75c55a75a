"""Run the test suites one after another, each in a process of its own.

A process has one Spark session at most, and one suite's leftovers cannot reach the next. Every
suite runs even if an earlier one failed; the table at the end says what happened and how long
each took. Further arguments go to pytest: ``scripts/run_tests.py spark -k merge``.

Tests marked ``long`` (the whole matrix of kills) run where their suite is named, as by
``make test-faults``; a run of everything takes one kill per durable step.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / ".tidegate" / "test-results"

SUITES: dict[str, tuple[str, ...]] = {
    "unit": ("tests/unit", "tests/contract"),
    "spark": ("tests/spark",),
    "integration": ("tests/integration",),
    "conformance": ("tests/conformance",),
    "dags": ("tests/dags",),
    "system": ("tests/system",),
    "faults": ("tests/faults",),
}

LONG_JVM = frozenset({"conformance"})
"""Suites whose one JVM lives for many minutes: the optimising compiler pays there, while
tests/conftest.py goes without it elsewhere."""


@dataclass(frozen=True)
class Outcome:
    suite: str
    code: int
    seconds: float
    summary: str


def main(arguments: list[str]) -> int:
    wanted = [name for name in SUITES if name in arguments] or list(SUITES)
    extra = [argument for argument in arguments if argument not in SUITES]
    if not any(name in arguments for name in SUITES):
        extra += ["-m", "not long"]
    RESULTS.mkdir(parents=True, exist_ok=True)
    outcomes = []
    for number, suite in enumerate(wanted, start=1):
        print(f"\n\033[1m[{number}/{len(wanted)}] {suite}\033[0m", flush=True)
        outcomes.append(run(suite, extra))
    report(outcomes)
    return max((outcome.code for outcome in outcomes), default=0)


def run(suite: str, extra: list[str]) -> Outcome:
    paths = [path for path in SUITES[suite] if (ROOT / path).is_dir()]
    results = RESULTS / f"{suite}.xml"
    command = [sys.executable, "-m", "pytest", *paths, f"--junitxml={results}", "--durations=5"]
    environment = {**os.environ, "PYSPARK_PYTHON": sys.executable, "PYTHONUNBUFFERED": "1"}
    if suite in LONG_JVM:
        environment.setdefault("JDK_JAVA_OPTIONS", "-XX:+UseParallelGC")
    started = time.monotonic()
    last = ""
    with subprocess.Popen(
        [*command, *extra], cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True
    ) as process:
        for line in process.stdout or ():
            sys.stdout.write(line)
            sys.stdout.flush()
            last = line.strip("= \n") or last
    return Outcome(suite, process.returncode, time.monotonic() - started, last)


def report(outcomes: list[Outcome]) -> None:
    print("\n\033[1msuite         result     time   \033[0m")
    for outcome in outcomes:
        result = "passed" if outcome.code == 0 else f"FAILED ({outcome.code})"
        print(f"{outcome.suite:<12}  {result:<10} {outcome.seconds:5.0f} s  {outcome.summary}")
    print(f"{'all':<12}  {'':<10} {sum(o.seconds for o in outcomes):5.0f} s", flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
