"""A source table's columns at one moment, identified by a fingerprint."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field
from typing import Any, Final

from tidegate.names import TableId
from tidegate.schema.types import Kind, LogicalType, Policy, TextRule

_ID_DIGITS: Final = 16


@dataclass(frozen=True, slots=True)
class Column:
    """One column: its source name and type, what the lake makes of it, and its place in the key."""

    name: str
    source_type: str  # as the source prints it, e.g. numeric(12,2)
    type: LogicalType
    rule: TextRule
    policy: Policy = Policy.CLAMP
    nullable: bool = True
    key: int | None = None  # 0-based place in the key, None if not part of it
    recast: bool = False  # the pipeline's file asks for another type (schema/contract.py)
    number: int | None = None
    """The source's own number of the column, which a rename keeps; None where it is not known."""
    taken: bool = True  # False: the lake leaves its values out (schema_changes: ignore)
    given: str | None = field(default=None, repr=False)
    """Of a column that came later: the text that every row of this schema has there."""

    def to_dict(self) -> dict[str, Any]:
        numbered = {} if self.number is None else {"number": self.number}
        return numbered | {
            "name": self.name,
            "source_type": self.source_type,
            "type": _type_to_dict(self.type),
            "rule": self.rule.value,
            "policy": self.policy.value,
            "nullable": self.nullable,
            "key": self.key,
        }

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Column:
        return cls(
            name=data["name"],
            source_type=data["source_type"],
            type=_type_from_dict(data["type"]),
            rule=TextRule(data["rule"]),
            policy=Policy(data["policy"]),
            nullable=data["nullable"],
            key=data["key"],
            number=data.get("number"),  # histories of the first release have none
        )


@dataclass(frozen=True, slots=True)
class TableSchema:
    """Columns in log order (slot i of a change is column i)."""

    table: TableId
    columns: tuple[Column, ...]
    relation: int | None = None
    """The source's own number of the table: another one means that it was made anew."""

    @property
    def schema_id(self) -> str:
        """What log rows name: the beginning of the fingerprint."""
        return self.fingerprint[:_ID_DIGITS]

    @property
    def fingerprint(self) -> str:
        """SHA-256 of name, order, types, key and the source's numbers, where they are known:
        equal schemas have equal ids everywhere."""
        facts: list[Any] = [str(self.table), [c.to_dict() for c in self.columns]]
        if self.relation is not None:
            facts.append(self.relation)
        text = json.dumps(facts, sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()

    @property
    def key_columns(self) -> tuple[Column, ...]:
        """In key order; empty for a table without a key."""
        keyed = [c for c in self.columns if c.key is not None]
        return tuple(sorted(keyed, key=lambda c: c.key or 0))

    def column(self, name: str) -> Column | None:
        return next((c for c in self.columns if c.name == name), None)

    def to_json(self) -> str:
        known = {} if self.relation is None else {"relation": self.relation}
        return json.dumps(
            known
            | {
                "schema": self.table.schema,
                "name": self.table.name,
                "columns": [c.to_dict() for c in self.columns],
            }
        )

    @classmethod
    def from_json(cls, text: str) -> TableSchema:
        data = json.loads(text)
        return cls(
            TableId(data["schema"], data["name"]),
            tuple(Column.from_dict(column) for column in data["columns"]),
            data.get("relation"),
        )


def _type_to_dict(type_: LogicalType) -> dict[str, Any]:
    data: dict[str, Any] = {"kind": type_.kind.value}
    if type_.kind is Kind.DECIMAL:
        data |= {"precision": type_.precision, "scale": type_.scale}
    if type_.element is not None:
        data["element"] = _type_to_dict(type_.element)
    return data


def _type_from_dict(data: dict[str, Any]) -> LogicalType:
    element = data.get("element")
    return LogicalType(
        Kind(data["kind"]),
        data.get("precision", 0),
        data.get("scale", 0),
        _type_from_dict(element) if element else None,
    )
