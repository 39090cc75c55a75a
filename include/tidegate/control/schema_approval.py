"""Approving a schema change that holds a table (I10).

The approval is durable first, then the gate opens; killed in between, the same call again opens it
(I3). The lake's columns change when the rows of that schema are applied, under apply's lease (I4):
rows before the change keep the old meaning. Two kinds are the exception, and the gate stays closed
until a sweep has written every row: another key, which does not tell the lake's rows apart, and
columns that took each other's names, which say nothing of the lake's columns.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from tidegate import faults
from tidegate.config.pipeline import PipelineConfig
from tidegate.config.platform import PlatformConfig
from tidegate.control.tables import one_table
from tidegate.errors import ConfigError
from tidegate.lake.approvals import Approval
from tidegate.lake.audit_trail import Action, AuditTrail
from tidegate.lake.catalog import open_catalog
from tidegate.lake.evolution import SchemaConflict
from tidegate.lake.gate import Gate, GateState
from tidegate.lake.lineage import Version
from tidegate.lake.schema_ground import SchemaGround
from tidegate.lake.schema_history import SchemaHistory
from tidegate.lake.schema_hold import HOLD_MARK, open_others
from tidegate.names import TableId
from tidegate.schema.contract import holds_documents
from tidegate.schema.types import Kind, parse_type

_SWEEP_REASON: Final = (
    "the change of {0} was approved: the lake follows with its next sweep → `tidegate sweep"
    " PIPELINE --table {0}` writes every row anew and opens the gate"
)


@dataclass(frozen=True, slots=True)
class Answer:
    """How a change is to be taken."""

    renames: Mapping[str, str] = field(default_factory=dict)  # old → new
    casts: Mapping[str, str] = field(default_factory=dict)  # column → lake type
    reason: str = ""

    @classmethod
    def written(
        cls, renames: Sequence[str] | None, casts: Sequence[str] | None, reason: str
    ) -> Answer:
        """From texts as people write them: ``old=new``, ``column=type``."""
        return cls(_pairs("--rename", renames or ()), _pairs("--cast", casts or ()), reason)


@dataclass(frozen=True, slots=True)
class LeftHeld:
    """A change that someone looked at and leaves held."""

    table: str
    schema_id: str
    from_position: str


@dataclass(frozen=True, slots=True)
class Approved:
    """What an approval did, or (``dry_run``) would do."""

    table: str
    schema_id: str | None  # None: everything was approved before, only the gate was left
    from_position: str | None
    dry_run: bool
    statements: tuple[str, ...] = ()
    opened: tuple[str, ...] = ()
    sweep: bool = False  # the lake follows with the table's next sweep, which opens its gate
    next_held: str | None = None  # another change, which waits behind this one


def approve(
    pipeline: PipelineConfig,
    platform: PlatformConfig,
    table: str | None,
    answer: Answer,
    *,
    actor: str,
    dry_run: bool = False,
    shown: str | None = None,
) -> Approved:
    """Let the next held schema of a table through; only if it is the one that was ``shown``."""
    name = one_table(pipeline, table)
    catalog = open_catalog(platform, pipeline)
    history = SchemaHistory(catalog, pipeline)
    gate = Gate(catalog, pipeline, platform.gate)
    ground = SchemaGround.of(catalog, history, pipeline.target(TableId.parse(name)))
    conflict = None if ground is None else ground.conflict()
    if ground is None or conflict is None:
        opened = _only_open(gate, pipeline, name, actor, dry_run)
        return Approved(name, None, None, dry_run, opened=opened)
    version = ground.lineage.versions[conflict.index]
    _check_shown(name, version, shown)
    approval = Approval(
        name, version.schema_id, version.since, actor, answer.reason, answer.renames, answer.casts
    )
    _check(ground, conflict.index, answer)
    after = ground.approved(conflict.index, approval)
    following = after.conflict()
    sweep = following is not None and following.index == conflict.index
    if sweep and not after.swept_over(conflict.index):
        raise _refused(name, following or conflict)
    opened = ()
    if not dry_run:
        trail = AuditTrail(catalog, pipeline)
        told = {"schema_id": version.schema_id, "reason": answer.reason or None}
        with trail.action(Action.APPROVE, [name], **told):
            history.approvals.add(approval)
            faults.point("schema.after_approval")
            opened = _open(gate, pipeline, name, actor, others_only=sweep)
            if sweep:
                gate.hold([name], _SWEEP_REASON.format(name), actor)
    return Approved(
        table=name,
        schema_id=version.schema_id,
        from_position=str(version.since),
        dry_run=dry_run,
        statements=() if sweep else after.statements(conflict.index),
        opened=opened,
        sweep=sweep,
        next_held=None if sweep or following is None else "; ".join(following.reasons),
    )


def leave_held(
    pipeline: PipelineConfig,
    platform: PlatformConfig,
    table: str | None,
    *,
    reason: str,
    shown: str | None = None,
) -> LeftHeld:
    """Note that someone leaves a table's next held schema as it is: nobody is asked again."""
    name = one_table(pipeline, table)
    catalog = open_catalog(platform, pipeline)
    history = SchemaHistory(catalog, pipeline)
    ground = SchemaGround.of(catalog, history, pipeline.target(TableId.parse(name)))
    conflict = None if ground is None else ground.conflict()
    if ground is None or conflict is None:
        raise _nothing_held(name)
    version = ground.lineage.versions[conflict.index]
    _check_shown(name, version, shown)
    told = {"schema_id": version.schema_id, "position": str(version.since), "reason": reason}
    AuditTrail(catalog, pipeline).note(Action.LEAVE, [name], details=told)
    return LeftHeld(name, version.schema_id, str(version.since))


