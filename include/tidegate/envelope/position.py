"""Positions: places in a source's log, printed so that text order is log order.

A position is ``<epoch>/<place>``. The epoch names an incarnation of the source's log; positions of
different epochs do not compare. Within one epoch, ``place`` is fixed-width text.

PostgreSQL's place is ``<LSN, 16 hex>.<index, 10 hex>``: an event stands at its transaction's commit
LSN with its index (from 1) inside the transaction. A *boundary* is ``(lsn, 0)``: everything whose
commit record begins before ``lsn`` lies at or before it, everything else after it. Cuts,
``captured_through`` and applied positions are boundaries, which is why batches end at transactions
(I5).

MySQL's place has the same form: in place of the LSN, the term (2 hex: how often another server has
taken over), the number of the binary log file (6 hex) and the offset (8 hex) at which the
transaction begins; the index is the row's offset from there.

A position may carry an *anchor*: what its source needs to find the same place in another copy of
its log. It is the source's own text, no part of the position's, and does not take part in order or
equality. The change log keeps it beside ``captured_through``.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import total_ordering
from typing import Final

from tidegate.errors import FatalError

_TEXT = re.compile(r"(?P<epoch>[0-9A-Za-z_:-]+)/(?P<place>[0-9A-Za-z_.:-]+)\Z")
_LSN = re.compile(r"[0-9A-Fa-f]{1,8}/[0-9A-Fa-f]{1,8}\Z")
BINLOG: Final = "binlog-"
"""How epochs begin whose places name files."""

_LSN_PLACE = re.compile(r"(?P<lsn>[0-9A-F]{16})\.(?P<index>[0-9A-F]{10})\Z")


@total_ordering
@dataclass(frozen=True, slots=True)
class Position:
    """A place in one epoch of a source's log."""

    epoch: str
    place: str
    anchor: str | None = field(default=None, compare=False, repr=False)

    def __str__(self) -> str:
        return f"{self.epoch}/{self.place}"

    @classmethod
    def parse(cls, text: str) -> Position:
        match = _TEXT.match(text)
        if match is None:
            raise FatalError(
                "position.unreadable",
                f"{text!r} is not a position",
                hint="positions look like <epoch>/<place>; see `tidegate status`",
            )
        return cls(match["epoch"], match["place"])

    def __lt__(self, other: Position) -> bool:
        if self.epoch != other.epoch:
            raise FatalError(
                "position.epochs_differ",
                f"positions of two epochs do not compare: {self.epoch} and {other.epoch}",
                hint="the source was restored or its slot re-created: sweep the tables again",
            )
        return self.place < other.place

    @property
    def lsn(self) -> int:
        """The number of a place: PostgreSQL's LSN, MySQL's file and offset."""
        match = _LSN_PLACE.match(self.place)
        if match is None:
            raise FatalError(
                "position.not_lsn",
                f"{self.place!r} holds no log offset",
                hint="this position belongs to another kind of source",
            )
        return int(match["lsn"], 16)

    @property
    def is_boundary(self) -> bool:
        """Whether it lies between transactions, not inside one (I5)."""
        match = _LSN_PLACE.match(self.place)
        return match is not None and int(match["index"], 16) == 0


def boundary(epoch: str, lsn: int, anchor: str | None = None) -> Position:
    """The boundary right before whatever commits at ``lsn`` or later."""
    return Position(epoch, lsn_place(lsn, 0), anchor)


def lsn_place(lsn: int, index: int) -> str:
    return f"{lsn:016X}.{index:010X}"


def parse_lsn(text: str) -> int:
    """PostgreSQL's ``16/B374D848`` as a number."""
    high, low = text.split("/")
    return (int(high, 16) << 32) | int(low, 16)


def read_position(text: str, epoch: str) -> Position:
    """What a person wrote: a position as `status` prints it, or an LSN (``16/B374D848``), which
    means the boundary right before what commits there, in ``epoch``."""
    text = text.strip()
    return boundary(epoch, parse_lsn(text)) if _LSN.match(text) else Position.parse(text)


def format_lsn(lsn: int) -> str:
    return f"{lsn >> 32:X}/{lsn & 0xFFFFFFFF:X}"
