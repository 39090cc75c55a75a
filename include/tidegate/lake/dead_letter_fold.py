"""From records to letters: what waits, given what is part of the lake table's history."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Final

from tidegate.envelope.dead_letter import Key, Role
from tidegate.envelope.position import Position

_ENDS: Final = frozenset({"applied", "discarded"})


@dataclass(frozen=True, slots=True)
class Lineage:
    """A lake table's history: token → snapshot of the batches that are part of ``main``."""

    batches: Mapping[str, int] = field(default_factory=dict)
    snapshots: frozenset[int] = frozenset()
    """All there are, whatever branch they are on."""


@dataclass(frozen=True, slots=True)
class Record:
    """One row of the dead-letter table, without the change's values."""

    seq: int
    at: datetime
    run: str
    kind: str  # parked | applied | discarded | superseded | tried | settled | void
    table: str
    batch: str | None = None
    snapshot_id: int | None = None
    event_id: str | None = None
    role: Role = Role.FAILED
    code: str = ""
    message: str = ""
    position: Position | None = None
    op: str = ""
    schema_id: str = ""
    commit_ts: datetime | None = None
    key: Key = ()
    new_key: Key = ()

    @classmethod
    def of(cls, row: Mapping[str, Any]) -> Record:
        place = row["position"]
        return cls(
            seq=row["seq"],
            at=row["at"],
            run=row["run"],
            kind=row["kind"],
            table=row["table"],
            batch=row["batch"],
            snapshot_id=row["snapshot_id"],
            event_id=row["event_id"],
            role=Role(row["role"] or Role.FAILED),
            code=row["code"] or "",
            message=row["message"] or "",
            position=None if place is None else Position(row["epoch"], place),
            op=row["op"] or "",
            schema_id=row["schema_id"] or "",
            commit_ts=row["commit_ts"],
            key=tuple(row["key"] or ()),
            new_key=tuple(row["new_key"] or ()),
        )


@dataclass(frozen=True, slots=True)
class Letter:
    """A change that waits."""

    event_id: str
    table: str
    position: Position
    op: str
    role: Role
    code: str
    message: str
    schema_id: str
    key: Key
    new_key: Key
    commit_ts: datetime | None
    first_seen: datetime
    last_seen: datetime
    attempts: int
    run: str

    @property
    def keys(self) -> frozenset[Key]:
        return frozenset((self.key, self.new_key))


def fold(records: Iterable[Record], lineage: Lineage) -> list[Letter]:
    """Letters of one table that were parked and have not ended, in log order."""
    ordered = sorted(records, key=lambda record: record.seq)
    counts = _counting(ordered, lineage)
    letters: dict[str, Letter] = {}
    for record in ordered:
        if record.batch is not None and not counts.get(record.batch, False):
            continue
        if record.kind == "superseded":
            letters.clear()
        elif record.kind == "parked" and record.event_id and record.position is not None:
            known = letters.get(record.event_id)
            letters[record.event_id] = _letter(record, record.event_id, record.position, known)
        elif record.kind in _ENDS:
            letters.pop(record.event_id or "", None)
        elif record.kind == "tried" and record.event_id in letters:
            again = letters[record.event_id]
            letters[record.event_id] = replace(
                again, last_seen=record.at, attempts=again.attempts + 1
            )
    return sorted(letters.values(), key=lambda letter: letter.position.place)


def open_batches(records: Iterable[Record], lineage: Lineage) -> list[str]:
    """Batches of which nothing is noted yet, and settled ones that a rollback undid."""
    named: dict[str, None] = {}
    settled, void = _settled(records), _void(records)
    for record in records:
        if record.batch is not None and record.batch not in void:
            named.setdefault(record.batch)
    return [
        batch
        for batch in named
        if batch not in settled
        or (batch not in lineage.batches and settled[batch] in lineage.snapshots)
    ]


def prunable(records: Sequence[Record], lineages: Mapping[str, Lineage]) -> set[int]:
    """Numbers of records that can never count again, of tables whose history is known.

    A letter's records go once its end counts for good: it needed no snapshot, or that snapshot
    expired, so that no rollback brings the letter back.
    """
    gone: set[int] = set()
    for table, lineage in lineages.items():
        own = [record for record in records if record.table == table]
        settled, void = _settled(own), _void(own)
        final = {b for b, snapshot in settled.items() if snapshot not in lineage.snapshots}
        ended: dict[str, int] = {}
        for record in own:
            lasting = record.batch is None or record.batch in final
            if lasting and record.kind == "superseded":
                ended |= {r.event_id: record.seq for r in own if r.event_id and r.seq < record.seq}
            elif lasting and record.kind in _ENDS and record.event_id:
                ended[record.event_id] = record.seq
        over = {r.seq for r in own if r.batch in void or r.seq <= ended.get(r.event_id or "", -1)}
        over |= {r.seq for r in own if r.kind == "superseded" and r.batch in final}
        needed = {r.batch for r in own if r.kind != "settled" and r.seq not in over}
        gone |= over | {r.seq for r in own if r.kind == "settled" and r.batch not in needed}
    return gone


def _counting(records: Iterable[Record], lineage: Lineage) -> dict[str, bool]:
    settled, void = _settled(records), _void(records)
    return {
        record.batch: record.batch not in void
        and (
            record.batch in lineage.batches
            or (record.batch in settled and settled[record.batch] not in lineage.snapshots)
        )
        for record in records
        if record.batch is not None
    }


def _settled(records: Iterable[Record]) -> dict[str, int]:
    return {
        r.batch: r.snapshot_id
        for r in records
        if r.kind == "settled" and r.batch is not None and r.snapshot_id is not None
    }


def _void(records: Iterable[Record]) -> set[str]:
    return {r.batch for r in records if r.kind == "void" and r.batch is not None}


def _letter(record: Record, event_id: str, position: Position, known: Letter | None) -> Letter:
    return Letter(
        event_id=event_id,
        table=record.table,
        position=position,
        op=record.op,
        role=record.role,
        code=record.code,
        message=record.message,
        schema_id=record.schema_id,
        key=record.key,
        new_key=record.new_key,
        commit_ts=record.commit_ts,
        first_seen=known.first_seen if known else record.at,
        last_seen=record.at,
        attempts=known.attempts + 1 if known else 1,
        run=record.run,
    )
