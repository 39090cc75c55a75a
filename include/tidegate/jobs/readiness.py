"""Tables for which the source is not ready: each is held with its reason, the others go on (I8).

Such a table is neither published (its publication could refuse the application's own UPDATE and
DELETE, I11) nor swept by ``run``. It stays held, so nobody takes it for current, until a deploy
finds it ready: then it joins the publication, and waits for its sweep if it has rows in the lake.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from pyiceberg.catalog import Catalog

from tidegate.config.pipeline import PipelineConfig
from tidegate.connectors.protocol import Problem, Source, ValidationReport
from tidegate.connectors.source_status import SLOT_LOST
from tidegate.envelope.position import Position
from tidegate.errors import ConfigError, HeldError, TidegateError
from tidegate.lake import positions
from tidegate.lake.catalog import load
from tidegate.lake.facts_ledger import FactsLedger
from tidegate.lake.gate import Gate, GateState, TableGate

ACTOR: Final = "deploy"
NOT_READY: Final = "the source is not ready for it"
READY_AGAIN: Final = "the source is ready for it again"
"""How reasons of gates that deploy holds begin."""
_MEND: Final = "mend that, then deploy again"
_NEEDS_SWEEP: Final = (
    f"{READY_AGAIN}, and changes made meanwhile were not captured → sweep the table, which opens it"
)


@dataclass(frozen=True, slots=True)
class HeldTable:
    """A table that deploy left out, and why: one finding a line."""

    table: str
    reasons: tuple[str, ...]

    @property
    def reason(self) -> str:
        """What its gate says."""
        return f"{NOT_READY}: {'; '.join(self.reasons)} → {_MEND}"

    @property
    def error(self) -> HeldError:
        """Why nothing else can be done with it."""
        return HeldError(
            "source.table_not_ready",
            f"the source is not ready for {self.table}: {'; '.join(self.reasons)}",
            hint=_MEND,
        )


@dataclass(frozen=True, slots=True)
class Readiness:
    """What a look at the source says of a pipeline's tables."""

    ready: tuple[str, ...]
    held: tuple[HeldTable, ...]
    warnings: tuple[str, ...]


def readiness(
    source: Source, catalog: Catalog, pipeline: PipelineConfig, *, new_epoch: bool
) -> Readiness:
    """Ask the source. What concerns no single table, or every one, is an error with each finding
    on a line of its own; a new epoch mends a lost slot."""
    report = source.validate()
    found = _by_table(report, pipeline, catalog)
    listed = set(pipeline.source.tables)
    wide = [p for p in report.errors if not listed.intersection(p.concerns)]
    wide = [p for p in wide if not (new_epoch and p.code.endswith(f".{SLOT_LOST}"))]
    ready = tuple(table for table in pipeline.source.tables if table not in found)
    if wide or not ready:
        problems = dict.fromkeys([*wide, *(one for own in found.values() for one in own)])
        raise ConfigError(
            "deploy.not_ready",
            "the source is not ready:"
            + "".join("\n  " + str(problem).replace("\n", "\n    ") for problem in problems),
            hint="run the SQL given with each problem, then deploy again",
        )
    held = tuple(
        HeldTable(table, tuple(_said(problem) for problem in own)) for table, own in found.items()
    )
    heeded = [p for p in report.errors if set(ready).intersection(p.concerns)]
    warnings = tuple(str(problem) for problem in (*heeded, *report.warnings))
    return Readiness(ready, held, warnings)


def unfit(source: Source, tables: Iterable[str]) -> tuple[HeldTable, ...]:
    """Which of ``tables`` cannot be read in full, each with every reason there is."""
    errors = source.validate().errors
    wanted = {table: [p for p in errors if table in p.concerns] for table in tables}
    return tuple(
        HeldTable(table, tuple(_said(problem) for problem in own))
        for table, own in wanted.items()
        if own
    )


def only(pipeline: PipelineConfig, tables: tuple[str, ...]) -> PipelineConfig:
    """The pipeline as if it listed these tables alone."""
    source = pipeline.source.model_copy(update={"tables": tables})
    return pipeline.model_copy(update={"source": source})


def swept(catalog: Catalog, pipeline: PipelineConfig, table: str) -> bool:
    """Whether the table has rows in the lake that only its changes keep right."""
    known = next(target for target in pipeline.targets if target.source == table)
    lake = load(catalog, known.identifier)
    if lake is None:
        return False
    try:
        return positions.applied(lake) is not None
    except TidegateError:  # it lost its place: it has rows all the same, and an apply says why
        return True


def hold(gate: Gate, held: Iterable[HeldTable]) -> tuple[str, ...]:
    """Close their gates, before anything changes at the source. Who held a table already keeps it
    held with his own reason; a sweep under way meets the trouble itself."""
    actions = []
    states = gate.states()
    for table in held:
        now = states[table.table]
        mine = now.state is GateState.OPEN or (_ours(now) and now.reason != table.reason)
        if mine:
            gate.hold([table.table], table.reason, ACTOR)
            actions.append(f"{table.table} held: {NOT_READY}")
    return tuple(actions)


def release(
    gate: Gate, catalog: Catalog, pipeline: PipelineConfig, ready: tuple[str, ...]
) -> tuple[str, ...]:
    """What deploy held before and is ready now, after it was published: open for its first sweep;
    where the lake has rows already, held on until they are swept."""
    actions = []
    for table, now in gate.states(ready).items():
        if not _ours(now) or (now.reason or "").startswith(READY_AGAIN):
            continue
        if swept(catalog, pipeline, table):
            gate.hold([table], _NEEDS_SWEEP, ACTOR)
            actions.append(f"{table} is ready again: sweep it")
        else:
            gate.open([table], READY_AGAIN, ACTOR)
            actions.append(f"gate of {table} opened: {READY_AGAIN}")
    return tuple(actions)


def note_gaps(source: Source, facts: FactsLedger, pipeline: PipelineConfig, head: Position) -> None:
    """Before tables join (again): the log lacks what was done to them until then. An apply that
    comes to this place holds them until they are swept, whoever opens their gates."""
    for table in pipeline.source.table_ids:
        if facts.all(str(table)) and not source.facts(table, None).sent:
            facts.left_out(str(table), head)


def _by_table(
    report: ValidationReport, pipeline: PipelineConfig, catalog: Catalog
) -> dict[str, list[Problem]]:
    """Errors by the table they keep back. A table that is swept already goes on while it cannot be
    read in full."""
    found: dict[str, list[Problem]] = {}
    listed = set(pipeline.source.tables)
    for problem in report.errors:
        for table in listed.intersection(problem.concerns):
            if not (problem.only_reading and swept(catalog, pipeline, table)):
                found.setdefault(table, []).append(problem)
    return {table: found[table] for table in pipeline.source.tables if table in found}


def _line(problem: Problem) -> str:
    """One finding, on a line of its own; SQL of several lines below it."""
    return "\n  " + str(problem).replace("\n", "\n    ")


def _said(problem: Problem) -> str:
    """The finding without its table's name."""
    fix = f" → {problem.fix_sql}" if problem.fix_sql else ""
    return f"{problem.message} [{problem.code}]{fix}"


def _ours(gate: TableGate) -> bool:
    reason = gate.reason or ""
    held = gate.state is GateState.HELD and gate.actor == ACTOR
    return held and reason.startswith((NOT_READY, READY_AGAIN))
