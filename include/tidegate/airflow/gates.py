"""Gate states as tasks and triggers see them. PyIceberg is imported on first use, not at parse."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tidegate.config.loader import load_pipeline, load_platform


@dataclass(frozen=True, slots=True)
class GateView:
    """One table's gate, in words for a log."""

    open: bool
    text: str


def read_gates(
    pipeline_file: str, platform_file: str | None, tables: Sequence[str] | None = None
) -> dict[str, GateView]:
    """Gates by source table. Reads the catalog: for workers and the triggerer's threads only."""
    from tidegate.lake.catalog import open_catalog
    from tidegate.lake.gate import Gate, GateState

    pipeline = load_pipeline(pipeline_file, resolve_secrets=False)
    platform = load_platform(platform_file)
    gate = Gate(open_catalog(platform, pipeline), pipeline, platform.gate)
    wanted = list(pipeline.source.tables if tables is None else tables)
    states = gate.states(wanted)
    views = {}
    for table in wanted:
        state = states[table]
        why = ", ".join(
            part
            for part in (
                f"run {state.run}" if state.run else "",
                f"since {state.since}" if state.since else "",
                f"by {state.actor}" if state.actor else "",
                state.reason or "",
            )
            if part
        )
        text = f"{table}: {state.state.value}" + (f" ({why})" if why else "")
        views[table] = GateView(state.state is GateState.OPEN, text)
    return views
