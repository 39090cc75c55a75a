"""What a source's catalog tells of changes that send no row events."""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import asdict, dataclass, field, replace
from typing import Any


@dataclass(frozen=True, slots=True)
class Leaf:
    """A part of a table that holds rows: a partition, or the table itself."""

    name: str
    file: str  # another one: its rows were written anew, or are gone
    made_empty: bool = True  # it had no rows when it came, so that every row it got was sent
    missing: Mapping[str, str | None] = field(default_factory=dict, repr=False)
    """By number of the table's column: the value of rows that are older than the column, as the
    log would print it; None: there is one, and it cannot be read."""
    joined: str | None = None  # by whom its place in the tree was written; another one: anew
    remade: str | None = None
    """The last file that came with other rows than the log told, as far as anybody can tell."""
    traced: str | None = None
    """The file before, while it is not certain yet whether the log tells of the new one."""
    marked: str | None = None  # with ``traced``: the mark of the look that saw that file


@dataclass(frozen=True, slots=True)
class TableFacts:
    """A table as its catalog has it at one moment. No row's value: only constants of its DDL."""

    relation: int | None  # None: there is no such table
    name_now: str | None = None  # of the table that was known, where it is called otherwise now
    columns: Mapping[str, str] = field(default_factory=dict)  # names by the source's number
    types: Mapping[str, str] = field(default_factory=dict)  # as the source prints them
    defaults: tuple[str, ...] = ()  # numbers of columns with a default, identity or formula
    labels: Mapping[str, str] = field(default_factory=dict)  # enum labels by the source's number
    partitioned: bool = False
    sent: bool = True  # False: the source keeps its rows out of the log
    leaves: Mapping[str, Leaf] = field(default_factory=dict)  # by the source's number
    catalog: str | None = None
    """The server, then a digest of what its catalog says of the columns and of when the table's
    files were made. None: a statement of the log changed that since, or nobody looks at it."""
    left: tuple[str, ...] = ()
    """Columns that were dropped so far, in lower case; the log tells it."""
    back: tuple[str, ...] = ()
    """Those of them whose names other columns got; the log tells it."""
    rewrite: str | None = None
    """Place of the last ALTER that may have given old rows other values; the log tells it."""
    astray: str | None = None
    """Place of the last rows that were written under another name of the table; the log tells it,
    and does not take them."""
    told_by: str | None = None  # what tells of ALTER … USING in the log; None: nothing does
    mark: str | None = field(default=None, compare=False)
    """Where this look stands among the source's transactions. No difference, and so not always
    stored with the look: the change log has the last one."""

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> TableFacts:
        leaves = {number: Leaf(**leaf) for number, leaf in data["leaves"].items()}
        lists = {name: tuple(data.get(name, ())) for name in ("defaults", "left", "back")}
        return cls(**{**data, **lists, "leaves": leaves})

    def following(self, last: TableFacts) -> TableFacts:
        """A look at the catalog, with what only the log told before it."""
        told = {name: getattr(last, name) for name in ("rewrite", "astray", "left", "back")}
        return replace(self, **told)

    def altered(self, left: Set[str], came: Set[str]) -> TableFacts:
        """Behind a statement by which columns left and came."""
        gone = {*self.left, *left}
        back = {*self.back, *(gone & came)}
        return replace(self, catalog=None, left=tuple(sorted(gone)), back=tuple(sorted(back)))

    def number_of(self, column: str) -> str | None:
        return next((number for number, name in self.columns.items() if name == column), None)
