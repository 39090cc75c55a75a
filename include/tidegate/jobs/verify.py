"""Verify: source and lake, row by row, at one stated position.

Lease → cut → capture through the cut → apply until exactly the cut → compare. Nothing else writes
the tables meanwhile (I4), and both sides are read at the same place of the log.
"""

from __future__ import annotations

import logging
import time
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tidegate.config.pipeline import LakeTarget, PipelineConfig
from tidegate.config.platform import PlatformConfig
from tidegate.connectors.protocol import Cut
from tidegate.connectors.registry import open_source
from tidegate.envelope.position import Position
from tidegate.errors import TidegateError
from tidegate.jobs.apply import run_apply
from tidegate.jobs.disclosure import as_tidegate_error, describe
from tidegate.jobs.result import plain
from tidegate.jobs.sweep_drain import capture_through
from tidegate.jobs.sweep_plan import check_tables
from tidegate.lake import commits, positions
from tidegate.lake.catalog import load, open_catalog
from tidegate.lake.change_log import ChangeLog
from tidegate.lake.gate import Gate, GateState, Lease
from tidegate.lake.reports import Reports
from tidegate.names import TableId
from tidegate.observability import log
from tidegate.observability.progress import Progress, silent
from tidegate.schema.contract import contracted
from tidegate.spark.sweep_read import read_chunks
from tidegate.spark.verify import Difference, compare
from tidegate.spark.verify_rows import lake_rows

if TYPE_CHECKING:
    from pyiceberg.table import Table
    from pyspark.sql import DataFrame, SparkSession

_LOG = log.get(__name__)
FIRST_DIFFERENCES = 20
"""Differences named in a result; all are counted."""


@dataclass(frozen=True, slots=True)
class TableVerdict:
    """Whether one table is equal, and where not."""

    table: str
    status: str  # equal | different | skipped | failed
    source_rows: int = 0
    lake_rows: int = 0
    missing: int = 0
    extra: int = 0
    different: int = 0
    seconds: float = 0.0
    snapshot_id: int | None = None
    first: tuple[Difference, ...] = ()
    reason: str | None = None
    error: TidegateError | None = None

    @property
    def equal(self) -> bool:
        return self.status == "equal"


@dataclass(frozen=True, slots=True)
class VerifyResult:
    """Every table's verdict at one position."""

    run: str
    position: Position | None
    seconds: float
    tables: list[TableVerdict]

    @property
    def equal(self) -> bool:
        """Whether every table that could be compared is equal (and none failed)."""
        return all(table.status in ("equal", "skipped") for table in self.tables)


def run_verify(
    spark: SparkSession,
    pipeline: PipelineConfig,
    platform: PlatformConfig,
    *,
    tables: Sequence[str | TableId] | None = None,
    run: str | None = None,
    progress: Progress = silent,
) -> VerifyResult:
    """Compare ``tables`` (all by default). Tables that are closed or empty are skipped, and say
    why."""
    began = time.monotonic()
    run = run or f"verify_{uuid.uuid4().hex[:12]}"
    job = _Verify(spark, pipeline, platform, run, progress)
    position, verdicts = job.verify(check_tables(pipeline, tables))
    result = VerifyResult(run, position, round(time.monotonic() - began, 3), verdicts)
    Reports(job.catalog, pipeline).add("verify", run, _without_keys(result))
    return result


