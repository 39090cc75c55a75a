"""What there is to apply: where tables stand, and what the log holds for them.

Reads only, so it needs no lease; what it found is checked again under the lease.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from pyiceberg.catalog import Catalog

from tidegate.config.pipeline import LakeTarget, PipelineConfig
from tidegate.config.platform import PlatformConfig
from tidegate.envelope.position import Position
from tidegate.errors import FatalError, TidegateError
from tidegate.jobs.apply_result import Status, TableResult
from tidegate.lake import positions
from tidegate.lake.catalog import load
from tidegate.lake.change_log import ChangeLog, LogHead
from tidegate.lake.facts_ledger import FactsLedger
from tidegate.lake.gate import Gate, GateState
from tidegate.lake.unsent import unsent

if TYPE_CHECKING:
    from tidegate.spark.session import SparkSession
    from tidegate.spark.survey import LogPin, Survey

STALE_SHARE: Final = 0.25
"""A quiet table's position is moved once it is this share of the log's retention old."""


@dataclass(frozen=True, slots=True)
class Standing:
    """A lake table right now."""

    target: LakeTarget
    position: Position
    snapshot_id: int  # main
    stamped_at: datetime


@dataclass(frozen=True, slots=True)
class Task:
    """A table that has something to be written."""

    standing: Standing
    until: Position
    found: Survey


@dataclass(frozen=True, slots=True)
class Plan:
    """All tables of a run: some to be written, the rest settled already."""

    head: LogHead
    pin: LogPin
    tasks: tuple[Task, ...]
    settled: tuple[TableResult, ...]


class Planner:
    """Looks at gate, tables and log."""

    def __init__(
        self,
        spark: SparkSession,
        catalog: Catalog,
        pipeline: PipelineConfig,
        platform: PlatformConfig,
        gate: Gate,
    ) -> None:
        self._spark = spark
        self._catalog = catalog
        self._pipeline = pipeline
        self._platform = platform
        self._gate = gate
        self._log = ChangeLog(catalog, pipeline)
        self._facts = FactsLedger(catalog, pipeline)

    def plan(
        self, targets: Iterable[LakeTarget], until: Position | None, *, gated: bool, stamp: bool
    ) -> Plan:
        """``gated``: only tables whose gate is open (a caller with a lease has looked already).
        ``stamp``: move the positions of all quiet tables, however young they are."""
        from tidegate.spark.survey import LogPin, LogRange, survey

        head = self._log.head()
        pin = LogPin(self._log.identifier, head.snapshot_id)
        settled: list[TableResult] = []
        behind: list[tuple[Standing, Position]] = []
        for target in self._open(list(targets), settled) if gated else targets:
            self._look(target, head, until, settled, behind)
        found = survey(
            self._spark,
            pin,
            {
                standing.target.source: LogRange(standing.position, goal)
                for standing, goal in behind
            },
        )
        return Plan(head, pin, *self._split(behind, found, settled, stamp))

    def _open(self, targets: list[LakeTarget], settled: list[TableResult]) -> list[LakeTarget]:
        states = self._gate.states([target.source for target in targets])
        passed = []
        for target in targets:
            gate = states[target.source]
            if gate.state is GateState.OPEN:
                passed.append(target)
                continue
            held = gate.state is GateState.HELD
            who = f" by {gate.run or gate.actor}" if gate.run or gate.actor else ""
            reason = f"{gate.state.value}{who}" + (f": {gate.reason}" if gate.reason else "")
            status = Status.HELD if held else Status.WAITING
            settled.append(TableResult(target.source, status, reason=reason))
        return passed

    def _look(
        self,
        target: LakeTarget,
        head: LogHead,
        until: Position | None,
        settled: list[TableResult],
        behind: list[tuple[Standing, Position]],
    ) -> None:
        try:
            standing = stand(self._catalog, target)
            if standing is None:
                reason = "no lake table yet: it needs its first sweep"
                settled.append(TableResult(target.source, Status.MISSING, reason=reason))
                return
            goal = _goal(standing, head, until)
        except TidegateError as error:
            settled.append(TableResult(target.source, Status.FAILED, error=error))
            return
        if goal <= standing.position:
            settled.append(_unchanged(standing, standing.position))
        else:
            behind.append((standing, goal))

    def _split(
        self,
        behind: list[tuple[Standing, Position]],
        found: dict[str, Survey],
        settled: list[TableResult],
        stamp: bool,
    ) -> tuple[tuple[Task, ...], tuple[TableResult, ...]]:
        from tidegate.spark.survey import NOTHING

        tasks = []
        for standing, goal in behind:
            rows = found.get(standing.target.source)
            # A run in which nothing happened anywhere commits nowhere, however old positions are.
            due = rows or stamp or (found and self._stale(standing))
            if due or self._unsent(standing, goal):
                tasks.append(Task(standing, goal, rows or NOTHING))
            else:
                settled.append(_unchanged(standing, goal))
        return tuple(tasks), tuple(settled)

    def _unsent(self, standing: Standing, goal: Position) -> bool:
        """Whether something changed that sent no rows, so that the table must be held."""
        looks = self._facts.all(standing.target.source)
        policy = standing.target.schema_changes
        return bool(looks) and bool(unsent(looks, standing.position, goal, policy))

    def _stale(self, standing: Standing) -> bool:
        age = (datetime.now(UTC) - standing.stamped_at).total_seconds()
        keep = self._platform.retention.change_log_seconds * STALE_SHARE
        return age > max(keep, self._platform.capture.idle_commit_seconds)


def stand(catalog: Catalog, target: LakeTarget) -> Standing | None:
    """Where the table is; None if it was never swept."""
    table = load(catalog, target.identifier)
    if table is None:
        return None
    state, current = positions.state(table), table.current_snapshot()
    if state is None or current is None:
        return None
    stamped = table.snapshot_by_id(state.snapshot_id)
    at = (stamped or current).timestamp_ms / 1000
    return Standing(target, state.position, current.snapshot_id, datetime.fromtimestamp(at, UTC))


def _goal(standing: Standing, head: LogHead, until: Position | None) -> Position:
    if standing.position.epoch != head.captured_through.epoch:
        raise FatalError(
            "apply.epoch_changed",
            f"{standing.target.source} stands in epoch {standing.position.epoch}, the change log"
            f" is in {head.captured_through.epoch}: what lies between was never captured",
            hint="the source was restored or its slot re-created: sweep the table",
        )
    return head.captured_through if until is None else min(until, head.captured_through)


def _unchanged(standing: Standing, reflects: Position) -> TableResult:
    return TableResult(
        standing.target.source,
        Status.UNCHANGED,
        from_position=standing.position,
        to_position=reflects,
        snapshot_id=standing.snapshot_id,
    )
