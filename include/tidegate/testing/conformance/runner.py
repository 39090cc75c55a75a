"""Running cases on paths and in write modes."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from tidegate.config.platform import PlatformConfig
from tidegate.observability.progress import Progress, silent
from tidegate.testing.conformance.cases import Case, EventCase
from tidegate.testing.conformance.judge import Judge
from tidegate.testing.conformance.lab import Lab
from tidegate.testing.conformance.packing import applies, pack
from tidegate.testing.conformance.readers import Reader
from tidegate.testing.conformance.results import Failure, Report
from tidegate.testing.conformance.server import Server

if TYPE_CHECKING:
    from tidegate.spark.session import SparkSession

UPSERT: Final = "upsert"


def run(
    spark: SparkSession,
    platform: PlatformConfig,
    server: Server,
    cases: Sequence[Case],
    readers: Mapping[str, Reader],
    *,
    paths: Sequence[str],
    modes: Sequence[str] = (UPSERT,),
    refused: bool = True,
    progress: Progress = silent,
    lab: Callable[..., Lab] = Lab,
) -> Report:
    """Every case that has a meaning, on every path and in every mode; with ``refused`` those too
    that validate must refuse."""
    began = time.monotonic()
    report = Report(server.version, server.label)
    lacking = server.lacking(cases)
    known: list[Case] = []
    for case in cases:
        if not case.since <= report.version <= case.until:
            report.not_run[case.name] = f"{report.server} does not know it"
        elif case.name in lacking:
            report.not_run[case.name] = lacking[case.name]
        else:
            known.append(case)
            report.cases.append(case.name)
    for mode in modes:
        for path in paths:
            own = [case for case in known if applies(case, report.version, path, mode)]
            if own:
                with server.database(_name()) as database:
                    units = pack(own, server.dialect(database))
                    made = lab(spark, platform, server, database, path, mode, units, progress)
                    _run_lab(made, readers, report)
    if refused:
        _run_refused(spark, platform, server, known, report)
    report.seconds = round(time.monotonic() - began, 1)
    return report


def _run_lab(lab: Lab, readers: Mapping[str, Reader], report: Report) -> None:
    lab.prepare()
    try:
        lab.run()
        for unit in lab.units:
            Judge(lab, unit, readers, report).judge()
    finally:
        lab.close()


def _run_refused(
    spark: SparkSession,
    platform: PlatformConfig,
    server: Server,
    cases: Sequence[Case],
    report: Report,
) -> None:
    own = [case for case in cases if isinstance(case, EventCase) and case.refused]
    if not own:
        return
    with server.database(_name()) as database:
        units = pack(own, server.dialect(database))
        lab = Lab(spark, platform, server, database, "validate", UPSERT, units)
        lab.prepare()
        for unit in lab.units:
            wanted = unit.event.refused if unit.event else None
            codes = lab.problems(unit)
            report.checks += 1
            if wanted not in codes:
                why = f"validate should say {wanted}, it says {', '.join(codes) or 'nothing'}"
                report.failures.append(Failure(unit.name, "validate", UPSERT, "-", why))


def _name() -> str:
    return f"conformance_{uuid.uuid4().hex[:8]}"
