"""Changes that send no rows, found by comparing looks at the source's catalog.

What older rows have in a new column is computed where the source says it. All else is told in
words: only a sweep brings it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from tidegate.config.schema_changes import SchemaChanges
from tidegate.envelope.position import Position
from tidegate.lake.facts_ledger import FactsEntry, in_force
from tidegate.schema.diff import keeps_values
from tidegate.schema.table import Column
from tidegate.schema.table_facts import TableFacts

_SHOWN: Final = 3
"""Partitions that one reason names."""

Settled = frozenset[int | str | None]


def settled_name(column: str) -> str:
    """How a column that took another's name stands among what is settled; never like a place."""
    return f"column {column.lower()}"


@dataclass(frozen=True, slots=True)
class Initial:
    """What rows older than a column have in it; ``text`` is None where nobody can tell."""

    text: str | None


def initial(entries: Sequence[FactsEntry], relation: int | None, column: Column) -> Initial | None:
    """Of a column that was added; None: older rows have null."""
    before: TableFacts | None = None
    for facts in _of(entries, relation):
        number = _number(facts, column)
        if number is None:
            before = facts
            continue
        texts = {leaf.missing[number] for leaf in facts.leaves.values() if number in leaf.missing}
        rewrote = before is not None and _rewritten(before, facts, unless=number)
        if len(texts) > 1 or (rewrote and number in facts.defaults):
            return Initial(None)
        return Initial(texts.pop()) if texts else None
    return None


def rewritten(
    entries: Sequence[FactsEntry], relation: int | None, old: Column, new: Column
) -> bool:
    """Whether the change of a column's declaration made the source write its rows anew, and they
    may be others now. (Where older values must stay as they are, an event trigger tells of
    ``USING``; without one nothing does.)"""
    if keeps_values(old, new):
        return False
    for before, after in pairwise(_of(entries, relation)):
        number = _number(after, new)
        if number is None or before.types.get(number) != old.source_type:
            continue
        if after.types[number] == new.source_type and _rewritten(before, after):
            return True
    return False


def unsent(
    entries: Sequence[FactsEntry],
    after: Position,
    until: Position,
    policy: SchemaChanges,
    settled: Settled = frozenset(),
) -> list[str]:
    """What changed in (after, until] without a row event, in words.

    ``settled``: tables made anew, places of rewrites, and columns that took the name of another,
    that someone approved.
    """
    known = in_force(entries, after)
    later = [
        e for e in entries if e.at.epoch == after.epoch and e.at > after and _begins_by(e, until)
    ]
    looks = [known, *later] if known else later
    found: dict[str, None] = {}
    for old, new in pairwise(looks):
        found |= dict.fromkeys(told(old.facts, new.facts, policy, _within(settled, new)))
    if not all(look.facts.sent for look in looks):
        found["its changes are not sent (deploy has it published before the sweep)"] = None
    return list(found)


def _within(settled: Settled, look: FactsEntry) -> Settled:
    """With the look's own place among what is settled, if someone approved a change that came with
    it: a rewrite that nothing but the table's file tells of has no place of its own."""
    places = (fact for fact in settled if isinstance(fact, str))
    came = any(look.since.place < place <= look.at.place for place in places)
    return settled | {*_remade(look.facts)} if came else settled


def _remade(facts: TableFacts) -> list[str]:
    """What marks rewrites in ``facts``."""
    return [leaf.remade for leaf in facts.leaves.values() if leaf.remade is not None]


def _begins_by(entry: FactsEntry, until: Position) -> bool:
    """Whether it may have become true by ``until``; what a cut saw is true at its own place, which
    is where the log is drained to."""
    return entry.since < until or entry.at <= until


def told(
    old: TableFacts,
    new: TableFacts,
    policy: SchemaChanges,
    settled: Settled = frozenset(),
) -> Iterator[str]:
    """What became different from one look to the next that no row told."""
    if policy.recreate == "hold":
        yield from _whole_table(old, new, settled)
    if old.relation is None or old.relation != new.relation:
        return
    yield from _of_statements(old, new, policy, settled)
    if policy.enum_rename == "hold":
        for number, label in old.labels.items():
            if new.labels.get(number, label) != label:
                yield (
                    f"the enum value {label} is called {new.labels[number]} now: rows that do not"
                    " change keep the old word"
                )
    if policy.partitions == "hold" and old.partitioned:
        yield from _partitions(old, new)


