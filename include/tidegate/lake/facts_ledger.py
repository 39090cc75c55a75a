"""What the source's catalog looked like, and where in the log: for changes that send no rows.

Capture looks before each commit of the change log and notes what became different, sweeps note the
catalog at their cut. So an apply that comes to a place where, say, an enum value was renamed knows
it, also when it comes there again after a rollback.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, Final

from pyiceberg.catalog import Catalog
from pyiceberg.schema import Schema
from pyiceberg.types import LongType, NestedField, StringType, TimestamptzType

from tidegate.config.pipeline import PipelineConfig
from tidegate.envelope.position import Position
from tidegate.errors import FatalError
from tidegate.lake.ledger import Ledger
from tidegate.lake.whole_ledger import WholeLedger
from tidegate.names import TableId
from tidegate.schema.table_facts import TableFacts

TABLE_NAME: Final = "table_facts"
_VERSION: Final = 3
_READS: Final = (1, 2, 3)
"""Before 2 nobody noted rows that were written under another name, before 3 what became of rows in
another file, and a digest of the catalog."""

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


_Named = tuple[str, FactsEntry]
_ByTable = Mapping[str, tuple[FactsEntry, ...]]
_Looks = Mapping[str, TableFacts]


def in_force(entries: Sequence[FactsEntry], at: Position) -> FactsEntry | None:
    """The newest of ``entries`` (in order) that was noted at or before ``at``."""
    own = [e for e in entries if e.at.epoch == at.epoch and e.at.place <= at.place]
    return own[-1] if own else None


class FactsLedger:
    """A pipeline's looks at its source's catalog. Safe with several writers; reads are cached per
    snapshot."""

    def __init__(self, catalog: Catalog, pipeline: PipelineConfig) -> None:
        ledger = Ledger(catalog, (pipeline.control_namespace, TABLE_NAME), _SCHEMA)
        self._ledger = WholeLedger(ledger, _entry)
        self._listed = frozenset(pipeline.source.tables)

    @property
    def identifier(self) -> tuple[str, str]:
        return self._ledger.identifier

    def note(
        self,
        looks: Mapping[TableId, TableFacts],
        since: Position,
        at: Position,
        *,
        captured: bool = False,
    ) -> None:
        """Make what is different from the last look durable; nothing is written otherwise.

        ``captured``: up to ``at`` the log has the changes of the tables that the file lists now.
        What others did is not in it, should they ever come back into the file.
        """
        named = {str(table): seen for table, seen in looks.items()}

        def new(known: _ByTable) -> _Looks:
            gone = _unlisted(known, self._listed, at) if captured else {}
            return {**gone, **_changed(known, named, at)}

        self._append_new(new, since, at)

    def known(self, at: Position, looked: Position, mark: str | None) -> dict[TableId, TableFacts]:
        """The looks in force at ``at``; ``mark`` is that of the last one, taken at ``looked``: it
        is not noted where it saw nothing new."""
        found = {}
        for table, entries in _by_table(self._ledger.load().entries).items():
            last = in_force(entries, at)
            if last is not None:
                newer = mark is not None and last.at <= looked
                facts = replace(last.facts, mark=mark) if newer else last.facts
                found[TableId.parse(table)] = facts
        return found

    def rewritten(self, table: str, at: Position) -> None:
        """Note that old rows may have other values from ``at`` on."""
        self._mark(table, at, lambda facts: replace(facts, rewrite=at.place))

    def astray(self, table: str, at: Position) -> None:
        """Note that from ``at`` on rows of the table were written under another name."""
        self._mark(table, at, lambda facts: replace(facts, astray=at.place))

    def left_out(self, table: str, at: Position) -> None:
        """Note, before the source is told to send the table's changes (again), that it kept them
        out of the log: not before ``at``, nor before anything that is known of the table."""
        own = [e.at for e in self.all(table) if e.at.epoch == at.epoch]
        self._mark(table, max([at, *own]), lambda facts: replace(facts, sent=False))

    def altered(
        self,
        table: str,
        at: Position,
        left: frozenset[str] = frozenset(),
        came: frozenset[str] = frozenset(),
    ) -> None:
        """Note that a statement of the log changed a table, and which columns left and came: the
        next look finds another one."""
        self._mark(table, at, lambda facts: facts.altered(left, came))

    def _mark(self, table: str, at: Position, marked: Callable[[TableFacts], TableFacts]) -> None:
        """Again: no change. Without a look before it there is nothing in the lake to compare
        with."""

        def new(known: _ByTable) -> _Looks:
            last = in_force(known.get(table, ()), at)
            facts = None if last is None else marked(last.facts)
            return {} if last is None or facts is None or facts == last.facts else {table: facts}

        self._append_new(new, at, at)

    def _append_new(self, new: Callable[[_ByTable], _Looks], since: Position, at: Position) -> None:
        """What ``new`` makes of all that is known, decided again if another writer was first."""
        while True:
            known = self._ledger.load()
            looks = new(_by_table(known.entries))
            rows = [_row(table, facts, since, at) for table, facts in looks.items()]
            if not rows or self._ledger.append(known, rows):
                return

    def all(self, table: str) -> tuple[FactsEntry, ...]:
        """By position; what a cut saw comes after a look that is noted at the same place."""
        own = [entry for name, entry in self._ledger.load().entries if name == table]
        return _in_order(own)


def _row(table: str, facts: TableFacts, since: Position, at: Position) -> dict[str, Any]:
    return {
        "table": table,
        "since": str(since),
        "position": str(at),
        "recorded_at": datetime.now(UTC),
        "body": json.dumps({"version": _VERSION, "facts": facts.to_dict()}),
    }


def _changed(known: _ByTable, looks: _Looks, at: Position) -> _Looks:
    changed = {}
    for table, seen in looks.items():
        last = in_force(known.get(table, ()), at)
        facts = seen if last is None else seen.following(last.facts)
        if last is None or last.facts != facts:
            changed[table] = facts
    return changed


def _unlisted(known: _ByTable, listed: Collection[str], at: Position) -> _Looks:
    last = {table: in_force(own, at) for table, own in known.items() if table not in listed}
    return {
        table: replace(entry.facts, sent=False)
        for table, entry in last.items()
        if entry is not None and entry.facts.sent
    }


def _by_table(entries: Sequence[_Named]) -> dict[str, tuple[FactsEntry, ...]]:
    found: dict[str, list[FactsEntry]] = {}
    for table, entry in entries:
        found.setdefault(table, []).append(entry)
    return {table: _in_order(own) for table, own in found.items()}


def _in_order(entries: Sequence[FactsEntry]) -> tuple[FactsEntry, ...]:
    epochs = list(dict.fromkeys(entry.at.epoch for entry in entries))
    return tuple(sorted(entries, key=lambda e: (epochs.index(e.at.epoch), e.at.place)))


def _entry(row: Mapping[str, Any]) -> _Named:
    body = json.loads(row["body"])
    if body["version"] not in _READS:
        raise FatalError(
            "schema.facts_format",
            f"a look at the source has stored format {body['version']}, this release reads"
            f" {', '.join(map(str, _READS))}",
            hint="use the Tidegate release that wrote it, or a newer one",
        )
    return row["table"], FactsEntry(
        Position.parse(row["since"]),
        Position.parse(row["position"]),
        TableFacts.from_dict(body["facts"]),
    )
