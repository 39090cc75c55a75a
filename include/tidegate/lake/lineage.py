"""A table's schemas in the order in which the log used them, and each column's way through them.

The lake has one set of columns, the log rows of many schemas. A column that was renamed is one
lake column under its newest name; rows written under an older name still find it, also when they
are applied again after a rollback.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache

from tidegate.config.pipeline import LakeTarget
from tidegate.envelope.position import Position
from tidegate.errors import ConfigError
from tidegate.lake.approvals import Approval
from tidegate.lake.crossed_names import disordered, passes_on, unlike, without
from tidegate.lake.facts_ledger import FactsEntry
from tidegate.lake.schema_history import SchemaEntry, SchemaHistory
from tidegate.lake.unsent import Initial, initial, rewritten, settled_name, unsent
from tidegate.schema.contract import contracted
from tidegate.schema.diff import Change, ChangeKind, Matching, changes, described, match
from tidegate.schema.table import Column, TableSchema
from tidegate.schema.types import LogicalType, parse_type

_ANEW = frozenset({ChangeKind.RETYPE, ChangeKind.REPLACE})


@dataclass(frozen=True, slots=True)
class Version:
    """A schema, from its first use until another one took its place."""

    schema_id: str
    schema: TableSchema  # as the source said it
    since: Position
    seen: tuple[Position, ...]
    ids: tuple[str, ...]  # the same columns, described with more or less certainty
    approval: Approval | None = None


@dataclass(frozen=True, slots=True)
class Step:
    """From one version to the next."""

    matching: Matching
    changes: tuple[Change, ...]
    asides: Mapping[str, str] = field(default_factory=dict)
    """Older columns that are kept under another name, because a new one takes theirs."""
    crossed: Mapping[str, str] = field(default_factory=dict)
    """newer → older, where the new name was another column's: names alone do not say which of the
    two the lake holds, so that only a sweep brings it there."""


def versions(
    entries: Sequence[SchemaEntry], approvals: Sequence[Approval] = ()
) -> tuple[Version, ...]:
    """Entries of one table, in log order; the same schema seen again is the same version."""
    epochs = list(dict.fromkeys(entry.at.epoch for entry in entries))
    ordered = sorted(entries, key=lambda e: (epochs.index(e.at.epoch), e.at.place, e.seq))
    found: list[Version] = []
    for entry in ordered:
        last = found[-1] if found else None
        schema = entry.schema if last is None else numbered(last.schema, entry.schema)
        if last is not None and (entry.schema_id in last.ids or schema == last.schema):
            ids = tuple(dict.fromkeys((*last.ids, entry.schema_id)))
            found[-1] = replace(last, seen=(*last.seen, entry.at), ids=ids)
        else:
            found.append(
                Version(entry.schema_id, schema, entry.at, (entry.at,), (entry.schema_id,))
            )
    return tuple(replace(version, approval=_approved(version, approvals)) for version in found)


def numbered(old: TableSchema, new: TableSchema) -> TableSchema:
    """``new`` with the numbers of ``old`` where the source's own were not certain.

    New columns stand behind all others: a column of ``old`` that stands before every new one, in
    the same order, is the same column.
    """
    if old.relation != new.relation or all(c.number is not None for c in new.columns):
        return new
    twins = [old.column(column.name) for column in new.columns]
    same = [
        twin if twin is not None and twin.type == column.type else None
        for twin, column in zip(twins, new.columns, strict=True)
    ]
    count = same.index(None) if None in same else len(same)
    numbers = [twin.number for twin in same[:count] if twin is not None]
    certain = [number for number in numbers if number is not None]
    if len(certain) < count or certain != sorted(certain) or any(same[count:]):
        return new
    # Whether a column may be null was as uncertain as its number.
    filled = tuple(
        replace(column, number=twin.number, nullable=twin.nullable) if twin else column
        for column, twin in zip(new.columns, same, strict=True)
    )
    return replace(new, columns=filled)


def _approved(version: Version, approvals: Sequence[Approval]) -> Approval | None:
    own = (a for a in approvals if a.schema_id in version.ids and a.at in version.seen)
    return next(reversed(list(own)), None)


class Lineage:
    """The versions of one table as one target sees them. Immutable."""

    def __init__(
        self,
        found: Sequence[Version],
        target: LakeTarget,
        looks: Sequence[FactsEntry] = (),
    ) -> None:
        self.versions = tuple(found)
        self.target = target
        self.looks = tuple(looks)
        self.schema = cache(self._schema)
        self.step = cache(self._step)

    def index_at(self, position: Position) -> int | None:
        """The version in force at ``position``; None: none is known."""
        inside = [
            index
            for index, version in enumerate(self.versions)
            if any(at.epoch == position.epoch and at.place <= position.place for at in version.seen)
        ]
        return inside[-1] if inside else None

    def index_of(self, schema_id: str, place: str = "") -> int | None:
        """The version that a row at ``place`` names."""
        own = [i for i, version in enumerate(self.versions) if schema_id in version.ids]
        before = [i for i in own if place and self.versions[i].since.place <= place]
        return (before or own)[-1] if own else None

    def net(self, base: int | None, index: int) -> tuple[Lineage, int]:
        """As if ``index`` had followed ``base`` at once, and its place then."""
        known = self.versions[: 0 if base is None else base + 1]
        last = self.versions[index]
        if known and known[-1].schema == last.schema:
            return self.having(known), len(known) - 1
        return self.having((*known, last)), len(known)

    def having(self, found: Sequence[Version]) -> Lineage:
        """The same table with other versions."""
        return Lineage(found, self.target, self.looks)

    def initial(self, index: int, column: Column) -> Initial | None:
        """What rows older than a version have in a column that came with it."""
        return initial(self.looks, self.versions[index].schema.relation, column)

    def rewritten(self, index: int, name: str) -> bool:
        """Whether the step to a version wrote a column's rows anew at the source."""
        new = self.versions[index].schema.column(name)
        before = self.step(index).matching.same.get(name)
        old = self.versions[index - 1].schema.column(before) if before is not None else None
        if old is None or new is None:
            return False
        return rewritten(self.looks, self.versions[index].schema.relation, old, new)

    def unsent(self, after: Position, until: Position) -> list[str]:
        """What changed in (after, until] without a row event, as far as the policies mind."""
        approved = [v for v in self.versions if v.approval is not None]
        settled = frozenset(f for v in approved for f in (v.schema.relation, v.since.place))
        settled |= frozenset(  # where the source numbers columns, the numbers tell
            settled_name(c.name) for v in approved for c in v.schema.columns if c.number is None
        )
        return unsent(self.looks, after, until, self.target.schema_changes, settled)

    def later_names(self, index: int, name: str) -> list[str]:
        """``name`` of a version, then what the column is called later."""
        names, gone = [name], False
        for at in range(index + 1, len(self.versions)):
            step = self.step(at)
            if names[-1] in step.asides:
                return [*names, step.asides[names[-1]]]
            if gone:
                if self.schema(at).column(names[-1]) is not None:
                    return names  # another column, under the same name
                continue
            after = {before: new for new, before in step.matching.same.items()}.get(names[-1])
            if after is None:
                gone = True
            elif after != names[-1]:
                names.append(after)
        return names

    def earlier_names(self, index: int, name: str) -> Iterator[str]:
        """What the column was called before, nearest first."""
        for at in range(index, 0, -1):
            before = self.step(at).matching.same.get(name)
            if before is None:
                return
            if before != name:
                yield before
            name = before
        first = self.versions[0].approval
        # Before the first known version there is only the lake's own word for a column.
        yield from (old for old, new in (first.renames if first else {}).items() if new == name)

    def left_out(self, index: int) -> set[str]:
        """Columns that took another one's name while such changes are ignored: the lake's column of
        that name is the old one, and takes none of their values."""
        found: set[str] = set()
        for at in range(1, index + 1):
            step = self.step(at)
            found = {new for new, old in step.matching.same.items() if old in found}
            if self.versions[at].approval is None and self.target.schema_changes.retype == "ignore":
                new = (c.column for c in step.changes if c.kind is ChangeKind.REPLACE)
                found.update(name for name in new if name is not None)
        return found

    def casts(self, index: int) -> dict[str, LogicalType]:
        """Columns whose values someone wants in another type, until their own changes again."""
        found: dict[str, LogicalType] = {}
        for at in range(index + 1):
            step = self.step(at) if at else None
            if step is not None:
                typed = {c.column for c in step.changes if c.kind in (*_ANEW, ChangeKind.WIDEN)}
                found = {
                    new: found[old]
                    for new, old in step.matching.same.items()
                    if old in found and new not in typed
                }
            approval = self.versions[at].approval
            for name, text in (approval.casts if approval else {}).items():
                type_ = parse_type(text)
                if type_ is not None:
                    found[name] = type_
        return found

    def _schema(self, index: int) -> TableSchema:
        raw = self.versions[index].schema
        try:
            return contracted(raw, self.target)
        except ConfigError:
            return raw  # an override that an older schema cannot follow; used for comparison only

    def _step(self, index: int) -> Step:
        old, new = self.schema(index - 1), self.schema(index)
        approval = self.versions[index].approval
        matched = match(old, new, self._said(index, approval) if approval else None)
        crossed = {**self._taken_over(index, matched), **disordered(old, new, matched)}
        found = without(matched, crossed)
        told = tuple(
            self._returned(index, change)
            for change in changes(old, new, found)
            if not passes_on(change, old, crossed)
        )
        anew = {c.column: str(c.column) for c in told if c.kind in _ANEW}
        follow = approval is not None or self.target.schema_changes.retype == "evolve"
        cast = set(approval.casts) if approval else set()
        asides = {
            before: aside_name(before, self.versions[index].schema_id)
            for name in anew.values()
            if follow and name not in cast and name not in crossed
            for before in [found.same.get(name, name)]
        }
        asides |= {
            name: aside_name(name, self.versions[index].schema_id)
            for name in crossed
            if unlike(self._last_of(index, name), new.column(name))
        }
        same = {new: old for new, old in found.same.items() if old not in asides}
        return Step(replace(found, same=same), told, asides, crossed)

    def _returned(self, index: int, change: Change) -> Change:
        """A column under the name of one that left before: the lake still holds that one."""
        if change.kind is not ChangeKind.ADD or change.column is None:
            return change
        for at in reversed(range(index)):
            was = self.schema(at).column(change.column)
            if was is not None:
                left = at < index - 1 and self._name_at(at, change.column, index) == change.column
                kind = ChangeKind.REPLACE if left else ChangeKind.ADD
                return Change(kind, change.column, described(was), change.new)
        return change

    def _last_of(self, index: int, name: str) -> Column | None:
        """The last column before a version that had ``name``."""
        before = (self.schema(at).column(name) for at in reversed(range(index)))
        return next((column for column in before if column is not None), None)

    def _name_at(self, index: int, name: str, until: int) -> str:
        """What a version's column is called right before another version; where it left, then."""
        for at in range(index + 1, until):
            step = self.step(at)
            after = {before: new for new, before in step.matching.same.items()}.get(name)
            if name in step.asides or after is None:
                return step.asides.get(name, name)
            name = after
        return name

    def _said(self, index: int, approval: Approval) -> dict[str, str]:
        """An approval names a column as the lake does, which may be further behind."""
        own = {
            known: column.name
            for column in self.schema(index - 1).columns
            for known in self._own_names(index - 1, column.name)
        }
        return {own.get(old, old): new for old, new in approval.renames.items()}

    def _taken_over(self, index: int, found: Matching) -> dict[str, str]:
        """Renames to a name that another column had: the lake may still hold that one."""
        taken = {c.name for v in self.versions[:index] for c in v.schema.columns}
        return {
            new: old
            for new, old in found.same.items()
            if new != old and new in taken - set(self._own_names(index - 1, old))
        }

    def _own_names(self, index: int, name: str) -> list[str]:
        return [name, *self.earlier_names(index, name)]


def read_lineage(history: SchemaHistory, target: LakeTarget) -> Lineage:
    """What is known of a table up to now."""
    known = history.all(target.table)
    return Lineage(
        versions(known, history.approvals.all(target.source)),
        target,
        history.facts.all(target.source),
    )


def aside_name(name: str, schema_id: str) -> str:
    """What an older column is called once a new one has its name."""
    return f"{name}__until_{schema_id[:6]}"
