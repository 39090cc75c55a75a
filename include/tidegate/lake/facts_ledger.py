"""What the source's catalog looked like, and where in the log: for changes that send no rows.

Capture looks before each commit of the change log and notes what became different, sweeps note the
catalog at their cut. So an apply that comes to a place where, say, an enum value was renamed knows
it, also when it comes there again after a rollback.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, Final

from pyiceberg.catalog import Catalog
from pyiceberg.schema import Schema
from pyiceberg.types import LongType, NestedField, StringType, TimestamptzType

from tidegate.config.pipeline import PipelineConfig
from tidegate.envelope.position import Position
from tidegate.errors import FatalError, RetriableError
from tidegate.lake import commits
from tidegate.lake.ledger import Ledger
from tidegate.names import TableId
from tidegate.schema.table_facts import TableFacts

TABLE_NAME: Final = "table_facts"
_VERSION: Final = 1
FOLD_FILES: Final = 32
"""Files after which the ledger, which is read whole, becomes one file again."""

_SCHEMA: Final = Schema(
    NestedField(1, "seq", LongType(), required=False),
    NestedField(2, "table", StringType(), required=False),
    NestedField(3, "since", StringType(), required=False),
    NestedField(4, "position", StringType(), required=False),
    NestedField(5, "recorded_at", TimestamptzType(), required=False),
    NestedField(6, "body", StringType(), required=False),
)


@dataclass(frozen=True, slots=True)
class FactsEntry:
    """``facts`` became true somewhere after ``since`` and hold at ``at``, and perhaps a moment
    longer; a cut's are exact."""

    since: Position
    at: Position
    facts: TableFacts


@dataclass(frozen=True, slots=True)
class _Known:
    """The ledger as it was read."""

    head: int | None
    rows: int
    entries: Mapping[str, tuple[FactsEntry, ...]]


def in_force(entries: Sequence[FactsEntry], at: Position) -> FactsEntry | None:
    """The newest of ``entries`` (in order) that was noted at or before ``at``."""
    own = [e for e in entries if e.at.epoch == at.epoch and e.at.place <= at.place]
    return own[-1] if own else None


class FactsLedger:
    """A pipeline's looks at its source's catalog. Safe with several writers; reads are cached per
    snapshot."""

    def __init__(self, catalog: Catalog, pipeline: PipelineConfig) -> None:
        self._ledger = Ledger(catalog, (pipeline.control_namespace, TABLE_NAME), _SCHEMA)
        self._known = _Known(None, 0, {})  # replaced as one: tables are applied side by side

    @property
    def identifier(self) -> tuple[str, str]:
        return self._ledger.identifier

    def note(self, looks: Mapping[TableId, TableFacts], since: Position, at: Position) -> None:
        """Make what is different from the last look durable; nothing is written otherwise."""
        while True:
            known = self._load()
            changed = _changed(known, looks, at)
            if not changed or self._append(known, changed, since, at):
                return

    def rewritten(self, table: str, at: Position) -> None:
        """Note that old rows may have other values from ``at`` on; again: no change. Without a
        look before it there is nothing in the lake to compare with."""
        while True:
            known = self._load()
            last = in_force(known.entries.get(table, ()), at)
            if last is None or last.facts.rewrite == at.place:
                return
            facts = replace(last.facts, rewrite=at.place)
            if self._append(known, [(table, facts)], at, at):
                return

    def _append(
        self,
        known: _Known,
        looks: Sequence[tuple[object, TableFacts]],
        since: Position,
        at: Position,
    ) -> bool:
        """Whether ``looks`` landed; not if another writer was first."""
        rows = [
            self._row(number, str(table), facts, since, at)
            for number, (table, facts) in enumerate(looks, known.rows + 1)
        ]
        table = self._ledger.open()
        try:
            self._ledger.append(table, rows, known.head)
        except RetriableError as error:
            if error.code != commits.MOVED:
                raise
            return False
        self._ledger.fold_if_due(table, files=FOLD_FILES, kept=known.rows + len(rows))
        return True

    def all(self, table: str) -> tuple[FactsEntry, ...]:
        """By position; what a cut saw comes after a look that is noted at the same place."""
        return self._load().entries.get(table, ())

    @staticmethod
    def _row(
        seq: int, table: str, facts: TableFacts, since: Position, at: Position
    ) -> dict[str, Any]:
        return {
            "seq": seq,
            "table": table,
            "since": str(since),
            "position": str(at),
            "recorded_at": datetime.now(UTC),
            "body": json.dumps({"version": _VERSION, "facts": facts.to_dict()}),
        }

    def _load(self) -> _Known:
        table = self._ledger.table()
        if table is None:
            self._known = _Known(None, 0, {})
        elif commits.head_id(table) != self._known.head:
            page = self._ledger.read(table=table)
            self._known = _Known(page.head, len(page.rows), _by_table(page.rows))
        return self._known


def _changed(
    known: _Known, looks: Mapping[TableId, TableFacts], at: Position
) -> list[tuple[TableId, TableFacts]]:
    changed = []
    for table, seen in looks.items():
        last = in_force(known.entries.get(str(table), ()), at)
        facts = seen if last is None else replace(seen, rewrite=last.facts.rewrite)
        if last is None or last.facts != facts:
            changed.append((table, facts))
    return changed


def _by_table(rows: Sequence[Mapping[str, Any]]) -> dict[str, tuple[FactsEntry, ...]]:
    found: dict[str, list[FactsEntry]] = {}
    for row in rows:
        found.setdefault(row["table"], []).append(_entry(row))
    return {table: _in_order(entries) for table, entries in found.items()}


def _in_order(entries: Sequence[FactsEntry]) -> tuple[FactsEntry, ...]:
    epochs = list(dict.fromkeys(entry.at.epoch for entry in entries))
    return tuple(sorted(entries, key=lambda e: (epochs.index(e.at.epoch), e.at.place)))


def _entry(row: Mapping[str, Any]) -> FactsEntry:
    body = json.loads(row["body"])
    if body["version"] != _VERSION:
        raise FatalError(
            "schema.facts_format",
            f"a look at the source has stored format {body['version']}, this release reads"
            f" {_VERSION}",
            hint="use the Tidegate release that wrote it, or a newer one",
        )
    return FactsEntry(
        Position.parse(row["since"]),
        Position.parse(row["position"]),
        TableFacts.from_dict(body["facts"]),
    )
