"""The schema history: what every ``schema_id`` in the change log means.

A schema is durable here before the first log row that names it. Positions tell which schema a
table had when; a table that goes from A to B and back to A has three entries.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

from pyiceberg.catalog import Catalog
from pyiceberg.schema import Schema
from pyiceberg.types import LongType, NestedField, StringType, TimestamptzType

from tidegate.config.pipeline import PipelineConfig
from tidegate.envelope.position import Position
from tidegate.errors import FatalError
from tidegate.lake.approvals import Approvals
from tidegate.lake.facts_ledger import FactsLedger
from tidegate.lake.ledger import Ledger
from tidegate.lake.whole_ledger import WholeLedger
from tidegate.names import TableId
from tidegate.schema.table import TableSchema

TABLE_NAME: Final = "schema_history"

_SCHEMA: Final = Schema(
    NestedField(1, "seq", LongType(), required=False),
    NestedField(2, "table", StringType(), required=False),
    NestedField(3, "schema_id", StringType(), required=False),
    NestedField(4, "position", StringType(), required=False),
    NestedField(5, "recorded_at", TimestamptzType(), required=False),
    NestedField(6, "body", StringType(), required=False),
)


@dataclass(frozen=True, slots=True)
class SchemaEntry:
    """``schema`` was in force from ``at`` on."""

    seq: int
    at: Position
    recorded_at: datetime
    schema_id: str
    schema: TableSchema


class SchemaHistory:
    """A pipeline's schema history. Safe with several writers; reads are cached per snapshot."""

    def __init__(self, catalog: Catalog, pipeline: PipelineConfig) -> None:
        ledger = Ledger(catalog, (pipeline.control_namespace, TABLE_NAME), _SCHEMA)
        self._ledger = WholeLedger(ledger, _entry)
        self.approvals = Approvals(catalog, pipeline)
        self.facts = FactsLedger(catalog, pipeline)

    @property
    def identifier(self) -> tuple[str, str]:
        return self._ledger.identifier

    def record(self, schema: TableSchema, at: Position) -> str:
        """Make ``schema`` durable as in force from ``at``; again with the same: no change."""
        self.record_all([(schema, at)])
        return schema.schema_id

    def record_all(
        self, schemas: Sequence[tuple[TableSchema, Position]]
    ) -> tuple[SchemaEntry, ...]:
        """Like :meth:`record`, one after the other, in one commit; the entries that are new."""
        while True:
            known = self._ledger.load()
            entries = known.entries
            for schema, at in schemas:
                if _in_force(entries, schema.table, at) != schema.schema_id:
                    now = datetime.now(UTC)
                    new = SchemaEntry(len(entries) + 1, at, now, schema.schema_id, schema)
                    entries = (*entries, new)
            added = entries[len(known.entries) :]
            if not added or self._ledger.append(known, [_row(entry) for entry in added]):
                return added

    def get(self, schema_id: str) -> TableSchema:
        """The schema a log row names."""
        found = _named(self._ledger.known.entries, schema_id)
        if found is None:
            found = _named(self._ledger.load().entries, schema_id)
        if found is None:
            raise unknown_schema(schema_id)
        return found

    def latest(self, table: TableId) -> TableSchema | None:
        """The newest schema of ``table``: the highest position of its newest epoch."""
        entries = [e for e in self._ledger.load().entries if e.schema.table == table]
        if not entries:
            return None
        epoch = entries[-1].at.epoch
        return max((e for e in entries if e.at.epoch == epoch), key=_order).schema

    def all(self, table: TableId | None = None) -> list[SchemaEntry]:
        """Entries in the order they were recorded."""
        known = self._ledger.load().entries
        return [e for e in known if table is None or e.schema.table == table]

    def at(self, table: TableId, position: Position) -> TableSchema | None:
        """The schema that was in force at ``position``."""
        wanted = _in_force(self._ledger.load().entries, table, position)
        return None if wanted is None else self.get(wanted)

    def drop(self) -> bool:
        return self._ledger.drop()


def unknown_schema(schema_id: str) -> FatalError:
    return FatalError(
        "schema.unknown",
        f"the schema history does not know schema {schema_id}",
        hint="the control tables were restored to an older state: sweep the table again",
    )


def _row(entry: SchemaEntry) -> dict[str, Any]:
    return {
        "table": str(entry.schema.table),
        "schema_id": entry.schema_id,
        "position": str(entry.at),
        "recorded_at": entry.recorded_at,
        "body": entry.schema.to_json(),
    }


def _entry(row: Mapping[str, Any]) -> SchemaEntry:
    return SchemaEntry(
        seq=row["seq"],
        at=Position.parse(row["position"]),
        recorded_at=row["recorded_at"],
        schema_id=row["schema_id"],
        schema=TableSchema.from_json(row["body"]),
    )


def _named(entries: Sequence[SchemaEntry], schema_id: str) -> TableSchema | None:
    return next((entry.schema for entry in entries if entry.schema_id == schema_id), None)


def _order(entry: SchemaEntry) -> tuple[str, int]:
    return (entry.at.place, entry.seq)


def _in_force(entries: tuple[SchemaEntry, ...], table: TableId, at: Position) -> str | None:
    known = [
        e
        for e in entries
        if e.schema.table == table and e.at.epoch == at.epoch and e.at.place <= at.place
    ]
    return max(known, key=_order).schema_id if known else None
