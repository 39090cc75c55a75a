"""What changed between two schemas of a table, kind by kind, in words.

A column is the same column under another name where the source numbers both alike, or where
someone said so. Where neither is known, a column that left and one that came with a fitting type
are a *candidate*: perhaps one column, perhaps two; nobody guesses.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from tidegate.schema.table import Column, TableSchema
from tidegate.schema.types import is_wider


class ChangeKind(StrEnum):
    ADD = "add"
    DROP = "drop"
    RENAME = "rename"
    CANDIDATE = "rename_candidate"  # one column renamed, or one dropped and one added
    WIDEN = "widen"  # the new type holds every value of the old one exactly
    NARROW = "narrow"  # the other way round
    RETYPE = "retype"  # neither
    REPLACE = "replace"  # dropped and added again under the same name
    RESTATE = "restate"  # another type at the source, the same in the lake
    RELAX = "relax"  # may be null now
    TIGHTEN = "tighten"  # may not be null any more
    KEY = "key"
    ORDER = "order"
    RECREATE = "recreate"  # the table was dropped and made anew


@dataclass(frozen=True, slots=True)
class Change:
    """One difference; ``column`` is its name in the newer schema where it has one."""

    kind: ChangeKind
    column: str | None = None
    old: str | None = None
    new: str | None = None

    def __str__(self) -> str:
        return _WORDS[self.kind].format(column=self.column, old=self.old, new=self.new)


_WORDS = {
    ChangeKind.ADD: "{column} was added: {new}",
    ChangeKind.DROP: "{column} was dropped: it was {old}",
    ChangeKind.RENAME: "{old} is called {new} now",
    ChangeKind.CANDIDATE: "{old} left and {new} came: renamed, or dropped and added?",
    ChangeKind.WIDEN: "{column} is wider: {old} → {new}",
    ChangeKind.NARROW: "{column} is narrower: {old} → {new}",
    ChangeKind.RETYPE: "{column} has another type: {old} → {new}",
    ChangeKind.REPLACE: "{column} was dropped and added again: {old} → {new}",
    ChangeKind.RESTATE: "{column} is declared otherwise: {old} → {new}",
    ChangeKind.RELAX: "{column} may be null now",
    ChangeKind.TIGHTEN: "{column} may not be null any more",
    ChangeKind.KEY: "the key was {old}, it is {new}",
    ChangeKind.ORDER: "the order of the columns was {old}, it is {new}",
    ChangeKind.RECREATE: "the table was dropped and made anew",
}


@dataclass(frozen=True, slots=True)
class Matching:
    """Which column of the older schema each column of the newer one is."""

    same: Mapping[str, str]  # newer name → older name
    replaced: frozenset[str] = frozenset()  # same name, another column
    candidates: tuple[tuple[str, str], ...] = ()  # (older, newer)

    @property
    def renames(self) -> dict[str, str]:
        """older → newer, where they differ."""
        return {old: new for new, old in self.same.items() if old != new}


def match(old: TableSchema, new: TableSchema, renames: Mapping[str, str] | None = None) -> Matching:
    """``renames`` (older → newer) is someone's word: it settles every candidate."""
    numbered = not recreated(old, new)
    said = {after: before for before, after in (renames or {}).items()}
    by_number = {c.number: c.name for c in old.columns if c.number is not None and numbered}
    same: dict[str, str] = {}
    for column in new.columns:
        before = said.get(column.name)
        if before is None and column.number is not None:
            before = by_number.get(column.number)
        if before is not None and old.column(before) and before not in same.values():
            same[column.name] = before
    replaced: set[str] = set()
    for column in new.columns:
        twin = old.column(column.name)
        if column.name in same or twin is None or twin.name in same.values():
            continue
        if numbered and column.number is not None and twin.number is not None:
            replaced.add(column.name)
        same[column.name] = twin.name
    gone = [c for c in old.columns if c.name not in same.values()]
    came = [c for c in new.columns if c.name not in same]
    open_pairs = () if renames is not None or not numbered else tuple(_pairs(gone, came))
    return Matching(same, frozenset(replaced), open_pairs)


def _pairs(gone: Iterable[Column], came: Iterable[Column]) -> Iterator[tuple[str, str]]:
    arrived = list(came)
    for left in gone:
        for column in arrived:
            if left.number is not None and column.number is not None:
                continue  # two numbers are two columns
            if type_change(left, column) is not ChangeKind.RETYPE:
                yield left.name, column.name


