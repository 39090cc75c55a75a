"""Approvals: someone's word that a table's held schema change may be applied, and how.

An approval names the schema it is about and where that schema was first used, so a later change
needs one of its own. It is durable before the gate opens, and it stays: a rollback that replays
the change finds it again (I3).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final

from pyiceberg.catalog import Catalog
from pyiceberg.schema import Schema
from pyiceberg.types import LongType, NestedField, StringType, TimestamptzType

from tidegate.config.pipeline import PipelineConfig
from tidegate.envelope.position import Position
from tidegate.errors import FatalError
from tidegate.lake.ledger import Ledger

TABLE_NAME: Final = "schema_approvals"
_VERSION: Final = 1

_SCHEMA: Final = Schema(
    NestedField(1, "seq", LongType(), required=False),
    NestedField(2, "table", StringType(), required=False),
    NestedField(3, "schema_id", StringType(), required=False),
    NestedField(4, "position", StringType(), required=False),
    NestedField(5, "recorded_at", TimestamptzType(), required=False),
    NestedField(6, "actor", StringType(), required=False),
    NestedField(7, "body", StringType(), required=False),
)


@dataclass(frozen=True, slots=True)
class Approval:
    """``schema_id``, in force from ``at`` on, may be applied to ``table``."""

    table: str
    schema_id: str
    at: Position
    actor: str
    reason: str = ""
    renames: Mapping[str, str] = field(default_factory=dict)  # old → new
    casts: Mapping[str, str] = field(default_factory=dict)  # column → lake type
    recorded_at: datetime | None = None


class Approvals:
    """A pipeline's approvals. Safe with several writers."""

    def __init__(self, catalog: Catalog, pipeline: PipelineConfig) -> None:
        self._ledger = Ledger(catalog, (pipeline.control_namespace, TABLE_NAME), _SCHEMA)

    @property
    def identifier(self) -> tuple[str, str]:
        return self._ledger.identifier

    def add(self, approval: Approval) -> None:
        body = {
            "version": _VERSION,
            "reason": approval.reason,
            "renames": dict(approval.renames),
            "casts": dict(approval.casts),
        }
        row = {
            "table": approval.table,
            "schema_id": approval.schema_id,
            "position": str(approval.at),
            "recorded_at": datetime.now(UTC),
            "actor": approval.actor,
            "body": json.dumps(body),
        }
        self._ledger.add([row])

    def all(self, table: str | None = None) -> list[Approval]:
        """Oldest first."""
        rows = self._ledger.read().rows
        return [_approval(row) for row in rows if table is None or row["table"] == table]


def _approval(row: Mapping[str, Any]) -> Approval:
    body = json.loads(row["body"])
    if body["version"] != _VERSION:
        raise FatalError(
            "schema.approval_format",
            f"an approval has stored format {body['version']}, this release reads {_VERSION}",
            hint="use the Tidegate release that wrote it, or a newer one",
        )
    return Approval(
        table=row["table"],
        schema_id=row["schema_id"],
        at=Position.parse(row["position"]),
        actor=row["actor"],
        reason=body["reason"],
        renames=body["renames"],
        casts=body["casts"],
        recorded_at=row["recorded_at"],
    )
