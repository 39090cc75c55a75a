"""Where a look at the catalog stands among the server's transactions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from tidegate.connectors.postgres.connection import Connection
from tidegate.envelope.visible import NUMBERS

_SQL: Final = (
    "SELECT pg_catalog.pg_current_snapshot()::text, pg_catalog.pg_current_wal_flush_lsn()::text,"
    " substr(pg_catalog.pg_walfile_name(pg_catalog.pg_current_wal_insert_lsn()), 1, 8)"
)


@dataclass(frozen=True, slots=True)
class Moment:
    """A snapshot. What it sees has committed at or before ``lsn`` in the log, as far as it gave a
    table another file: such a commit is flushed before anybody sees it."""

    oldest: int  # every transaction below it has ended
    end: int  # none from it on had ended
    running: frozenset[int]
    lsn: int
    line: str  # a failover begins another one, and gives some numbers out again

    @property
    def mark(self) -> str:
        """Rows of transactions below it were there."""
        return f"{self.line}/{self.oldest}"

    def below(self, mark: str | None) -> int | None:
        """The number that ``mark`` stands for, if this is the same line."""
        line, _, number = (mark or "").partition("/")
        return int(number) if line == self.line else None

    @classmethod
    def now(cls, connection: Connection) -> Moment:
        """Taken before a look: what the look sees may be a little younger."""
        row = connection.execute(_SQL).fetchone()
        assert row is not None  # a SELECT without FROM
        oldest, end, running = str(row[0]).split(":")
        numbers = frozenset(int(number) for number in running.split(",") if number)
        high, low = str(row[1]).split("/")
        lsn = (int(high, 16) << 32) + int(low, 16)
        return cls(int(oldest), int(end), numbers, lsn, str(row[2]))

    def sees(self, xid: int) -> bool:
        """Whether a transaction (its lower half) that has committed by now had done so already."""
        turns = self.end - self.end % NUMBERS
        whole = min(
            (turns + xid + turn for turn in (-NUMBERS, 0, NUMBERS)), key=lambda n: abs(n - self.end)
        )
        return whole < self.end and whole not in self.running