def recreated(old: TableSchema, new: TableSchema) -> bool:
    known = old.relation is not None and new.relation is not None
    return known and old.relation != new.relation


def diff(
    old: TableSchema, new: TableSchema, renames: Mapping[str, str] | None = None
) -> tuple[Change, ...]:
    """Every change from ``old`` to ``new``."""
    return changes(old, new, match(old, new, renames))


def changes(old: TableSchema, new: TableSchema, matching: Matching) -> tuple[Change, ...]:
    """The same, where it is known already which column is which."""
    return tuple(_changes(old, new, matching))


def _changes(old: TableSchema, new: TableSchema, matching: Matching) -> Iterator[Change]:
    if recreated(old, new):
        yield Change(ChangeKind.RECREATE)
    paired = {name for pair in matching.candidates for name in pair}
    for before, after in matching.candidates:
        yield Change(ChangeKind.CANDIDATE, after, before, after)
    for column in new.columns:
        twin = old.column(matching.same.get(column.name, ""))
        if twin is not None:
            yield from _column(twin, column, column.name in matching.replaced)
        elif column.name not in paired:
            yield Change(ChangeKind.ADD, column.name, new=described(column))
    kept = set(matching.same.values()) | paired
    for column in old.columns:
        if column.name not in kept:
            yield Change(ChangeKind.DROP, column.name, old=described(column))
    yield from _key(old, new, matching)
    yield from _order(old, new, matching)


def _column(old: Column, new: Column, replaced: bool) -> Iterator[Change]:
    if old.name != new.name:
        yield Change(ChangeKind.RENAME, new.name, old.name, new.name)
    kind = ChangeKind.REPLACE if replaced else type_change(old, new)
    if kind is not None:
        yield Change(kind, new.name, described(old), described(new))
    if old.nullable is not new.nullable:
        yield Change(ChangeKind.RELAX if new.nullable else ChangeKind.TIGHTEN, new.name)


_VARYING: Final = re.compile(r"character varying(\((?P<limit>\d+)\))?")
_WIDER_ALIKE: Final = frozenset({("smallint", "integer")})


def type_change(old: Column, new: Column) -> ChangeKind | None:
    """What became of a column's type."""
    if old.type == new.type:
        return None if old.source_type == new.source_type else ChangeKind.RESTATE
    if is_wider(old.type, new.type):
        return ChangeKind.WIDEN
    return ChangeKind.NARROW if is_wider(new.type, old.type) else ChangeKind.RETYPE


def keeps_values(old: Column, new: Column) -> bool:
    """Whether ``new`` is declared to hold whatever ``old`` held, printed alike: a longer text, a
    wider integer. A source may write its rows anew for that, and they stay what they were."""
    if (old.source_type, new.source_type) in _WIDER_ALIKE:
        return True
    before, after = _VARYING.fullmatch(old.source_type), _VARYING.fullmatch(new.source_type)
    if before is None or (after is None and new.source_type != "text"):
        return False
    limit = after["limit"] if after is not None else None
    return limit is None or (before["limit"] is not None and int(limit) >= int(before["limit"]))


def described(column: Column) -> str:
    """``numeric(12,2) as decimal(12,2)``; shorter where both are one word."""
    lake = str(column.type)
    return lake if column.source_type == lake else f"{column.source_type} as {lake}"


def _key(old: TableSchema, new: TableSchema, matching: Matching) -> Iterator[Change]:
    names = {before: after for after, before in matching.same.items()}
    before = {names.get(column.name, column.name) for column in old.key_columns}
    after = {column.name for column in new.key_columns}
    if before != after:
        yield Change(ChangeKind.KEY, None, _names(before), _names(after))


def _order(old: TableSchema, new: TableSchema, matching: Matching) -> Iterator[Change]:
    names = {before: after for after, before in matching.same.items()}
    before = [names[column.name] for column in old.columns if column.name in names]
    after = [column.name for column in new.columns if column.name in matching.same]
    if before != after:
        yield Change(ChangeKind.ORDER, None, ", ".join(before), ", ".join(after))


def _names(names: set[str]) -> str:
    return "(" + ", ".join(sorted(names)) + ")"
