"""Random tables, random transactions, random batches, jobs that die at random points: after every
batch the lake equals the source.

A failing example is printed as a block for ``cases/found.yaml``.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from tests.conformance.random_cases import as_block, histories
from tidegate import faults
from tidegate.config.platform import PlatformConfig
from tidegate.testing.conformance import runner
from tidegate.testing.conformance.cases import EventCase
from tidegate.testing.conformance.judge import Judge
from tidegate.testing.conformance.lab import Lab
from tidegate.testing.conformance.postgres import started_server
from tidegate.testing.conformance.readers import pyiceberg_reader
from tidegate.testing.conformance.results import Report
from tidegate.testing.conformance.server import Server

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.postgres, pytest.mark.timeout(3600)]

READERS = {"pyiceberg": pyiceberg_reader}
TABLES = 4
KEYLESS = {0}
CAPTURE = [name for name in sorted(faults.POINTS) if name.startswith("capture.")]
APPLY = [name for name in sorted(faults.POINTS) if name.startswith("apply.")]
SWEEP = [name for name in sorted(faults.POINTS) if name.startswith("sweep.")]


@dataclass
class DyingLab(Lab):
    """Jobs die where ``deaths`` says and are run again; every batch is judged."""

    deaths: list[str] = field(default_factory=list)
    report: Report = field(default_factory=lambda: Report(0))

    def _sweep(self) -> None:
        self._survive([name for name in self.deaths if name in SWEEP], super()._sweep)

    def _apply(self, number: int) -> None:
        wanted = [name for name in self.deaths if name in CAPTURE + APPLY]
        self._survive(wanted[number : number + 1], lambda: super(DyingLab, self)._apply(number))
        for unit in self.units:
            Judge(self, unit, READERS, self.report).judge()

    def _survive(self, points: list[str], job: Callable[[], None]) -> None:
        for point in points:
            faults._hits.clear()
            os.environ["TIDEGATE_FAULT"] = f"{point}@raise"
            try:
                job()
            except faults.Fault:
                self.errors.clear()
            finally:
                del os.environ["TIDEGATE_FAULT"]
        job()


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with started_server(15) as started:
        yield started


def check(
    spark: SparkSession,
    platform: PlatformConfig,
    server: Server,
    cases: list[EventCase],
    path: str,
    deaths: list[str],
) -> None:
    def lab(*arguments: object) -> DyingLab:
        return DyingLab(*arguments, deaths=deaths, report=report)  # type: ignore[arg-type]

    report = Report(server.version)
    final = runner.run(spark, platform, server, cases, READERS, paths=[path], lab=lab)
    failures = [*report.failures, *final.failures]
    failed = {failure.case for failure in failures}
    told = [f"{failure.case}: {failure.why}" for failure in failures]
    kept = [as_block(case) for case in cases if case.name in failed]
    assert not failures, "\n".join([f"{path}, died at {deaths}", *told, *kept])


def examples(count: int, *, fixed: bool) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Fixed examples never surprise a change that has nothing to do with them."""
    phases = [Phase.generate] if fixed else [Phase.generate, Phase.shrink]
    return settings(
        max_examples=count,
        deadline=None,
        database=None,
        derandomize=fixed,
        phases=phases,
        suppress_health_check=list(HealthCheck),
    )


RANDOM = {
    "cases": st.tuples(
        *(histories(number, keyed=number not in KEYLESS) for number in range(TABLES))
    ).map(list),
    "path": st.sampled_from(["log", "both"]),
    "deaths": st.lists(st.sampled_from(CAPTURE + APPLY + SWEEP), max_size=4),
}


@examples(4, fixed=True)
@given(**RANDOM)
def test_the_lake_equals_the_source_after_every_batch(
    spark: SparkSession,
    spark_platform: PlatformConfig,
    server: Server,
    cases: list[EventCase],
    path: str,
    deaths: list[str],
) -> None:
    check(spark, spark_platform, server, cases, path, deaths)


@pytest.mark.long
@examples(int(os.environ.get("TIDEGATE_EXAMPLES", "50")), fixed=False)
@given(**RANDOM)
def test_many_more_of_them(
    spark: SparkSession,
    spark_platform: PlatformConfig,
    server: Server,
    cases: list[EventCase],
    path: str,
    deaths: list[str],
) -> None:
    check(spark, spark_platform, server, cases, path, deaths)
