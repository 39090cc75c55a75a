"""The live source against the lake: what the next change, or a missing sweep, would bring."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from tidegate.lake.lineage import Lineage, Version
from tidegate.lake.schema_ground import SchemaGround
from tidegate.schema.diff import ChangeKind, diff
from tidegate.schema.table import TableSchema
from tidegate.schema.table_facts import TableFacts

_REWRITES = frozenset({ChangeKind.WIDEN, ChangeKind.NARROW, ChangeKind.RETYPE, ChangeKind.RESTATE})


@dataclass(frozen=True, slots=True)
class Ahead:
    """What lies before one table."""

    changes: tuple[str, ...] = ()  # from the newest known schema to the live one
    conflicts: tuple[str, ...] = ()  # what will hold the table
    unsent: tuple[str, ...] = ()  # what no row event told: only a sweep brings it


def ahead(ground: SchemaGround, live: TableSchema) -> Ahead:
    """``live`` as if the log had just begun to use it."""
    known = ground.lineage.versions
    told: tuple[str, ...] = ()
    if not known or live.schema_id not in known[-1].ids:
        last = known[-1].since if known else None
        if last is not None:
            told = tuple(str(change) for change in diff(known[-1].schema, live))
            new = Version(live.schema_id, live, last, (last,), (live.schema_id,))
            ground = replace(ground, lineage=Lineage((*known, new), ground.lineage.target))
    conflict = ground.conflict()
    return Ahead(told, conflict.reasons if conflict else ())


def unsent(
    swept: TableSchema | None, live: TableSchema, now: TableFacts, before: TableFacts | None
) -> Iterator[str]:
    """Changes since the last sweep (``swept`` was the schema then) that sent no rows.

    ``before`` are the catalog's facts when they were first looked at after it; None: just now.
    """
    if swept is not None:
        yield from _since_sweep(swept, live, now)
    if before is None:
        return
    for number, label in before.labels.items():
        if number in now.labels and now.labels[number] != label:
            yield f"the enum value {label} is called {now.labels[number]} now"
    yield from (
        f"partition {name} is gone: detached or dropped"
        for number, name in before.partitions.items()
        if number not in now.partitions
    )
    yield from (
        f"partition {name} came: rows it had when it was attached were never sent"
        for number, name in now.partitions.items()
        if number not in before.partitions
    )


def _since_sweep(swept: TableSchema, live: TableSchema, now: TableFacts) -> Iterator[str]:
    added = set()
    for change in diff(swept, live):
        if change.kind is ChangeKind.RECREATE:
            yield f"{change}: rows of the old one are still in the lake"
        elif change.kind in (ChangeKind.ADD, ChangeKind.REPLACE):
            added.add(change.column)
        elif change.kind in _REWRITES:
            yield f"{change}: the table was rewritten, and what USING made of old rows was not sent"
    for column in sorted(str(name) for name in added):
        if column in now.filled:
            yield f"{column} was added with a default, which old rows have and the lake does not"
        elif column in now.defaults:
            yield f"{column} was added and has a default: rows older than it may have it"
