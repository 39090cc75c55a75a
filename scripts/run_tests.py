"""Run the test suites, each in a process of its own, two at a time.

A process has one Spark session at most, and one suite's leftovers cannot reach the next. One suite
alone waits for disks, servers and JVMs half of its time, so two lanes share the machine. Every
suite runs even if an earlier one failed; the table at the end says what happened and how long each
took.
Further arguments go to pytest: ``scripts/run_tests.py spark -k merge``.

Tests marked ``long`` (the whole matrix of kills) run where their suite is named, as by
``make test-faults``; a run of everything takes one kill per durable step.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / ".tidegate" / "test-results"

SUITES: dict[str, tuple[str, ...]] = {
    "unit": ("tests/unit", "tests/contract"),
    "spark": ("tests/spark",),
    "integration": ("tests/integration",),
    "conformance": ("tests/conformance",),
    "dags": ("tests/dags",),
    "page": ("tests/page",),
    "system": ("tests/system",),
    "faults": ("tests/faults",),
}

LANES = 2
WHY = 300
"""Characters of a failure's message that the report repeats."""
LONGEST_FIRST = ("integration", "conformance", "spark", "unit", "dags", "faults", "page", "system")
"""A lane that is free takes the next: the short ones at the end even the lanes out."""

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
    alone = len(wanted) == 1
    began = time.monotonic()
    with ThreadPoolExecutor(LANES) as threads:
        runs = threads.map(
            lambda name: run(name, extra, alone=alone),
            sorted(wanted, key=LONGEST_FIRST.index),
        )
        outcomes = {outcome.suite: outcome for outcome in runs}
    report([outcomes[name] for name in wanted], time.monotonic() - began)
    return max((outcome.code for outcome in outcomes.values()), default=0)


def run(suite: str, extra: list[str], *, alone: bool) -> Outcome:
    """One suite; beside another its lines carry its name."""
    print(f"\n\033[1m{suite}\033[0m", flush=True)
    paths = [path for path in SUITES[suite] if (ROOT / path).is_dir()]
    results = RESULTS / f"{suite}.xml"
    results.unlink(missing_ok=True)
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
            sys.stdout.write(line if alone else f"{suite:<11} | {line}")
            sys.stdout.flush()
            last = line.strip("= \n") or last
    return Outcome(suite, process.returncode, time.monotonic() - started, last)


def report(outcomes: list[Outcome], seconds: float) -> None:
    print("\n\033[1msuite         result     time   \033[0m")
    for outcome in outcomes:
        result = "passed" if outcome.code == 0 else f"FAILED ({outcome.code})"
        print(f"{outcome.suite:<12}  {result:<10} {outcome.seconds:5.0f} s  {outcome.summary}")
    print(f"{'all':<12}  {'':<10} {seconds:5.0f} s\n")
    for outcome in outcomes:
        for line in failures(RESULTS / f"{outcome.suite}.xml"):
            print(line)
    counts = [counted(RESULTS / f"{outcome.suite}.xml") for outcome in outcomes]
    passed, failed, skipped = (sum(numbers) for numbers in zip(*counts, strict=True))
    print(f"{passed} passed, {failed} failed, {skipped} skipped", flush=True)


def failures(results: Path) -> Iterator[str]:
    """What failed, and why in a line: the end of the output is what people look at first."""
    if not results.exists():
        return
    for case in ElementTree.parse(results).iter("testcase"):
        for kind in ("failure", "error"):
            for found in case.iter(kind):
                why = " ".join((found.get("message") or "").split())
                yield f"{kind}: {case.get('classname')}::{case.get('name')}: {why[:WHY]}"


def counted(results: Path) -> tuple[int, int, int]:
    """Tests passed, failed and skipped, as pytest wrote them down."""
    if not results.exists():
        return (0, 0, 0)
    suite = next(ElementTree.parse(results).iter("testsuite"))
    total, failures, errors, skipped = (
        int(suite.get(name, "0")) for name in ("tests", "failures", "errors", "skipped")
    )
    return (total - failures - errors - skipped, failures + errors, skipped)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
