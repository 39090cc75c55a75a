"""Look at the live source ahead of time: will its schemas flow, and what was never sent. No JVM.

``python -m tidegate.jobs.check_schema`` is the process Airflow starts. Nothing is changed: the
catalog is compared with what captures and sweeps noted of it.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from pyiceberg.catalog import Catalog

from tidegate.config.pipeline import LakeTarget, PipelineConfig
from tidegate.config.platform import PlatformConfig
from tidegate.config.secrets import Secrets
from tidegate.connectors.protocol import Source
from tidegate.connectors.registry import open_source
from tidegate.errors import TidegateError
from tidegate.jobs import door
from tidegate.jobs.second_opinion import SecondOpinion
from tidegate.lake.catalog import load, open_catalog
from tidegate.lake.reports import Reports
from tidegate.lake.schema_ahead import ahead
from tidegate.lake.schema_ground import SchemaGround
from tidegate.lake.schema_history import SchemaHistory
from tidegate.names import TableId
from tidegate.observability import log

KIND = "schema"
_LOG = log.get(__name__)


@dataclass(frozen=True, slots=True)
class TableCheck:
    """One table's verdict."""

    table: str
    status: str  # ok | follows | needs_sweep | incompatible | gone | unswept | failed
    changes: tuple[str, ...] = ()
    reason: str = ""
    error: TidegateError | None = None
    registry: str = ""  # the schema registry's opinion of the live schema, where one is asked


@dataclass(frozen=True, slots=True)
class CheckResult:
    run: str
    tables: list[TableCheck]

    @property
    def failed(self) -> bool:
        return any(table.status not in ("ok", "follows", "unswept") for table in self.tables)


def run_check_schema(
    pipeline: PipelineConfig,
    platform: PlatformConfig,
    *,
    tables: Sequence[str] | None = None,
    run: str,
    secrets: Secrets | None = None,
) -> CheckResult:
    """The verdict on every table (or ``tables``)."""
    catalog = open_catalog(platform, pipeline)
    source = open_source(pipeline, platform, secrets)
    reports = Reports(catalog, pipeline)
    names = [str(TableId.parse(name)) for name in tables or pipeline.source.tables]
    try:
        look = _Look(catalog, pipeline, source, SecondOpinion(pipeline, platform))
        checks = [look.table(pipeline.target(TableId.parse(name))) for name in names]
    finally:
        source.close()
    reports.add(KIND, run, {"tables": look.seen})
    for check in checks:
        wrong = check.status not in ("ok", "follows", "unswept")
        level = logging.WARNING if wrong else logging.INFO
        log.event(
            _LOG,
            f"{check.table}: {check.status}",
            level,
            table=check.table,
            status=check.status,
            reason=check.reason,
        )
    return CheckResult(run, checks)


class _Look:
    """One look at the source."""

    def __init__(
        self,
        catalog: Catalog,
        pipeline: PipelineConfig,
        source: Source,
        opinion: SecondOpinion,
    ) -> None:
        self.catalog = catalog
        self.opinion = opinion
        self.source = source
        self.history = SchemaHistory(catalog, pipeline)
        self.seen: list[dict[str, Any]] = []

    def table(self, target: LakeTarget) -> TableCheck:
        try:
            return self._table(target)
        except TidegateError as error:
            return TableCheck(target.source, "failed", reason=error.message, error=error)

    def _table(self, target: LakeTarget) -> TableCheck:
        latest = self.history.latest(target.table)
        now = self.source.facts(target.table, latest.relation if latest else None)
        if now.relation is None:
            moved = f"it is called {now.name_now} now" if now.name_now else "it was dropped"
            return TableCheck(
                target.source,
                "gone",
                reason=f"the source has no table {target.source}: {moved}; the lake's stays as it"
                " is. Change source.tables and deploy",
            )
        lake = load(self.catalog, target.identifier)
        ground = SchemaGround.of(self.catalog, self.history, target)
        if lake is None or ground is None:
            return TableCheck(target.source, "unswept", reason="it was never swept")
        live = self.source.discover(target.table)
        found = ahead(ground, live, now)
        self.seen.append({"table": target.source})
        verdict = _verdict(target.source, found.changes, found.conflicts, found.unsent)
        return replace(verdict, registry=self.opinion.on(live))


def _verdict(
    table: str, changes: tuple[str, ...], conflicts: tuple[str, ...], hidden: tuple[str, ...]
) -> TableCheck:
    if conflicts:
        said = "; ".join([*conflicts, *hidden])
        return TableCheck(table, "incompatible", changes, f"it will be held: {said}")
    if hidden:
        return TableCheck(table, "needs_sweep", changes, f"sweep it: {'; '.join(hidden)}")
    return TableCheck(table, "follows" if changes else "ok", changes, "; ".join(changes))


def _job(call: door.Call) -> Any:
    return run_check_schema(call.pipeline, call.platform, tables=call.tables, run=call.run)


if __name__ == "__main__":
    door.main(_job, name="check_schema", spark=False)
