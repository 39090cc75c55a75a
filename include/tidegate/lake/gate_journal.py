"""The gate's journal: an append-only ledger with strict order, folded and checkpointed.

One event per run, not per table: a journal of one-row commits gets slow and large otherwise.
"""

from __future__ import annotations

import json
import random
import threading
import time
import uuid
from collections.abc import Callable, Mapping
from dataclasses import replace
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
from tidegate.errors import FatalError, RetriableError
from tidegate.lake import commits
from tidegate.lake.gate_fold import Event, EventKind, Fold, replay, step
from tidegate.lake.ledger import Ledger

TABLE_NAME: Final = "gate_journal"
EVENT_VERSION: Final = 1
CHECKPOINT_EVENTS: Final = 64
"""Events after which the journal is folded into one file; a fold never reads more files."""
TIMELINE_EVENTS: Final = 1000
"""Events other than renewals that a checkpoint keeps for the timeline."""
_ATTEMPTS: Final = 60

_SCHEMA: Final = Schema(
    NestedField(1, "seq", LongType(), required=False),
    NestedField(2, "version", IntegerType(), required=False),
    NestedField(3, "kind", StringType(), required=False),
    NestedField(4, "at", TimestamptzType(), required=False),
    NestedField(5, "tables", ListType(20, StringType(), False), required=False),
    NestedField(6, "run", StringType(), required=False),
    NestedField(7, "token", StringType(), required=False),
    NestedField(8, "renewal", LongType(), required=False),
    NestedField(9, "purpose", StringType(), required=False),
    NestedField(10, "owner", StringType(), required=False),
    NestedField(11, "reason", StringType(), required=False),
    NestedField(12, "actor", StringType(), required=False),
    NestedField(13, "outcome", StringType(), required=False),
    NestedField(14, "floor", StringType(), required=False),
    NestedField(15, "evicts", StringType(), required=False),
    NestedField(16, "state", StringType(), required=False),
)

_NEW_KINDS: Final = {EventKind.FAIL: 2}
"""Kinds that releases before do not know, and the version that tells them so."""
Decide = Callable[[Fold], Event | None]


class GateJournal:
    """Reads are fresh and incremental, writes land on the fold they were decided on.

    Thread-safe.
    """

    def __init__(self, catalog: Catalog, pipeline: PipelineConfig) -> None:
        self._ledger = Ledger(catalog, (pipeline.control_namespace, TABLE_NAME), _SCHEMA)
        self._lock = threading.RLock()
        self._table_id: uuid.UUID | None = None
        self._head: int | None = None
        self._fold = Fold()
        self._since_checkpoint = 0

    @property
    def identifier(self) -> tuple[str, str]:
        return self._ledger.identifier

    def fold(self) -> Fold:
        """The state now."""
        with self._lock:
            table = self._ledger.table()
            return Fold() if table is None else self._refresh(table)

    def silent_seconds(self) -> float | None:
        """How long ago the newest event landed, by this machine's clock; None without any."""
        table = self._ledger.table()
        newest = None if table is None else table.current_snapshot()
        return None if newest is None else max(0.0, time.time() - newest.timestamp_ms / 1000)

    def write(self, decide: Decide) -> Fold:
        """Append what ``decide`` makes of the current fold; None writes nothing.

        ``decide`` is asked again whenever another event lands first, so what it decides is always
        true at the moment of the commit. It may raise to refuse.
        """
        for _ in range(_ATTEMPTS):
            with self._lock:
                table = self._ledger.open()
                fold = self._refresh(table)
                event = decide(fold)
                if event is None:
                    return fold
                landed = self._append(table, replace(event, seq=fold.seq + 1))
                if landed is not None:
                    if self._since_checkpoint >= CHECKPOINT_EVENTS:
                        self.checkpoint()
                    return landed
            time.sleep(random.uniform(0.005, 0.05))  # spread writers that collided
        raise RetriableError(
            "gate.contended",
            "the gate journal is written to by too many at once",
            hint="try again",
        )

    def checkpoint(self) -> bool:
        """Fold everything into one file and expire the past; False if another one was faster."""
        try:
            self._checkpoint()
        except RetriableError as error:
            if error.code != commits.MOVED:
                raise
            return False
        return True

    def timeline(self, limit: int = 100) -> list[Event]:
        """The newest ``limit`` events, oldest first, renewals left out."""
        with self._lock:
            rows = [r for r in self._ledger.read().rows if _is_timeline(r)]
        return [_event(row) for row in rows[-limit:]]

    def drop(self) -> bool:
        return self._ledger.drop()

    def _refresh(self, table: Table) -> Fold:
        if table.metadata.table_uuid != self._table_id:  # first look, or dropped and made again
            self._table_id = table.metadata.table_uuid
            self._head, self._fold, self._since_checkpoint = None, Fold(), 0
        if commits.head_id(table) == self._head:
            return self._fold
        page = self._ledger.read(after=self._fold.seq, table=table)
        events = [_event(row) for row in page.rows]
        self._fold = replay(events, self._fold)
        self._head = page.head
        marks = [e.seq for e in events if e.kind is EventKind.CHECKPOINT]
        if marks:
            self._since_checkpoint = self._fold.seq - marks[-1]
        else:
            self._since_checkpoint += len(events)
        return self._fold

    def _append(self, table: Table, event: Event) -> Fold | None:
        """The fold after the event, or None if another one landed first."""
        try:
            self._head = self._ledger.append(table, [_row(event)], self._head)
        except RetriableError as error:
            if error.code != commits.MOVED:
                raise
            return None
        self._fold = step(self._fold, event)
        self._since_checkpoint += 1
        return self._fold

    def _checkpoint(self) -> None:
        with self._lock:
            table = self._ledger.open()
            fold = self._refresh(table)
            head = commits.head_id(table)
            if head is None:
                return
            rows = [r for r in self._ledger.read(table=table).rows if _is_timeline(r)]
            mark = Event(
                EventKind.CHECKPOINT, datetime.now(UTC), fold.seq + 1, state=fold.to_json()
            )
            self._ledger.rewrite(table, [*rows[-TIMELINE_EVENTS:], _row(mark)], head)


def _is_timeline(row: Mapping[str, Any]) -> bool:
    return row["kind"] not in (EventKind.RENEW, EventKind.CHECKPOINT)


def _row(event: Event) -> dict[str, Any]:
    return {
        "seq": event.seq,
        "version": _NEW_KINDS.get(event.kind, EVENT_VERSION),
        "kind": event.kind.value,
        "at": event.at,
        "tables": list(event.tables),
        "run": event.run,
        "token": event.token,
        "renewal": event.renewal,
        "purpose": event.purpose,
        "owner": event.owner,
        "reason": event.reason,
        "actor": event.actor,
        "outcome": event.outcome,
        "floor": event.floor,
        "evicts": json.dumps(event.evicts) if event.evicts else None,
        "state": event.state,
    }


def _event(row: Mapping[str, Any]) -> Event:
    if row["version"] not in (EVENT_VERSION, *_NEW_KINDS.values()):
        raise FatalError(
            "gate.format_unknown",
            f"the gate journal has events of version {row['version']}",
            hint="use the Tidegate release that wrote it, or a newer one",
        )
    known = {k: v for k, v in row.items() if k != "version"}
    known["kind"] = EventKind(row["kind"])
    known["tables"] = tuple(row["tables"] or ())
    known["evicts"] = tuple((t, n) for t, n in json.loads(row["evicts"] or "[]"))
    return Event(**known)
