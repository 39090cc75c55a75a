"""Who holds a new slot back: it waits for every transaction that runs when it is made.

Locks of transactions are shown to every user, what a session does only to some: so the locks say
who it is, and the sessions add what they may.
"""

from __future__ import annotations

import logging
from typing import Final

from tidegate.connectors.postgres.connection import session
from tidegate.connectors.postgres.replication import Waiting
from tidegate.connectors.postgres.settings import PostgresSettings
from tidegate.observability import log

_LOG = log.get(__name__)
_MOST: Final = 10
_SQL: Final = f"""
SELECT words FROM (
  SELECT 1 AS kind, a.xact_start AS since, pg_catalog.format(
           'pid %s (%s%s): SELECT pg_terminate_backend(%s)', l.pid,
           coalesce(a.usename::text, a.backend_type, 'another user'),
           ', open for ' || extract(epoch FROM pg_catalog.clock_timestamp() - a.xact_start)::bigint
             || ' s', l.pid) AS words
  FROM (SELECT DISTINCT pid FROM pg_catalog.pg_locks
        WHERE locktype = 'transactionid' AND mode = 'ExclusiveLock' AND granted) l
  LEFT JOIN pg_catalog.pg_stat_activity a ON a.pid = l.pid
  WHERE l.pid <> pg_catalog.pg_backend_pid()
  UNION ALL
  SELECT 2, prepared, pg_catalog.format(
           'prepared transaction %s (since %s): COMMIT PREPARED %L or ROLLBACK PREPARED %L',
           gid, prepared::timestamp(0), gid, gid)
  FROM pg_catalog.pg_prepared_xacts
) AS found ORDER BY since NULLS LAST, kind LIMIT {_MOST}
"""


def blockers(settings: PostgresSettings) -> list[str]:
    """Each open transaction, oldest first, with the statement that ends it."""
    with session(settings, "asking which transactions are open") as connection:
        return [str(row[0]) for row in connection.execute(_SQL.encode()).fetchall()]


def say_waiting(settings: PostgresSettings, what: str, limit: float) -> Waiting:
    """Logs who holds ``what`` back, as long as it waits."""

    def say(seconds: float) -> None:
        log.event(
            _LOG,
            f"{what} waits for open transactions of the source",
            level=logging.WARNING,
            wait_seconds=round(seconds),
            left_seconds=round(limit - seconds),
            reason=told(blockers(settings)),
        )

    return say


def told(found: list[str]) -> str:
    return "; ".join(found) or "they have ended meanwhile"
