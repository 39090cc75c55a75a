"""A ledger that is read whole: once per snapshot, and appended to on exactly what was read.

For ledgers whose new rows depend on all old ones, such as "only if it changed".
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Generic, TypeVar

from tidegate.errors import RetriableError
from tidegate.lake import commits
from tidegate.lake.ledger import Ledger

FOLD_FILES: Final = 32
"""Files after which the ledger becomes one file again."""

E = TypeVar("E")


@dataclass(frozen=True, slots=True)
class Known(Generic[E]):
    """The ledger as it was read."""

    head: int | None = None
    entries: tuple[E, ...] = ()


class WholeLedger(Generic[E]):
    """``read`` makes an entry of a row. Safe with several writers, and with several threads: what
    is known is replaced as one."""

    def __init__(self, ledger: Ledger, read: Callable[[Mapping[str, Any]], E]) -> None:
        self._ledger = ledger
        self._read = read
        self.known: Known[E] = Known()
        """As it was last read; perhaps there is more by now."""

    @property
    def identifier(self) -> tuple[str, str]:
        return self._ledger.identifier

    def load(self) -> Known[E]:
        """Everything there is now."""
        table = self._ledger.table()
        if table is None:
            self.known = Known()
        elif commits.head_id(table) != self.known.head:
            page = self._ledger.read(table=table)
            self.known = Known(page.head, tuple(map(self._read, page.rows)))
        return self.known

    def append(self, known: Known[E], rows: Sequence[Mapping[str, Any]]) -> bool:
        """Whether ``rows`` landed right behind ``known``; not if another writer was first. They are
        numbered here."""
        first = len(known.entries) + 1
        numbered = [{**row, "seq": seq} for seq, row in enumerate(rows, start=first)]
        table = self._ledger.open()
        try:
            landed = self._ledger.append(table, numbered, known.head)
        except RetriableError as error:
            if error.code != commits.MOVED:
                raise
            return False
        entries = (*known.entries, *map(self._read, numbered))
        self.known = Known(landed, entries)
        self._ledger.fold_if_due(table, files=FOLD_FILES, kept=len(entries))
        return True

    def drop(self) -> bool:
        return self._ledger.drop()
