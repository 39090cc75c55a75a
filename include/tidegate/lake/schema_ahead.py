"""The live source against the lake: what the next change, or a missing sweep, would bring."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from tidegate.envelope.position import Position
from tidegate.lake.facts_ledger import FactsEntry
from tidegate.lake.lineage import Lineage, Version
from tidegate.lake.schema_ground import SchemaGround
from tidegate.schema.diff import diff
from tidegate.schema.table import TableSchema
from tidegate.schema.table_facts import TableFacts

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
    hidden = (*ground.lineage.unsent(stands, look.at), *rewrites(known, now))
    return Ahead(told, conflict.reasons if conflict else (), hidden)


def rewrites(known: TableFacts, now: TableFacts) -> Iterator[str]:
    """Types that changed since the last look, where nothing tells of ``USING``: the next capture
    looks at the rows, and they cannot say."""
    others = [
        f"{now.columns[number]} ({was} → {now.types[number]})"
        for number, was in known.types.items()
        if number in now.columns and now.types.get(number, was) != was
    ]
    if others and known.relation == now.relation and known.told_by is None and _moved(known, now):
        yield (
            f"the table was rewritten for another type of {', '.join(others)}, and without the"
            " event trigger (source.ddl_messages) nothing tells whether USING gave older rows other"
            " values"
        )


def _moved(known: TableFacts, now: TableFacts) -> bool:
    leaves = known.leaves.items()
    return any(n in now.leaves and now.leaves[n].file != leaf.file for n, leaf in leaves)
