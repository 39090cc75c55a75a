"""What the log has told of tables whose files changed: TRUNCATE, and rewrites by ALTER TABLE.

A look at the catalog may be ahead of the log by a moment: a file may have changed by a TRUNCATE
whose event is still to come. So a change is judged only once the log was read past it.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from tidegate.connectors.postgres.ddl_messages import Relaid, Rewritten, Told
from tidegate.connectors.postgres.moments import Moment
from tidegate.envelope.change import Op
from tidegate.names import TableId

_KEPT: Final = 1000
"""Per table: a file is the last TRUNCATE's, so that older ones are soon of no use."""


@dataclass(slots=True)
class Witness:
    """One stream's memory, since the place that it began at."""

    moments: list[Moment] = field(default_factory=list)
    """Oldest first; only the newest that the log was read past is of use."""
    _truncated: dict[TableId, deque[int]] = field(
        default_factory=lambda: defaultdict(lambda: deque(maxlen=_KEPT))
    )
    _files: dict[str, list[tuple[str, str]]] = field(default_factory=lambda: defaultdict(list))
    _before: dict[str, tuple[int, str]] = field(default_factory=dict)

    def read(self, rows: pa.Table) -> None:
        """Take note of every TRUNCATE among rows of the log."""
        cleared = rows.filter(pc.equal(rows["op"], Op.TRUNCATE.value))
        for table, xid in zip(*(cleared[n].to_pylist() for n in ("table", "tx_id")), strict=True):
            self._truncated[TableId.parse(table)].append(xid)

    def hear(self, message: Told | Rewritten | Relaid, transaction: int) -> None:
        """A partition's file before a rewrite, then those after the statement: a rewrite of another
        transaction says nothing of what came between."""
        if isinstance(message, Relaid):
            self._before[message.leaf] = (transaction, message.file)
        elif isinstance(message, Told):
            for leaf, after in message.files.items():
                began, before = self._before.pop(leaf, (0, ""))
                if began == transaction:
                    self._files[leaf].append((before, after))

    def truncated(self, table: TableId, xid: int) -> bool:
        """Whether the log holds the TRUNCATE of the whole table by that transaction."""
        return xid in self._truncated[table]

    def rewritten(self, leaf: str, before: str, after: str) -> bool:
        """Whether rewrites that the log tells of, and nothing else, led from file to file."""
        steps: Mapping[str, str] = dict(self._files[leaf])
        seen = set()
        while before in steps and before not in seen:
            seen.add(before)
            before = steps[before]
            if before == after:
                return True
        return False

    def covers(self, xid: int, lsn: int) -> bool:
        """Whether the log, read up to ``lsn``, has told all that a transaction did."""
        past = [moment for moment in self.moments if moment.lsn <= lsn]
        if past:
            self.moments = self.moments[self.moments.index(past[-1]) :]
        return bool(past) and past[-1].sees(xid)