def _whole_table(old: TableFacts, new: TableFacts, settled: Settled) -> Iterator[str]:
    if new.astray not in (None, old.astray):
        yield "rows were written while the table had another name: they were not taken"
    if old.relation is None or new.relation == old.relation:
        return
    if new.relation is None:
        yield (
            "the source has no table of this name any more, its rows are in the lake: was it"
            " renamed, rename it back and sweep; was it dropped, take it out of source.tables"
        )
    elif new.relation not in settled:
        yield "the table was dropped and made anew: rows of the old one are still in the lake"


def _rewrites(old: TableFacts, new: TableFacts, settled: Settled) -> Iterator[str]:
    if any(
        leaf.remade not in (None, old.leaves[number].remade, *settled)
        for number, leaf in new.leaves.items()
        if number in old.leaves
    ):
        yield (
            "ALTER TABLE wrote its rows anew, and without the event trigger"
            " (source.ddl_messages) nothing tells whether USING gave them other values"
        )


def _of_statements(
    old: TableFacts, new: TableFacts, policy: SchemaChanges, settled: Settled
) -> Iterator[str]:
    if policy.rewrite == "hold" and new.rewrite not in (None, old.rewrite, *settled):
        yield "ALTER TABLE … USING may have given older rows other values"
    if policy.rewrite == "hold" and not old.partitioned:
        yield from _rewrites(old, new, settled)
    if policy.rewrite == "hold" and _unexplained(old, new):
        yield (
            "its definition or its files are others than at the last look, and no statement in the"
            " source's log says how that came"
        )
    if policy.retype != "ignore":
        known = {*old.back, *(n for n in new.back if settled_name(n) in settled)}
        for name in sorted({*new.back} - known):
            yield f"{name} was dropped and another column got its name: older rows have the old one"


def _unexplained(old: TableFacts, new: TableFacts) -> bool:
    """Behind a statement of the log, and on another server, there is nothing to compare."""
    if old.catalog is None or new.catalog is None:
        return False
    return old.catalog.split()[0] == new.catalog.split()[0] and old.catalog != new.catalog


def _partitions(old: TableFacts, new: TableFacts) -> Iterator[str]:
    for number, leaf in old.leaves.items():
        if number not in new.leaves:
            yield f"partition {leaf.name} is gone (detached or dropped): its rows are in the lake"
    for number, leaf in new.leaves.items():
        if number not in old.leaves and not leaf.made_empty:
            yield f"partition {leaf.name} was attached: rows it had before were never sent"
    both = [(old.leaves[n], leaf) for n, leaf in new.leaves.items() if n in old.leaves]
    for was, leaf in both:
        if None not in (was.joined, leaf.joined) and was.joined != leaf.joined:
            yield (
                f"partition {leaf.name} was detached and attached again: what changed in it"
                " meanwhile was never sent"
            )
    remade = [leaf.name for was, leaf in both if leaf.remade not in (None, was.remade)]
    if remade:
        yield (
            f"partition {_some(remade)} was emptied or rewritten by itself: that is not sent, and"
            " no row of it shows that the others are still there"
        )


def _some(names: Sequence[str]) -> str:
    shown = ", ".join(names[:_SHOWN])
    return shown if len(names) <= _SHOWN else f"{shown} (and {len(names) - _SHOWN} more)"


def _of(entries: Sequence[FactsEntry], relation: int | None) -> list[TableFacts]:
    return [e.facts for e in entries if relation is not None and e.facts.relation == relation]


def _number(facts: TableFacts, column: Column) -> str | None:
    """The column's number in ``facts``, if it is there."""
    if column.number is None:
        return facts.number_of(column.name)
    return str(column.number) if str(column.number) in facts.columns else None


def _rewritten(old: TableFacts, new: TableFacts, unless: str | None = None) -> bool:
    """Whether rows that were there before lie in other files now; not where the catalog has what
    old rows have in column ``unless``."""
    return any(
        number in new.leaves
        and leaf.file != new.leaves[number].file
        and unless not in new.leaves[number].missing
        for number, leaf in old.leaves.items()
    )
