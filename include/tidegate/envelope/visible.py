"""What a snapshot of the source holds, said by transactions and not by a position."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from tidegate.envelope.position import Position

NUMBERS: Final = 2**32
"""Transactions are numbered with 32 bits in the log, and the numbers go round."""
HALF: Final = NUMBERS // 2
"""Of two numbers less than this far apart, the one that is behind came first."""


@dataclass(frozen=True, slots=True)
class Visible:
    """The rows of a cut hold the transactions numbered before ``xmax``, but for those that were
    ``running``. All that they hold lie before ``through`` in the log."""

    xmax: int
    running: frozenset[int]
    through: Position

    def holds(self, transaction: int) -> bool:
        behind = (self.xmax - transaction) % NUMBERS
        return 0 < behind < HALF and transaction not in self.running

    def unseen_ranges(self) -> tuple[tuple[int, int], ...]:
        """The numbers from ``xmax`` on, as ranges from the first up to but without the last."""
        end = self.xmax + HALF
        if end <= NUMBERS:
            return ((self.xmax, end),)
        return ((self.xmax, NUMBERS), (0, end - NUMBERS))
