"""Source against lake at one position: what ``verify`` and ``reload`` have in common.

Lease → cut → capture through the cut → apply until exactly the cut → compare → mend, if asked to.
Nothing else writes the tables meanwhile (I4), and both sides are read at the same place of the log.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from tidegate.config.pipeline import LakeTarget, PipelineConfig
from tidegate.config.platform import PlatformConfig
from tidegate.connectors.cut import ExactCut
from tidegate.connectors.marking import MarkingCut
from tidegate.connectors.protocol import Capability
from tidegate.connectors.registry import open_source
from tidegate.envelope.position import Position
from tidegate.errors import TidegateError
from tidegate.jobs.apply import run_apply
from tidegate.jobs.compared_columns import ComparedColumns
from tidegate.jobs.disclosure import as_tidegate_error, describe
from tidegate.jobs.kept_back import KeptBack
from tidegate.jobs.sweep_drain import capture_through
from tidegate.jobs.verdict import TableVerdict
from tidegate.lake import commits, positions
from tidegate.lake.catalog import load, open_catalog
from tidegate.lake.change_log import ChangeLog
from tidegate.lake.dead_letters import DeadLetters
from tidegate.lake.gate import Gate, GateState, Lease
from tidegate.lake.pauses import refuse_stopped
from tidegate.lake.proofs import Base
from tidegate.lake.schema_history import SchemaHistory
from tidegate.observability import log
from tidegate.observability.progress import Progress
from tidegate.schema.table import TableSchema
from tidegate.spark.checksum import equal_rows
from tidegate.spark.compare_rows import compare_rows
from tidegate.spark.continuing import Continuing
from tidegate.spark.mending import mend
from tidegate.spark.repair import Repair, keyless
from tidegate.spark.selection import Selection
from tidegate.spark.sides import Sides
from tidegate.spark.verify import Comparison, compare

if TYPE_CHECKING:
    from pyiceberg.table import Table

    from tidegate.spark.session import SparkSession

_LOG = log.get(__name__)
FIRST_DIFFERENCES = 20
"""Differences named in a result; all are counted."""
NO_EXACT_CUT = "its source cannot be read at one exact position, which comparing needs"
UNNAMED = "without a key, rows that differ are counted but not named; a sweep makes them equal"
Verdicts = dict[str, TableVerdict]


@dataclass(frozen=True, slots=True)
class Task:
    """What is compared, and what is done about it."""

    purpose: str
    select: Callable[[LakeTarget, Table, ExactCut, TableSchema], Selection]
    settle: Callable[[LakeTarget, Position, Comparison, TableVerdict], TableVerdict]
    """Has the last word on a verdict; the table's lease is held."""
    repair: bool = False
    base: Callable[[LakeTarget], Base | None] | None = None
    """An earlier comparison of the table to go on from; asked after ``select``."""
    by_key: bool = False
    """Whether it needs keys; otherwise rows of tables without one are counted."""


