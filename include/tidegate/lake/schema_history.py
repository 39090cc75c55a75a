"""The schema history: what every ``schema_id`` in the change log means.

A schema is durable here before the first log row that names it. Positions tell which schema a
table had when; a table that goes from A to B and back to A has three entries.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

from pyiceberg.catalog import Catalog
from pyiceberg.schema import Schema
from pyiceberg.types import LongType, NestedField, StringType, TimestamptzType

from tidegate.config.pipeline import PipelineConfig
from tidegate.envelope.position import Position
from tidegate.errors import FatalError, RetriableError
from tidegate.lake import commits
from tidegate.lake.approvals import Approvals
from tidegate.lake.facts_ledger import FactsLedger
from tidegate.lake.ledger import Ledger
from tidegate.names import TableId
from tidegate.observability import events, log
from tidegate.schema.table import TableSchema

_LOG = log.get(__name__)
TABLE_NAME: Final = "schema_history"
FOLD_FILES: Final = 32
"""Files after which the history, which is read whole, becomes one file again."""

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
        self._ledger = Ledger(catalog, (pipeline.control_namespace, TABLE_NAME), _SCHEMA)
        self.approvals = Approvals(catalog, pipeline)
        self.facts = FactsLedger(catalog, pipeline)
        # Read and replaced as one: tables are applied and swept side by side.
        self._known: tuple[int | None, tuple[SchemaEntry, ...]] = (None, ())

    @property
    def identifier(self) -> tuple[str, str]:
        return self._ledger.identifier

    def record(self, schema: TableSchema, at: Position) -> str:
        """Make ``schema`` durable as in force from ``at``; again with the same: no change."""
        self.record_all([(schema, at)])
        return schema.schema_id

    def record_all(self, schemas: Sequence[tuple[TableSchema, Position]]) -> None:
        """Like :meth:`record`, one after the other, in one commit."""
        while True:
            head, known = self._load()
            entries = known
            for schema, at in schemas:
                if _in_force(entries, schema.table, at) != schema.schema_id:
                    now = datetime.now(UTC)
                    new = SchemaEntry(len(entries) + 1, at, now, schema.schema_id, schema)
                    entries = (*entries, new)
            if entries == known or self._append(head, entries, entries[len(known) :]):
                return

    def _append(
        self, head: int | None, entries: tuple[SchemaEntry, ...], new: Sequence[SchemaEntry]
    ) -> bool:
        """Whether ``new``, the last of ``entries``, landed; not if another writer was first."""
        table = self._ledger.open()
        try:
            landed = self._ledger.append(table, [_row(entry) for entry in new], head)
        except RetriableError as error:
            if error.code != commits.MOVED:
                raise
            return False
        for entry in new:
            if any(e.schema.table == entry.schema.table and e.seq < entry.seq for e in entries):
                _say_changed(entry)
        self._known = (landed, entries)
        self._ledger.fold_if_due(table, files=FOLD_FILES, kept=len(entries))
        return True

    def get(self, schema_id: str) -> TableSchema:
        """The schema a log row names."""
        for entries in (self._known[1], self._load()[1]):
            for entry in entries:
                if entry.schema_id == schema_id:
                    return entry.schema
        raise unknown_schema(schema_id)

    def latest(self, table: TableId) -> TableSchema | None:
        """The newest schema of ``table``: the highest position of its newest epoch."""
        entries = [e for e in self._load()[1] if e.schema.table == table]
        if not entries:
            return None
        epoch = entries[-1].at.epoch
        return max((e for e in entries if e.at.epoch == epoch), key=_order).schema

    def all(self, table: TableId | None = None) -> list[SchemaEntry]:
        """Entries in the order they were recorded."""
        return [e for e in self._load()[1] if table is None or e.schema.table == table]

    def at(self, table: TableId, position: Position) -> TableSchema | None:
        """The schema that was in force at ``position``."""
        wanted = _in_force(self._load()[1], table, position)
        return None if wanted is None else self.get(wanted)

    def drop(self) -> bool:
        return self._ledger.drop()

    def _load(self) -> tuple[int | None, tuple[SchemaEntry, ...]]:
        table = self._ledger.table()
        if table is None:
            self._known = (None, ())
        elif commits.head_id(table) != self._known[0]:
            page = self._ledger.read(table=table)
            self._known = (page.head, tuple(_entry(row) for row in page.rows))
        return self._known


def _say_changed(entry: SchemaEntry) -> None:
    table, position = str(entry.schema.table), str(entry.at)
    log.event(_LOG, events.SCHEMA_VERSION_CHANGED, table=table, position=position)


def unknown_schema(schema_id: str) -> FatalError:
    return FatalError(
        "schema.unknown",
        f"the schema history does not know schema {schema_id}",
        hint="the control tables were restored to an older state: sweep the table again",
    )


def _row(entry: SchemaEntry) -> dict[str, Any]:
    return {
        "seq": entry.seq,
        "table": str(entry.schema.table),
        "schema_id": entry.schema_id,
        "position": str(entry.at),
        "recorded_at": entry.recorded_at,
        "body": entry.schema.to_json(),
    }


def _entry(row: dict[str, Any]) -> SchemaEntry:
    return SchemaEntry(
        seq=row["seq"],
        at=Position.parse(row["position"]),
        recorded_at=row["recorded_at"],
        schema_id=row["schema_id"],
        schema=TableSchema.from_json(row["body"]),
    )


def _order(entry: SchemaEntry) -> tuple[str, int]:
    return (entry.at.place, entry.seq)


def _in_force(entries: tuple[SchemaEntry, ...], table: TableId, at: Position) -> str | None:
    known = [
        e
        for e in entries
        if e.schema.table == table and e.at.epoch == at.epoch and e.at.place <= at.place
    ]
    return max(known, key=_order).schema_id if known else None
