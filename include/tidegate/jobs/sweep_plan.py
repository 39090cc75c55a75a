"""Which tables a sweep takes, under which run, and what it would do."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

from tidegate.config.pipeline import LakeTarget, PipelineConfig
from tidegate.config.platform import PlatformConfig
from tidegate.connectors.cut import Cut
from tidegate.connectors.protocol import CutsBeside, Source
from tidegate.envelope.position import Position
from tidegate.errors import ConfigError, HeldError
from tidegate.lake.gate import Gate, GateState
from tidegate.names import TableId
from tidegate.schema.contract import contracted
from tidegate.spark.sweep_range import KeyRange


@dataclass(frozen=True, slots=True)
class SweepRun:
    """Tables that are swept under one run id: this call's own, or one that died."""

    run: str
    targets: tuple[LakeTarget, ...]

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(target.source for target in self.targets)


def check_tables(
    pipeline: PipelineConfig, tables: Sequence[str | TableId] | None
) -> tuple[LakeTarget, ...]:
    """The targets of ``tables``, in the pipeline's order; all of them by default."""
    if tables is None:
        return pipeline.targets
    wanted = {str(t if isinstance(t, TableId) else TableId.parse(t)) for t in tables}
    known = {target.source: target for target in pipeline.targets}
    unknown = sorted(wanted - known.keys())
    if unknown or not wanted:
        near = difflib.get_close_matches(unknown[0], known, n=1) if unknown else []
        guess = f"; did you mean {near[0]}?" if near else ""
        raise ConfigError(
            "config.unknown_table",
            f"pipeline {pipeline.pipeline_id} has no table {', '.join(unknown) or '–'}{guess}",
            hint=f"its tables are {', '.join(known)}",
        )
    return tuple(target for name, target in known.items() if name in wanted)


def check_range(where: str | None, targets: Sequence[LakeTarget]) -> KeyRange | None:
    """The key range, if one was asked for; it goes with exactly one table."""
    if where is None:
        return None
    if len(targets) != 1:
        raise ConfigError(
            "sweep.where",
            f"a key range was given for {len(targets)} tables",
            hint="name the one table it is for",
        )
    return KeyRange.parse(where)


def refuse_resume(runs: Sequence[SweepRun], run: str) -> None:
    """A range cannot go on from a sweep of the whole table."""
    other = [group for group in runs if group.run != run]
    if other:
        raise HeldError(
            "gate.sweeping",
            f"{', '.join(other[0].names)} is being swept by run {other[0].run}",
            hint="finish that sweep (sweep without a range), or abandon it",
        )


def group_runs(gate: Gate, targets: Sequence[LakeTarget], run: str) -> list[SweepRun]:
    """This call's tables by the run that sweeps them.

    A table that is ``sweeping`` already goes on under the run that closed its gate. Tables on
    which that run still has a lease come first: getting that lease proves that its process is
    gone, before anything of it is touched (I4).
    """
    states = gate.states([target.source for target in targets])
    groups: dict[str, list[LakeTarget]] = {}
    for target in targets:
        state = states[target.source]
        owner = state.run if state.state is GateState.SWEEPING and state.run else run
        groups.setdefault(owner, []).append(target)
    for own in groups.values():
        own.sort(key=lambda target: states[target.source].lease is None)
    return [SweepRun(owner, tuple(own)) for owner, own in groups.items()]


def cut_for(
    source: Source, targets: Sequence[LakeTarget], head: Position, *, whole: bool
) -> AbstractContextManager[Cut]:
    """A cut of the tables. It may be one beside transactions that run where its rows alone make
    the ``whole`` table anew: then the changes it lacks can be applied onto them."""
    ids = tuple(target.table for target in targets)
    if whole and isinstance(source, CutsBeside) and all(target.forgets for target in targets):
        return source.cut_beside(ids, head=head)
    return source.cut(ids, head=head)


def planned(
    source: Source, head: Position, targets: Sequence[LakeTarget], platform: PlatformConfig
) -> Iterator[dict[str, Any]]:
    """What a sweep of each table would read. Takes a cut for a moment, writes nothing."""
    with cut_for(source, targets, head, whole=True) as cut:
        for target in targets:
            schema = contracted(cut.schema(target.table), target)
            chunks = cut.chunks(target.table, schema, platform.sweep.chunk_rows)
            yield {
                "table": target.source,
                "status": "planned",
                "rows": sum(chunk.estimate for chunk in chunks),
                "chunks": len(chunks),
                "position": cut.position,
            }
