"""The live source against the lake: what the next change, or a missing sweep, would bring."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from tidegate.envelope.position import Position
from tidegate.lake.facts_ledger import FactsEntry
from tidegate.lake.lineage import Lineage, Version
from tidegate.lake.schema_ground import SchemaGround
from tidegate.schema.diff import ChangeKind, diff
from tidegate.schema.table import TableSchema
from tidegate.schema.table_facts import TableFacts

_REWRITES = frozenset({ChangeKind.WIDEN, ChangeKind.NARROW, ChangeKind.RETYPE})
_LATER = "~"
"""A place after every other."""


@dataclass(frozen=True, slots=True)
class Ahead:
    """What lies before one table."""

    changes: tuple[str, ...] = ()  # from the newest known schema to the live one
    conflicts: tuple[str, ...] = ()  # what will hold the table
    unsent: tuple[str, ...] = ()  # what no row event told: only a sweep brings it


def ahead(ground: SchemaGround, live: TableSchema, now: TableFacts) -> Ahead:
    """``live`` and ``now`` as if the log had just come to them."""
    stands = ground.stands
    lineage = ground.lineage
    known = lineage.looks[-1].facts if lineage.looks else now
    look = FactsEntry(stands, Position(stands.epoch, _LATER), now.following(known))
    lineage = Lineage(lineage.versions, lineage.target, (*lineage.looks, look))
    ground = replace(ground, lineage=lineage)
    versions = lineage.versions
    told: tuple[str, ...] = ()
    if not versions or live.schema_id not in versions[-1].ids:
        last = versions[-1].since if versions else None
        if last is not None:
            told = tuple(str(change) for change in diff(versions[-1].schema, live))
            new = Version(live.schema_id, live, last, (last,), (live.schema_id,))
            ground = replace(ground, lineage=lineage.having((*versions, new)))
    conflict = ground.conflict()
    hidden = tuple(ground.lineage.unsent(stands, look.at))
    return Ahead(told, conflict.reasons if conflict else (), hidden)


def rewrites(swept: TableSchema, live: TableSchema) -> Iterator[str]:
    """Types that changed since the last sweep (``swept`` was the schema then): the lake followed,
    and whether ``USING`` made other values of old rows nobody can tell."""
    yield from (
        f"{change}: the table was rewritten, and what USING made of old rows was not sent"
        for change in diff(swept, live)
        if change.kind in _REWRITES
    )
