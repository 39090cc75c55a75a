"""Dead letters: changes that could not be applied, and those that wait behind them (I7).

One control table per pipeline, append-only. What a batch does to letters is written *before* the
batch is published, under the batch's token, which its snapshot carries (``LETTERS_PROPERTY``): a
record counts while that snapshot is part of ``main``. So a batch that dies parks and resolves
nothing, and a rollback takes parking and resolving back together with the rows.

Snapshots expire. ``settled`` notes the snapshot of a batch that was published, ``void`` that a
batch never was (or was rolled back); whoever holds the table's lease writes them, before anything
expires. A settled record whose snapshot is gone from the table counts for good.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

from pyiceberg.catalog import Catalog
from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.types import (
    IntegerType,
    ListType,
    LongType,
    NestedField,
    StringType,
    TimestamptzType,
)

from tidegate.config.pipeline import PipelineConfig
from tidegate.envelope.dead_letter import BEHIND_LETTER, Parked, Role
from tidegate.errors import RetriableError
from tidegate.lake import commits, positions
from tidegate.lake.dead_letter_fold import Letter, Lineage, Record, fold, open_batches, prunable
from tidegate.lake.ledger import CONTROL_PROPERTIES, Ledger
from tidegate.names import LETTERS_PROPERTY

TABLE_NAME: Final = "dead_letters"
FOLD_FILES: Final = 50
"""Files after which records that can never count again are dropped."""


def _strings(field: int, name: str, element: int) -> NestedField:
    kind = ListType(element_id=element, element_type=StringType(), element_required=False)
    return NestedField(field, name, kind, required=False)


_SCHEMA: Final = Schema(
    NestedField(1, "seq", LongType(), required=False),
    NestedField(2, "at", TimestamptzType(), required=False),
    NestedField(3, "run", StringType(), required=False),
    NestedField(4, "kind", StringType(), required=False),
    NestedField(5, "batch", StringType(), required=False),
    NestedField(6, "snapshot_id", LongType(), required=False),
    # Why a change is here
    NestedField(7, "role", StringType(), required=False),
    NestedField(8, "code", StringType(), required=False),
    NestedField(9, "message", StringType(), required=False),
    # The change itself, as the change log has it
    NestedField(10, "epoch", StringType(), required=False),
    NestedField(11, "position", StringType(), required=False),
    NestedField(12, "tx_id", LongType(), required=False),
    NestedField(13, "commit_ts", TimestamptzType(), required=False),
    NestedField(14, "table", StringType(), required=False),
    NestedField(15, "op", StringType(), required=False),
    NestedField(16, "schema_id", StringType(), required=False),
    _strings(17, "key", 117),
    _strings(18, "new_key", 118),
    _strings(19, "before", 119),
    _strings(20, "after", 120),
    NestedField(
        21,
        "unchanged",
        ListType(element_id=121, element_type=IntegerType(), element_required=False),
        required=False,
    ),
    NestedField(22, "event_id", StringType(), required=False),
    # Where it was to go, and what in the code refused it; an older table has neither
    NestedField(23, "sink_id", StringType(), required=False),
    NestedField(24, "stack", StringType(), required=False),
)
VALUES: Final = ("before", "after", "unchanged")
"""Left out of every read but the one that shows or applies a letter: they may be large."""
_HEAVY: Final = (*VALUES, "sink_id", "stack")
_LIGHT: Final = tuple(f.name for f in _SCHEMA.fields if f.name not in _HEAVY)
# Bounds of row values would put data into metadata (I9).
_PROPERTIES: Final = {**CONTROL_PROPERTIES, "write.metadata.metrics.default": "none"}


@dataclass(frozen=True, slots=True)
class Entry:
    """What is to be recorded of one table."""

    kind: str
    parked: Parked | None = None
    event_id: str | None = None
    snapshot_id: int | None = None
    batch: str | None = None
    sink_id: str | None = None


class DeadLetters:
    """A pipeline's dead letters; the ``ErrorRouter`` of the embedded transport.

    Order: by position within a table. Duplicates: none, a change is one letter however often it is
    parked. Durability: a letter is durable before the position passes it. Concurrency: tables are
    independent; a table's letters change under its lease only (discarding excepted).
    """

    def __init__(
        self, catalog: Catalog, pipeline: PipelineConfig, *, read_once: bool = False
    ) -> None:
        """``read_once``: for a run that holds the leases of its tables; it looks again only after
        it wrote itself. (A letter discarded meanwhile is noticed by the next run.)"""
        self._sink_id = pipeline.lake_id
        self._once = read_once
        self._stale = True
        self._ledger = Ledger(
            catalog, (pipeline.control_namespace, TABLE_NAME), _SCHEMA, properties=_PROPERTIES
        )
        self._known: tuple[int | None, tuple[Record, ...]] = (None, ())
        self._reading = threading.Lock()

    @property
    def identifier(self) -> tuple[str, str]:
        return self._ledger.identifier

    def waiting(self, source: str, table: Table | None) -> list[Letter]:
        """Letters of ``source`` that keep their rows from going on, in log order.

        ``table`` is the lake table as loaded now: its history decides what counts.
        """
        return _waiting([r for r in self._load() if r.table == source], table)

    def counts(self, tables: Mapping[str, Table | None]) -> dict[str, int]:
        """How many letters wait of each table, by source name; one look for all of them."""
        own: dict[str, list[Record]] = {}
        for record in self._load():
            own.setdefault(record.table, []).append(record)
        return {name: len(_waiting(own.get(name, []), table)) for name, table in tables.items()}

    def route(self, source: str, batch: str, run: str, parked: Sequence[Parked]) -> None:
        """Make ``parked`` durable; they count once the batch is published."""
        sink = self._sink_id
        entries = [Entry("parked", parked=one, batch=batch, sink_id=sink) for one in parked]
        self._add(source, run, entries)

    def resolve(self, source: str, batch: str, run: str, event_ids: Iterable[str]) -> None:
        """The batch applies these letters."""
        self._add(source, run, [Entry("applied", event_id=i, batch=batch) for i in event_ids])

    def supersede(self, source: str, batch: str, run: str) -> None:
        """The batch makes every letter so far moot: a sweep, or a TRUNCATE."""
        self._add(source, run, [Entry("superseded", batch=batch)])

    def tried(self, source: str, run: str, event_ids: Iterable[str]) -> None:
        """These were tried again and failed again."""
        self._add(source, run, [Entry("tried", event_id=one) for one in event_ids])

    def discard(self, source: str, run: str, event_ids: Iterable[str]) -> None:
        """A person decided that these are never applied."""
        self._add(source, run, [Entry("discarded", event_id=one) for one in event_ids])

    def settle(self, source: str, table: Table, run: str) -> None:
        """Note which batches were published. The caller holds the table's lease (I4): a batch that
        is not part of ``main`` by now never will be."""
        own = [record for record in self._load() if record.table == source]
        now = lineage(table)
        entries = [
            Entry("settled", batch=batch, snapshot_id=now.batches[batch])
            if batch in now.batches
            else Entry("void", batch=batch)
            for batch in open_batches(own, now)
        ]
        self._add(source, run, entries)

    def parked_by(self, source: str, run: str) -> bool:
        """Whether ``run`` set changes of ``source`` aside, published or not."""
        return any(
            record.kind == "parked" and record.table == source and record.run == run
            for record in self._load()
        )

    def worst_code(self, source: str, run: str) -> str:
        """Why most of the changes failed that ``run`` set aside."""
        codes = Counter(
            record.code
            for record in self._load()
            if record.kind == "parked" and record.table == source and record.run == run
            if record.role == Role.FAILED
        )
        return codes.most_common(1)[0][0] if codes else BEHIND_LETTER

    def values(self, letters: Iterable[Letter]) -> dict[str, dict[str, Any]]:
        """The changes themselves, by event id."""
        ids = ", ".join(f"'{letter.event_id}'" for letter in letters)
        if not ids:
            return {}
        found = self._ledger.read(where=f"kind = 'parked' and event_id in ({ids})").rows
        return {row["event_id"]: row for row in found}

    def prune(self, tables: dict[str, Table]) -> None:
        """Drop records that can never count again, once there are many files."""
        table = self._ledger.table()
        head = None if table is None else commits.head_id(table)
        if table is None or head is None or self._ledger.file_count(table) < FOLD_FILES:
            return
        now = {source: lineage(loaded) for source, loaded in tables.items()}
        gone = prunable(self._load(), now)
        rows = [row for row in self._ledger.read(table=table).rows if row["seq"] not in gone]
        try:
            self._ledger.rewrite(table, rows, head)
        except RetriableError as error:
            if error.code != commits.MOVED:
                raise  # else someone parks right now; the next maintenance prunes

    def drop(self) -> bool:
        return self._ledger.drop()

    def _add(self, source: str, run: str, entries: Sequence[Entry]) -> None:
        if not entries:
            return
        now = datetime.now(UTC)
        self._ledger.add(
            [{**_row(entry), "at": now, "run": run, "table": source} for entry in entries]
        )
        self._stale = True

    def _load(self) -> tuple[Record, ...]:
        with self._reading:  # tables side by side: a half-made look must not pass for a whole one
            if self._once and not self._stale:
                return self._known[1]
            self._stale = False  # before the look: what is added meanwhile is looked for again
            table = self._ledger.table()
            if table is not None and commits.head_id(table) != self._known[0]:
                page = self._ledger.read(table=table, fields=_LIGHT)
                self._known = (page.head, tuple(Record.of(row) for row in page.rows))
            return self._known[1] if table is not None else ()


def _waiting(own: Sequence[Record], table: Table | None) -> list[Letter]:
    """Letters of one table that its history bears out, of all that is recorded of it."""
    if table is None or not own:
        return []
    applied = positions.applied(table)
    return [
        letter
        for letter in fold(own, lineage(table))
        if applied is not None
        and letter.position.epoch == applied.epoch
        and letter.position.place <= applied.place
    ]


def lineage(table: Table) -> Lineage:
    """The batches that are part of ``main``, and every snapshot there is."""
    own = {}
    for snapshot in positions.ancestors(table.metadata):
        batch = positions.summary(snapshot).get(LETTERS_PROPERTY)
        if batch is not None:
            own[batch] = snapshot.snapshot_id
    return Lineage(own, frozenset(s.snapshot_id for s in table.metadata.snapshots))


def _row(entry: Entry) -> dict[str, Any]:
    row: dict[str, Any] = {
        "kind": entry.kind,
        "batch": entry.batch,
        "snapshot_id": entry.snapshot_id,
        "event_id": entry.event_id,
    }
    if entry.parked is not None:
        parked = entry.parked
        row |= {name: parked.event[name] for name in ("tx_id", "commit_ts", "op", "schema_id")}
        row |= {name: parked.event[name] for name in (*VALUES, "event_id")}
        row |= {
            "role": parked.role.value,
            "code": parked.code,
            "message": parked.message,
            "epoch": parked.position.epoch,
            "position": parked.position.place,
            "key": list(parked.key),
            "new_key": list(parked.new_key),
            "sink_id": entry.sink_id,
            "stack": parked.stack,
        }
    return row
