"""Whether readers and writers of two schemas understand each other, with reasons.

The modes mean what they mean in schema registries. BACKWARD: who reads by the new schema
understands rows written under the old one. FORWARD: who reads by the old schema understands rows
written under the new one. FULL: both. TRANSITIVE: against every schema before, not just the last.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tidegate.config.schema_changes import Compatibility
from tidegate.schema.diff import described
from tidegate.schema.table import Column, TableSchema
from tidegate.schema.types import is_wider


@dataclass(frozen=True, slots=True)
class Verdict:
    """``reasons`` is empty where the schemas are compatible."""

    mode: Compatibility
    reasons: tuple[str, ...] = ()

    @property
    def compatible(self) -> bool:
        return not self.reasons


def verdict(mode: Compatibility, past: Sequence[TableSchema], new: TableSchema) -> Verdict:
    """``new`` against the last of ``past`` (oldest first), or all of them if ``mode`` says so."""
    if mode is Compatibility.NONE or not past:
        return Verdict(mode)
    versions = past if mode.transitive else past[-1:]
    reasons: dict[str, None] = {}
    for old in versions:
        if mode.backward:
            reasons |= dict.fromkeys(_unreadable(reader=new, writer=old, who="new"))
        if mode.forward:
            reasons |= dict.fromkeys(_unreadable(reader=old, writer=new, who="old"))
    return Verdict(mode, tuple(reasons))


def _unreadable(*, reader: TableSchema, writer: TableSchema, who: str) -> Iterator[str]:
    """Why who reads by ``reader`` does not understand rows of ``writer``."""
    by = f"readers by the {who} schema"
    for column in reader.columns:
        written = writer.column(column.name)
        if written is None:
            if not column.nullable:
                other = "old" if who == "new" else "new"
                yield f"{by} need {column.name}, which {other} rows do not have"
            continue
        if not _reads(column, written):
            yield (
                f"{by} expect {column.name} to be {described(column)}, rows have"
                f" {described(written)}"
            )
        if written.nullable and not column.nullable:
            yield f"{by} expect {column.name} never to be null, rows may have nulls"
    if _key(reader) != _key(writer):
        yield f"the key is {_key(reader)} in one schema and {_key(writer)} in the other"


def _reads(reader: Column, writer: Column) -> bool:
    return reader.type == writer.type or is_wider(writer.type, reader.type)


def _key(schema: TableSchema) -> str:
    return "(" + ", ".join(sorted(column.name for column in schema.key_columns)) + ")"
