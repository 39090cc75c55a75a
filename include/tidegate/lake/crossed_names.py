"""Columns that took each other's names: a swap, a cycle, a name whose first column is still kept.

The lake's columns are told apart by their names. Where a new name was another column's, they do not
say whether the lake was brought there already; only a sweep, which writes every row, makes it so.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from tidegate.schema.diff import Change, ChangeKind, Matching, recreated, type_change
from tidegate.schema.table import Column, TableSchema


def disordered(old: TableSchema, new: TableSchema, found: Matching) -> dict[str, str]:
    """newer → older, by their places, for columns that changed places without a number to say how:
    where columns are numbered in order, some were renamed, or dropped and added again."""
    if old.relation is None or recreated(old, new):
        return {}
    if all(column.number is not None for column in (*old.columns, *new.columns)):
        return {}
    same = {name for name, before in found.same.items() if name == before}
    before = [column.name for column in old.columns if column.name in same]
    after = [column.name for column in new.columns if column.name in same]
    return {now: was for was, now in zip(before, after, strict=True) if was != now}


def without(found: Matching, crossed: Mapping[str, str]) -> Matching:
    """``found`` but for columns whose names say nothing."""
    same = {new: old for new, old in found.same.items() if new not in crossed}
    return replace(found, same=same) if crossed else found


def passes_on(change: Change, old: TableSchema, crossed: Mapping[str, str]) -> bool:
    """Columns that only passed names on neither came nor left."""
    if change.kind is ChangeKind.ADD:
        return change.column in crossed and old.column(str(change.column)) is not None
    return change.kind is ChangeKind.DROP and change.column in crossed.values()


def unlike(old: Column | None, new: Column | None) -> bool:
    """Whether the lake's column of a name cannot hold the one that has it now."""
    return old is not None and new is not None and type_change(old, new) is ChangeKind.RETYPE