class _Verify:
    """One call of :func:`run_verify`."""

    def __init__(
        self,
        spark: SparkSession,
        pipeline: PipelineConfig,
        platform: PlatformConfig,
        run: str,
        progress: Progress,
    ) -> None:
        self.spark = spark
        self.pipeline = pipeline
        self.platform = platform
        self.run = run
        self.progress = progress
        self.catalog = open_catalog(platform, pipeline)
        self.gate = Gate(self.catalog, pipeline, platform.gate)

    def verify(self, targets: Sequence[LakeTarget]) -> tuple[Position | None, list[TableVerdict]]:
        skipped = {name: reason for name, reason in self._reasons(targets).items() if reason}
        ready = [target for target in targets if target.source not in skipped]
        position, verdicts = self._leased(ready) if ready else (None, {})
        for name, reason in skipped.items():
            verdicts[name] = TableVerdict(name, "skipped", reason=reason)
        return position, [verdicts[target.source] for target in targets]

    def _reasons(self, targets: Sequence[LakeTarget]) -> dict[str, str | None]:
        """Why a table cannot be compared now."""
        states = self.gate.states([target.source for target in targets])
        reasons: dict[str, str | None] = {}
        for target in targets:
            state, table = states[target.source], load(self.catalog, target.identifier)
            if state.state is not GateState.OPEN:
                said = f": {state.reason}" if state.reason else ""
                reasons[target.source] = f"its gate is {state.state}{said}"
            elif table is None or positions.applied(table) is None:
                reasons[target.source] = "it was never swept, so there is nothing to compare"
            else:
                reasons[target.source] = None
        return reasons

    def _leased(self, ready: Sequence[LakeTarget]) -> tuple[Position, dict[str, TableVerdict]]:
        source = open_source(self.pipeline, self.platform)
        epoch = ChangeLog(self.catalog, self.pipeline).head().captured_through.epoch
        names = [target.source for target in ready]
        try:
            with self.gate.lease(self.run, names, "verify") as lease:
                ids = tuple(target.table for target in ready)
                with source.cut(ids, epoch=epoch) as cut:
                    failures = self._catch_up(cut, names, lease)
                    verdicts = {
                        target.source: failures.get(target.source) or self._one(cut, target)
                        for target in ready
                    }
                    return cut.position, verdicts
        finally:
            source.close()

    def _catch_up(self, cut: Cut, names: list[str], lease: Lease) -> dict[str, TableVerdict]:
        """Bring the lake to exactly the cut; what could not be is a verdict already."""
        capture_through(self.pipeline, self.platform, cut.position, self.progress)
        applied = run_apply(
            self.spark,
            self.pipeline,
            self.platform,
            tables=names,
            until=cut.position,
            run=self.run,
            lease=lease,
            progress=self.progress,
        )
        return {
            str(result.table): TableVerdict(
                str(result.table),
                "failed",
                error=result.error,
                reason=f"its changes up to the cut were not applied ({result.status})",
            )
            for result in applied.tables
            if result.status not in ("applied", "unchanged")
        }

    def _one(self, cut: Cut, target: LakeTarget) -> TableVerdict:
        began = time.monotonic()
        try:
            verdict = self._compare(cut, target)
        except Exception as error:  # noqa: BLE001 - one table's failure is kept to itself
            reason = as_tidegate_error(error)
            log.event(
                _LOG,
                "verify failed",
                level=logging.ERROR,
                table=target.source,
                reason=describe(error),
            )
            return TableVerdict(target.source, "failed", error=reason)
        seconds = round(time.monotonic() - began, 3)
        self.progress(f"verify {target.source}", verdict.source_rows, verdict.source_rows, "rows")
        log.event(_LOG, "verified", table=target.source, status=verdict.status, seconds=seconds)
        return verdict

    def _compare(self, cut: Cut, target: LakeTarget) -> TableVerdict:
        schema = contracted(cut.schema(target.table), target)
        if not schema.key_columns:
            reason = "a table without a key has no rows that could be told apart"
            return TableVerdict(target.source, "skipped", reason=reason)
        table = self._table(target)
        snapshot = commits.head_id(table) or 0
        missing = _missing_columns(table, [column.name for column in schema.columns])
        if missing:
            reason = f"the lake has no column {', '.join(missing)} yet; its next change brings it"
            return TableVerdict(target.source, "skipped", reason=reason)
        plain = cut.survey(target.table, schema).plain
        chunks = cut.chunks(target.table, schema, self.platform.sweep.chunk_rows, by_key=False)

        def source() -> DataFrame:
            return read_chunks(
                self.spark,
                cut,
                schema,
                chunks,
                plain=plain,
                fetch_size=self.platform.sweep.fetch_size,
                connections=self.platform.sweep.parallelism,
            ).frame

        lake = lake_rows(self.spark, target, schema, snapshot)
        found = compare(source, lake, schema, limit=FIRST_DIFFERENCES)
        return TableVerdict(
            target.source,
            "equal" if found.equal else "different",
            source_rows=found.source_rows,
            lake_rows=found.lake_rows,
            missing=found.missing,
            extra=found.extra,
            different=found.different,
            snapshot_id=snapshot,
            first=found.first,
        )

    def _table(self, target: LakeTarget) -> Table:
        return self.catalog.load_table(target.identifier)


def _missing_columns(table: Table, columns: Sequence[str]) -> list[str]:
    known = {field.name for field in table.schema().fields}
    return [name for name in columns if name not in known]


def _without_keys(result: VerifyResult) -> dict[str, object]:
    """The result as reports keep it: keys are row values, so only their number stays (I9)."""
    body: dict[str, object] = plain(result)
    for table in body["tables"]:  # type: ignore[attr-defined]
        table.pop("first", None)
    return body
