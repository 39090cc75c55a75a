"""Gate states as tasks and triggers see them. PyIceberg is imported on first use, not at parse."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tidegate.config.loader import load_pipeline, load_platform

if TYPE_CHECKING:
    from tidegate.lake.gate import TableGate


@dataclass(frozen=True, slots=True)
class GateView:
    """One table's gate, in words for a log."""

    open: bool
    text: str
    stopped: bool = False
    """The whole pipeline is: waiting for this gate is of no use."""


def read_gates(
    pipeline_file: str, platform_file: str | None, tables: Sequence[str] | None = None
) -> dict[str, GateView]:
    """Gates by source table. Reads the catalog: for workers and the triggerer's threads only."""
    from tidegate.lake.catalog import open_catalog
    from tidegate.lake.gate import Gate, GateState
    from tidegate.lake.pauses import Pauses, stopped_error

    pipeline = load_pipeline(pipeline_file, resolve_secrets=False)
    platform = load_platform(platform_file)
    wanted = list(pipeline.source.tables if tables is None else tables)
    with closing(open_catalog(platform, pipeline)) as catalog:
        pause = Pauses(catalog, pipeline).stopped()
        states = Gate(catalog, pipeline, platform.gate).states(wanted)
    if pause is not None:
        text = str(stopped_error(pipeline.pipeline_id, pause))
        return {table: GateView(False, f"{table}: {text}", stopped=True) for table in wanted}
    return {
        table: GateView(state.state is GateState.OPEN, _words(table, state))
        for table, state in states.items()
    }


def _words(table: str, gate: TableGate) -> str:
    """``public.orders: sweeping (run r1, since 12:00:00, by ann, nightly)``"""
    facts = (
        gate.run and f"run {gate.run}",
        gate.since and f"since {gate.since:%Y-%m-%d %H:%M:%S}",
        gate.actor and f"by {gate.actor}",
        gate.reason,
        gate.failed and f"failed at {gate.failed.at:%H:%M:%S}: {gate.failed.reason}",
        gate.before and f"held before: {gate.before.reason}",
    )
    why = ", ".join(fact for fact in facts if fact)
    return f"{table}: {gate.state.value}" + (f" ({why})" if why else "")
