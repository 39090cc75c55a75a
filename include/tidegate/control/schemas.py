"""Schemas of the source as a pipeline has seen them: listed, shown, held (I10)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from tidegate.config.pipeline import LakeTarget, PipelineConfig
from tidegate.config.platform import PlatformConfig
from tidegate.control.registry import said_of
from tidegate.control.tables import known_tables, one_table
from tidegate.envelope.position import Position, read_position
from tidegate.errors import ConfigError
from tidegate.lake.approvals import Approval
from tidegate.lake.audit_trail import KEPT as _WHOLE_TRAIL
from tidegate.lake.audit_trail import Action, AuditTrail
from tidegate.lake.catalog import open_catalog
from tidegate.lake.gate import Gate
from tidegate.lake.lineage import Lineage, read_lineage
from tidegate.lake.schema_ground import SchemaGround
from tidegate.lake.schema_history import SchemaHistory
from tidegate.lake.schema_hold import SideBySide, side_by_side
from tidegate.names import TableId
from tidegate.schema.diff import diff


@dataclass(frozen=True, slots=True)
class SchemaRow:
    """One schema that a table had."""

    table: str
    number: int  # the first one is 1
    schema_id: str
    fingerprint: str
    first_used: str  # position
    recorded_at: datetime
    columns: int
    changes: tuple[str, ...]  # to the one before, in words
    kinds: tuple[str, ...]
    approved_by: str | None
    current: bool


@dataclass(frozen=True, slots=True)
class ColumnRow:
    name: str
    source_type: str
    lake_type: str
    nullable: bool
    key: int | None
    number: int | None  # the source's own


@dataclass(frozen=True, slots=True)
class ShownSchema:
    """One schema with its columns."""

    schema: SchemaRow
    columns: tuple[ColumnRow, ...]


@dataclass(frozen=True, slots=True)
class HeldSchema:
    """A schema that waits for someone's word."""

    table: str
    schema_id: str
    first_used: str
    reasons: tuple[str, ...]
    sides: tuple[SideBySide, ...]
    gate: str
    approvable: bool  # False: another write mode; only a new lake table helps
    sweep: bool = False  # an approval lets the next sweep in, not the next apply
    registry: str = ""  # the schema registry's opinion, where it gave one
    left_by: str | None = None  # who looked at it and leaves it held


def schemas(
    pipeline: PipelineConfig, platform: PlatformConfig, tables: Sequence[str] | None = None
) -> list[SchemaRow]:
    """Every schema ever seen, table by table, in log order."""
    history = SchemaHistory(open_catalog(platform, pipeline), pipeline)
    names = known_tables(pipeline, tables) or pipeline.source.tables
    return [row for name in names for row in _rows(history, pipeline.target(TableId.parse(name)))]


def schema(
    pipeline: PipelineConfig, platform: PlatformConfig, table: str | None, at: str | None = None
) -> ShownSchema:
    """The newest schema of a table, or the one in force at a position."""
    name = one_table(pipeline, table)
    history = SchemaHistory(open_catalog(platform, pipeline), pipeline)
    target = pipeline.target(TableId.parse(name))
    lineage = read_lineage(history, target)
    index: int | None = len(lineage.versions) - 1 if lineage.versions else None
    if at is not None and index is not None:
        index = lineage.index_at(_position(at, lineage))
    if index is None:
        raise ConfigError(
            "schema.none",
            f"no schema of {name} is known" + (f" at {at}" if at else ""),
            hint="one is recorded by the first sweep, or with the first change that is captured",
        )
    columns = tuple(
        ColumnRow(c.name, c.source_type, str(c.type), c.nullable, c.key, c.number)
        for c in lineage.versions[index].schema.columns
    )
    return ShownSchema(_rows(history, target)[index], columns)


def held(
    pipeline: PipelineConfig, platform: PlatformConfig, tables: Sequence[str] | None = None
) -> list[HeldSchema]:
    """Tables whose next schema the lake does not follow by itself."""
    catalog = open_catalog(platform, pipeline)
    history = SchemaHistory(catalog, pipeline)
    names = known_tables(pipeline, tables) or pipeline.source.tables
    states = Gate(catalog, pipeline, platform.gate).states(names)
    opinions, left = said_of(catalog, pipeline, platform), _left(AuditTrail(catalog, pipeline))
    found = []
    for name in names:
        ground = SchemaGround.of(catalog, history, pipeline.target(TableId.parse(name)))
        waiting = None if ground is None else _waiting(ground, states[name].state.value)
        if waiting is not None:
            said = opinions.get((name, waiting.schema_id), "")
            who = left.get((name, waiting.schema_id, waiting.first_used))
            found.append(replace(waiting, registry=said, left_by=who))
    return found


def _left(trail: AuditTrail) -> dict[tuple[str, str, str], str]:
    """Who leaves which change held."""
    return {
        (table, entry.details["schema_id"], entry.details["position"]): entry.actor
        for entry in trail.entries(limit=_WHOLE_TRAIL)
        if entry.action == Action.LEAVE
        for table in entry.tables
    }


def _waiting(ground: SchemaGround, gate: str) -> HeldSchema | None:
    conflict = ground.conflict()
    if conflict is None:
        return None
    version, source = ground.lineage.versions[conflict.index], ground.lineage.target.source
    trial = Approval(source, version.schema_id, version.since, "")
    approved = ground.approved(conflict.index, trial)
    again = approved.conflict()
    stays = again is not None and again.index == conflict.index
    sweep = stays and approved.swept_over(conflict.index)
    return HeldSchema(
        table=source,
        schema_id=version.schema_id,
        first_used=str(version.since),
        reasons=conflict.reasons,
        sides=side_by_side(ground.existing, ground.lineage, conflict.index),
        gate=gate,
        approvable=not stays or sweep,
        sweep=sweep,
    )


def _rows(history: SchemaHistory, target: LakeTarget) -> list[SchemaRow]:
    lineage = read_lineage(history, target)
    recorded = {(e.schema_id, e.at): e.recorded_at for e in history.all(target.table)}
    rows = []
    for index, version in enumerate(lineage.versions):
        approval = version.approval
        renames = None if approval is None else approval.renames
        before = lineage.versions[index - 1].schema if index else None
        told = () if before is None else diff(before, version.schema, renames)
        rows.append(
            SchemaRow(
                table=target.source,
                number=index + 1,
                schema_id=version.schema_id,
                fingerprint=version.schema.fingerprint,
                first_used=str(version.since),
                recorded_at=recorded[version.schema_id, version.since],
                columns=len(version.schema.columns),
                changes=tuple(str(change) for change in told),
                kinds=tuple(change.kind.value for change in told),
                approved_by=approval.actor if approval else None,
                current=index == len(lineage.versions) - 1,
            )
        )
    return rows


def _position(text: str, lineage: Lineage) -> Position:
    """A position as status prints it, or an LSN of the newest epoch."""
    return read_position(text, lineage.versions[-1].since.epoch)