class Comparer:
    """One run over some tables."""

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
        self.letters = DeadLetters(self.catalog, pipeline)
        self.history = SchemaHistory(self.catalog, pipeline)

    def compare(
        self, targets: Sequence[LakeTarget], task: Task
    ) -> tuple[Position | None, list[TableVerdict]]:
        """Compare ``targets``. Tables that are closed or empty are skipped, and say why."""
        refuse_stopped(self.catalog, self.pipeline)
        skipped = {name: reason for name, reason in self._reasons(targets).items() if reason}
        source = open_source(self.pipeline, self.platform)
        if Capability.CUT_HOLD not in source.capabilities:
            skipped = dict.fromkeys((target.source for target in targets), NO_EXACT_CUT)
        ready = [target for target in targets if target.source not in skipped]
        position, verdicts = self._leased(ready, task) if ready else (None, {})
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

    def _leased(self, ready: Sequence[LakeTarget], task: Task) -> tuple[Position, Verdicts]:
        source = open_source(self.pipeline, self.platform)
        head = ChangeLog(self.catalog, self.pipeline).head().captured_through
        names = [target.source for target in ready]
        try:
            with self.gate.lease(self.run, names, task.purpose) as lease:
                ids = tuple(target.table for target in ready)
                with source.hold(ids, head=head) as cut:
                    failures = self._catch_up(cut, names, lease)
                    self.history = SchemaHistory(self.catalog, self.pipeline)  # as captured by now
                    verdicts = {
                        target.source: failures.get(target.source)
                        or self._one(cut, target, task, lease)
                        for target in ready
                    }
                    return cut.position, verdicts
        finally:
            source.close()

    def _catch_up(self, cut: ExactCut, names: list[str], lease: Lease) -> Verdicts:
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

    def _one(self, cut: ExactCut, target: LakeTarget, task: Task, lease: Lease) -> TableVerdict:
        began = time.monotonic()
        try:
            verdict = self._compare(cut, target, task, lease)
        except Exception as error:  # noqa: BLE001 - one table's failure is kept to itself
            log.event(
                _LOG,
                f"{task.purpose} failed",
                level=logging.ERROR,
                table=target.source,
                reason=describe(error),
            )
            return TableVerdict(target.source, "failed", error=as_tidegate_error(error))
        verdict = replace(verdict, seconds=round(time.monotonic() - began, 3))
        rows = verdict.source_rows or 0
        self.progress(f"{task.purpose} {target.source}", rows, rows, "rows")
        log.event(
            _LOG,
            "compared",
            table=target.source,
            status=verdict.status,
            coverage=None if verdict.coverage is None else f"{verdict.coverage} %",
            seconds=verdict.seconds,
        )
        return verdict

    def _compare(self, cut: ExactCut, target: LakeTarget, task: Task, lease: Lease) -> TableVerdict:
        table = self.catalog.load_table(target.identifier)
        columns = ComparedColumns.of(cut, target, table, self.history)
        verdict = self._compared(cut, target, task, lease, table, columns.schema)
        told = {} if verdict.source_rows is None else columns.not_compared
        return replace(verdict, not_compared=told)

    def _compared(
        self,
        cut: ExactCut,
        target: LakeTarget,
        task: Task,
        lease: Lease,
        table: Table,
        schema: TableSchema,
    ) -> TableVerdict:
        if not schema.key_columns and not target.forgets:
            reason = (
                "its rows are changes, and without a key none of them is known to be a row's last"
            )
            return TableVerdict(target.source, "skipped", reason=reason)
        missing = _missing_columns(table, [column.name for column in schema.columns])
        if missing:
            reason = f"the lake has no column {', '.join(missing)} yet; its next change brings it"
            return TableVerdict(target.source, "skipped", reason=reason)
        if not schema.key_columns:
            return self._without_key(cut, target, task, table, schema)
        selection = task.select(target, table, cut, schema)
        kept = self._kept_back(target, table, schema, selection)
        if kept is not None:
            selection = kept.without(selection)
        else:
            continued = self._continued(cut, target, task, table, schema)
            if continued is not None:
                return task.settle(target, cut.position, *continued)
        part = selection.part(cut, schema)
        sides = Sides.of(self.spark, cut, target, schema, self.platform.sweep, part)
        snapshot = commits.head_id(table) or 0
        found = _look(sides, selection, snapshot)
        cached = found
        try:
            verdict = TableVerdict.of(target.source, found, snapshot)
            if not found.equal and task.repair:
                repair = Repair(sides, table, self.run)
                found, verdict = _mended(repair, selection, found, verdict, lease)
            if kept is not None:
                found, verdict = kept.noted(found, verdict)
            return task.settle(target, cut.position, found, verdict)
        finally:
            cached.release()
            selection.release()

    def _without_key(
        self, cut: ExactCut, target: LakeTarget, task: Task, table: Table, schema: TableSchema
    ) -> TableVerdict:
        if task.by_key:
            return TableVerdict(target.source, "failed", error=keyless(target))
        task.select(target, table, cut, schema)
        sides = Sides.of(self.spark, cut, target, schema, self.platform.sweep)
        snapshot = commits.head_id(table) or 0
        found = compare_rows(sides, snapshot)
        verdict = TableVerdict.of(target.source, found, snapshot)
        if not found.equal:
            error = keyless(target) if task.repair else None
            verdict = replace(verdict, error=error, reason=UNNAMED)
        return task.settle(target, cut.position, found, verdict)

    def _continued(
        self,
        cut: ExactCut,
        target: LakeTarget,
        task: Task,
        table: Table,
        schema: TableSchema,
    ) -> tuple[Comparison, TableVerdict] | None:
        """The verdict that the table is still equal; None: every row must be looked at."""
        base = task.base(target) if task.base is not None else None
        if base is None or not isinstance(cut, MarkingCut):
            return None
        settings = self.platform.sweep
        known = Continuing(self.spark, cut, target, schema, settings, table, base).equal()
        if known is None:
            return None
        found = Comparison(known.rows, known.rows)
        verdict = TableVerdict.of(target.source, found, commits.head_id(table) or 0)
        reason = (
            f"{known.compared} rows changed since all were found equal"
            f" (snapshot {base.snapshot_id}), and were compared"
        )
        return found, replace(verdict, reason=reason)

    def _kept_back(
        self, target: LakeTarget, table: Table, schema: TableSchema, selection: Selection
    ) -> KeptBack | None:
        letters = self.letters.waiting(target.source, table)
        return KeptBack.of(self.spark, letters, schema, selection) if letters else None


def _look(sides: Sides, selection: Selection, snapshot: int) -> Comparison:
    """Sums first; only where they do not settle it are the source's rows read."""
    lake = selection.lake(sides, snapshot)
    rows = equal_rows(sides, selection.predicate(sides), lake)
    if rows is not None:
        return Comparison(rows, rows)
    return compare(
        lambda: selection.source(sides),
        lake,
        sides.schema,
        selection.bucket(sides.schema),
        limit=FIRST_DIFFERENCES,
    )


def _mended(
    repair: Repair, selection: Selection, found: Comparison, verdict: TableVerdict, lease: Lease
) -> tuple[Comparison, TableVerdict]:
    """What differs after the repair; as before it, with the reason, where it could not be done."""
    try:
        left, snapshot = mend(repair, selection, found, lease.check)
    except TidegateError as error:
        return found, replace(verdict, error=error)
    return left, replace(
        verdict,
        status="repaired",
        repaired=found.count,
        lake_rows=left.lake_rows,
        snapshot_id=snapshot,
    )


def _missing_columns(table: Table, columns: Sequence[str]) -> list[str]:
    known = {field.name for field in table.schema().fields}
    return [name for name in columns if name not in known]
