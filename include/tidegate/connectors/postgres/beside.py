"""A cut beside transactions that run: one snapshot, and which transactions it holds.

A new slot waits until every transaction that runs has ended; a snapshot waits for nobody. What it
holds is a matter of transactions, not of places in the log: of those that committed around it, the
snapshot itself says which it sees (``pg_current_snapshot``), and the log says of every change by
which transaction it was made. So the changes that are missing in the rows are exactly those of
transactions the snapshot does not see.

``position`` is where the log was flushed to before the snapshot was taken, ``visible.through``
where it is after it: all that the snapshot sees lies before the latter. What it does not see may
lie before the former as well: a commit stands in the log before anybody sees it, for as long as
its standby takes. Those have to be looked for in the change log
(:func:`tidegate.lake.late_commits.unseen_from`).

Only where no transaction that runs is older than the table's place in the publication: the server
decodes a change under the publication as it was when the change was made.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Final

from tidegate.connectors.postgres import publication
from tidegate.connectors.postgres.connection import Connection, session
from tidegate.connectors.postgres.settings import PostgresSettings
from tidegate.connectors.postgres.slots import flushed
from tidegate.envelope.position import Position, boundary
from tidegate.envelope.visible import NUMBERS, Visible
from tidegate.names import TableId

_MARK: Final = "tidegate.cut"
_SNAPSHOT_SQL: Final = (
    "SELECT pg_catalog.pg_current_snapshot()::text, pg_catalog.pg_export_snapshot()"
)
_BEHIND_SQL: Final = "SELECT pg_catalog.pg_logical_emit_message(true, %s, '')"


@dataclass(frozen=True, slots=True)
class Taken:
    """A snapshot, under the name by which other sessions join it."""

    position: Position
    snapshot_name: str
    visible: Visible


def take(
    settings: PostgresSettings, holder: Connection, epoch: str, tables: Collection[TableId]
) -> Taken | None:
    """The snapshot of ``holder``'s transaction, which has locked ``tables`` and read nothing yet;
    None where a transaction that runs may have written before its table was published."""
    with session(settings, "making the cut") as other:
        low = flushed(other)
        text, name = holder.execute(_SNAPSHOT_SQL.encode()).fetchone() or ("", "")
        xmax, running = parse(str(text))
        if not published_before(other, settings.publication, tables, xmax, running):
            return None
        # A commit of our own, so that the log is flushed beyond all that the snapshot sees:
        # others may have committed without waiting for it.
        other.execute("SET synchronous_commit = local")
        other.execute(_BEHIND_SQL.encode(), (_MARK,))
        through = boundary(epoch, flushed(other))
    seen = Visible(xmax % NUMBERS, frozenset(xid % NUMBERS for xid in running), through)
    return Taken(boundary(epoch, low), str(name), seen)


def parse(snapshot: str) -> tuple[int, frozenset[int]]:
    """``xmin:xmax:running,running``; nothing from ``xmax`` on is seen, whether it runs or not."""
    _, xmax, running = snapshot.split(":")
    return int(xmax), frozenset(int(xid) for xid in running.split(",") if xid)


def published_before(
    connection: Connection,
    name: str,
    tables: Collection[TableId],
    xmax: int,
    running: frozenset[int],
) -> bool:
    """Whether all that run began after the tables' places in the publication were settled."""
    found = publication.find(connection, name)
    settled = None if found is None else found.settled()
    if settled is None or any(xid < settled for xid in running):
        return False
    # The newest number that the row's may stand for: in doubt it was altered by someone since.
    added = publication.added(connection, name)
    return all(
        table in added and xmax - (xmax - added[table]) % NUMBERS < settled for table in tables
    )
