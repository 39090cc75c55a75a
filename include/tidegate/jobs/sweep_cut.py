"""One cut for all tables of a sweep; where some keep it from being made, for those that do not."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack

from tidegate.config.pipeline import LakeTarget
from tidegate.connectors.cut import Cut
from tidegate.connectors.protocol import Source
from tidegate.envelope.position import Position
from tidegate.errors import Decision, TidegateError
from tidegate.jobs.readiness import HeldTable, hold, unfit
from tidegate.jobs.sweep_plan import SweepRun, cut_for
from tidegate.lake.gate import Gate


def cut_of(
    stack: ExitStack,
    source: Source,
    gate: Gate,
    head: Position,
    runs: list[SweepRun],
    *,
    whole: bool,
) -> tuple[Cut, list[SweepRun], tuple[HeldTable, ...]]:
    """The cut, open as long as ``stack``; the runs without tables that the source is not ready
    for; those tables, held from here on. Nothing is asked of the source while all goes well."""
    try:
        cut = stack.enter_context(cut_for(source, _targets(runs), head, whole=whole))
    except TidegateError as error:
        names = [name for group in runs for name in group.names]
        unready = () if error.decision is Decision.RETRY else unfit(source, names)
        if not 0 < len(unready) < len(names):
            raise
        fit = _without(runs, {held.table for held in unready})
        cut = stack.enter_context(cut_for(source, _targets(fit), head, whole=whole))
        for held in unready:
            run = next(group.run for group in runs if held.table in group.names)
            gate.end_sweep(run, [held.table], error.code)
        hold(gate, unready)
        return cut, fit, unready
    return cut, runs, ()


def _targets(runs: Sequence[SweepRun]) -> tuple[LakeTarget, ...]:
    return tuple(target for group in runs for target in group.targets)


def _without(runs: Sequence[SweepRun], tables: set[str]) -> list[SweepRun]:
    kept = (
        SweepRun(group.run, tuple(t for t in group.targets if t.source not in tables))
        for group in runs
    )
    return [group for group in kept if group.targets]