def _check_shown(name: str, version: Version, shown: str | None) -> None:
    """A word about one change is none about another that took its place meanwhile."""
    if shown is not None and version.schema_id != shown:
        raise ConfigError(
            "schema.another_change",
            f"{name}: schema {shown} is not what holds it any more; {version.schema_id} is",
            hint="look at the new difference (`tidegate schema PIPELINE --held`) and answer that",
        )


def _pairs(option: str, texts: Sequence[str]) -> dict[str, str]:
    found = {}
    for text in texts:
        left, mark, right = (part.strip() for part in text.partition("="))
        if not (left and mark and right):
            raise _wrong(f"{option} {text}: two names with = between them are needed")
        found[left] = right
    return found


def _check(ground: SchemaGround, index: int, answer: Answer) -> None:
    """Names must be those of the lake and of the schema that is approved."""
    schema = ground.lineage.schema(index)
    before = {c.name for c in ground.lineage.schema(index - 1).columns} if index else set()
    lake = {field.name: str(field.field_type) for field in ground.existing.fields}
    crossed = ground.lineage.step(index).crossed if index else {}
    for old, new in answer.renames.items():
        if crossed.get(new) == old:
            continue  # as the source's own numbers have it; a sweep settles it
        if old not in before | set(lake) or schema.column(old) is not None:
            raise _wrong(f"--rename {old}={new}: {old} is no lake column that left the source")
        if schema.column(new) is None or new in lake:
            raise _wrong(f"--rename {old}={new}: {new} is no column that is new to the lake")
    for name, text in answer.casts.items():
        type_, column = parse_type(text), schema.column(name)
        if type_ is None:
            raise _wrong(f"--cast {name}={text}: {text} is no type of the lake")
        if column is None or name not in lake:
            raise _wrong(f"--cast {name}={text}: lake and source do not both have {name}")
        if type_.kind is Kind.VARIANT and not holds_documents(column):
            raise _wrong(f"--cast {name}={text}: only json and jsonb can be variant")


def _wrong(message: str) -> ConfigError:
    return ConfigError(
        "schema.wrong_answer",
        message,
        hint="`tidegate schema PIPELINE --held` shows lake and source side by side",
    )


def _refused(name: str, conflict: SchemaConflict) -> ConfigError:
    return ConfigError(
        "schema.cannot_approve",
        f"{name}: {'; '.join(conflict.reasons)}",
        hint="no approval makes the lake's table hold this: --cast to the lake's own type, or give"
        " the table a new lake table (table_name) and sweep it",
    )


def _only_open(
    gate: Gate, pipeline: PipelineConfig, name: str, actor: str, dry_run: bool
) -> tuple[str, ...]:
    known = gate.states([name])[name]
    if known.state is not GateState.HELD or not (known.reason or "").startswith(HOLD_MARK):
        raise _nothing_held(name)
    return () if dry_run else _open(gate, pipeline, name, actor)


def _nothing_held(name: str) -> ConfigError:
    return ConfigError(
        "schema.nothing_held",
        f"no schema change holds {name}",
        hint="`tidegate gate show` says what does, if anything",
    )


def _open(
    gate: Gate, pipeline: PipelineConfig, name: str, actor: str, *, others_only: bool = False
) -> tuple[str, ...]:
    """Open what the change closed, and nothing that is closed for another reason."""
    opened = set(open_others(gate, pipeline, name, actor))
    known = gate.states([name])[name]
    own = known.state is GateState.HELD and (known.reason or "").startswith(HOLD_MARK)
    if own and not others_only:
        gate.open([name], f"the schema of {name} was approved", actor)
        opened.add(name)
    return tuple(table for table in pipeline.source.tables if table in opened)
