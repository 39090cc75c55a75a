"""Held schema changes as questions to people: what a form shows, and what an answer does.

PyIceberg is imported on first use, not at parse.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Final

from tidegate.config.loader import load_pipeline, load_platform
from tidegate.observability.caller import LONGEST, Caller, Surface, acting_as

if TYPE_CHECKING:
    from tidegate.control.schemas import HeldSchema

APPROVE: Final = "Approve"
LEAVE: Final = "Leave held"


@dataclass(frozen=True, slots=True)
class SchemaAnswer:
    """What someone chose; ``by`` is None where the time ran out."""

    table: str
    schema_id: str
    chosen: str
    by: str | None
    renames: list[str]
    casts: list[str]
    reason: str

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def questions(pipeline_file: str, platform_file: str | None) -> list[dict[str, str]]:
    """One for each table whose held change an approval lets through and nobody left held."""
    from tidegate.control.schemas import held

    pipeline = load_pipeline(pipeline_file, resolve_secrets=False)
    platform = load_platform(platform_file)
    return [
        _question(pipeline.pipeline_id, one)
        for one in held(pipeline, platform)
        if one.approvable and one.left_by is None
    ]


def give(pipeline_file: str, platform_file: str | None, answer: SchemaAnswer) -> str:
    """Do what was chosen, as whoever chose it (I10); what was done, in words."""
    from tidegate.control.schema_approval import Answer, approve, leave_held

    pipeline = load_pipeline(pipeline_file, resolve_secrets=False)
    platform = load_platform(platform_file)
    who = Caller((answer.by or "nobody")[:LONGEST], Surface.AIRFLOW)
    with acting_as(who):
        if answer.chosen != APPROVE:
            leave_held(
                pipeline, platform, answer.table, reason=answer.reason, shown=answer.schema_id
            )
            return f"{answer.table}: {who} leaves schema {answer.schema_id} held"
        done = approve(
            pipeline,
            platform,
            answer.table,
            Answer.written(answer.renames, answer.casts, answer.reason),
            actor=str(who),
            shown=answer.schema_id,
        )
    opened = f", opened {', '.join(done.opened)}" if done.opened else ""
    if done.sweep:
        opened += "; the lake follows with the table's next sweep, which opens its gate"
    behind = f"; behind it waits: {done.next_held}" if done.next_held else ""
    return f"{answer.table}: {who} approved schema {answer.schema_id}{opened}{behind}"


def _question(pipeline_id: str, one: HeldSchema) -> dict[str, str]:
    """Names and types of columns; never a row's value (I9)."""
    return {
        "table": one.table,
        "schema_id": one.schema_id,
        "subject": f"{pipeline_id}: may the schema change of {one.table} go through?",
        "body": "\n".join(_body(one)),
    }


def _body(one: HeldSchema) -> Iterable[str]:
    yield f"`{one.table}`, gate {one.gate}: schema `{one.schema_id}` from `{one.first_used}` on."
    yield ""
    yield from (f"- {_safe(reason)}" for reason in one.reasons)
    if one.registry:
        yield f"- the schema registry says: {_safe(one.registry)}"
    yield ""
    yield "| column | lake | source now |"
    yield "|---|---|---|"
    yield from (
        f"| {_safe(side.column)} | {_safe(side.lake)} | {_safe(side.source)} |"
        for side in one.sides
    )
    yield ""
    yield _SWEEP if one.sweep else _APPROVE
    yield ""
    yield (
        "**Leave held**: nothing is applied and nothing is lost; nobody is asked about this change"
        " again."
    )


_APPROVE: Final = (
    "**Approve**: changes flow again from that position on. A column of another type begins anew"
    " and the old one is kept under another name; `cast` keeps the lake's column instead, `rename`"
    " says that two columns are one."
)
_SWEEP: Final = (
    "**Approve**: the lake follows with the table's next sweep, which opens its gate; until then"
    " nothing is applied, because its rows cannot be told apart by the new key."
)


def _safe(text: str) -> str:
    """Names come from the source: none of them draws a table or a link."""
    for mark in "\\`*_[]<>|":
        text = text.replace(mark, f"\\{mark}")
    return " ".join(text.split())


def read_answer(value: Mapping[str, Any]) -> SchemaAnswer:
    """The inverse of :meth:`SchemaAnswer.to_dict`, from XCom."""
    return SchemaAnswer(**{name: value[name] for name in SchemaAnswer.__dataclass_fields__})
