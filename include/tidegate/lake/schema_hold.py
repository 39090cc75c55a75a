"""What is said of a table that a schema change holds: why, and lake and source side by side."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from pyiceberg.schema import Schema

from tidegate.config.pipeline import PipelineConfig
from tidegate.config.platform import PlatformConfig
from tidegate.errors import HeldError
from tidegate.lake.evolution import SchemaConflict
from tidegate.lake.gate import Gate, GateState
from tidegate.lake.lineage import Lineage
from tidegate.names import CDC_PREFIX
from tidegate.schema.diff import described
from tidegate.schema.types import parse_type

HOLD_MARK: Final = "the source's schema changed"
"""How the reason of such a gate begins."""
STOP_MARK: Final = "stop_on_incompatible_schema"
CODES: Final = frozenset({"apply.schema_incompatible", "schema.incompatible"})
NEEDS_SWEEP: Final = "apply.needs_sweep"
_MISSING: Final = "–"


@dataclass(frozen=True, slots=True)
class SideBySide:
    """One column on both sides."""

    column: str
    lake: str
    source: str


def side_by_side(existing: Schema, lineage: Lineage, index: int) -> tuple[SideBySide, ...]:
    """The columns in which lake and source differ; first those that both have."""
    schema, keys = lineage.schema(index), existing.identifier_field_names()
    fields = {f.name: f for f in existing.fields if not f.name.startswith(CDC_PREFIX)}
    rows = []
    for column in schema.columns:
        field = fields.get(column.name)
        lake = _MISSING if field is None else str(field.field_type)
        keyed = column.key is not None
        if parse_type(lake) != column.type or (bool(keys) and (column.name in keys) is not keyed):
            key = ", key" if column.name in keys else ""
            rows.append(
                SideBySide(column.name, lake + key, described(column) + (", key" if keyed else ""))
            )
    rows += [
        SideBySide(name, str(field.field_type), _MISSING)
        for name, field in fields.items()
        if schema.column(name) is None
    ]
    return tuple(rows)


def drawn(rows: Sequence[SideBySide]) -> list[str]:
    """The same as lines of a table."""
    cells = [("column", "lake", "source now"), *((r.column, r.lake, r.source) for r in rows)]
    widths = [max(len(row[place]) for row in cells) for place in range(3)]
    return [
        " | ".join(text.ljust(widths[i]) for i, text in enumerate(row)).rstrip() for row in cells
    ]


def held_error(
    code: str, existing: Schema, lineage: Lineage, conflict: SchemaConflict
) -> HeldError:
    """The error that holds the table; its gate repeats it."""
    version, target = lineage.versions[conflict.index], lineage.target
    sides = drawn(side_by_side(existing, lineage, conflict.index))
    return HeldError(
        code,
        f"{HOLD_MARK}: {target.source} has schema {version.schema_id} from {version.since} on:"
        f" {'; '.join(conflict.reasons)}\n" + "\n".join(sides) + "\n",
        hint="nothing was applied and nothing is lost: `tidegate schema approve` lets it through"
        " (--rename and --cast say how); or change the source back and sweep, or give the table"
        " a new lake table (table_name) and sweep it",
    )


def needs_sweep(source: str, reasons: Sequence[str]) -> HeldError:
    """The error that holds a table until it is swept."""
    return HeldError(
        NEEDS_SWEEP,
        f"{source} changed without sending rows: {'; '.join(reasons)}",
        hint=f"nothing was applied and nothing is lost: sweep it (`tidegate sweep PIPELINE --table"
        f" {source}`); or let the lake's rows stay as they are (schema_changes: partitions,"
        " enum_rename, rewrite, recreate: ignore) and open the gate",
    )


def stops_together(pipeline: PipelineConfig, platform: PlatformConfig) -> bool:
    """``stop_on_incompatible_schema``: the pipeline's own word, else the platform's."""
    own = pipeline.stop_on_incompatible_schema
    return platform.stop_on_incompatible_schema if own is None else own


def hold_others(
    gate: Gate,
    pipeline: PipelineConfig,
    platform: PlatformConfig,
    source: str,
    code: str,
    actor: str,
) -> None:
    """With ``stop_on_incompatible_schema``, every open table stops with ``source``."""
    if code not in CODES or not stops_together(pipeline, platform):
        return
    states = gate.states(pipeline.source.tables)
    others = [
        name for name, known in states.items() if known.state is GateState.OPEN and name != source
    ]
    if others:
        gate.hold(others, stop_reason(source), actor)


def open_others(gate: Gate, pipeline: PipelineConfig, source: str, actor: str) -> tuple[str, ...]:
    """Open the tables that waited with ``source`` only.

    The gate's reason decides, not the key: whoever took the key out since still gets them open.
    """
    states = gate.states(pipeline.source.tables)
    others = tuple(
        name
        for name, known in states.items()
        if known.state is GateState.HELD and known.reason == stop_reason(source)
    )
    if others:
        gate.open(others, f"the schema of {source} was settled", actor)
    return others


def stop_reason(source: str) -> str:
    return f"{STOP_MARK}: the schema of {source} changed, and the whole pipeline waits"
