"""The pipeline's replication slot as the server reports it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from tidegate.connectors.postgres.connection import Connection
from tidegate.envelope.position import parse_lsn

_INVALIDATION_SINCE: Final = 160000  # conflicting; 17: invalidation_reason
_REASON_SINCE: Final = 170000

_SQL: Final = """
SELECT slot_name::text, slot_type, plugin::text, database::text, temporary, active_pid,
       confirmed_flush_lsn::text, restart_lsn::text, wal_status, safe_wal_size,
       coalesce(pg_catalog.pg_current_wal_lsn() - restart_lsn, 0)::bigint, {reason},
       greatest(pg_catalog.age(xmin), pg_catalog.age(catalog_xmin))
FROM pg_catalog.pg_replication_slots WHERE slot_name = %s
"""


@dataclass(frozen=True, slots=True)
class Slot:
    """A row of ``pg_replication_slots``."""

    name: str
    kind: str  # logical | physical
    plugin: str | None
    database: str | None
    temporary: bool
    active_pid: int | None
    confirmed: int | None
    restart: int | None
    wal_status: str | None  # reserved | extended | unreserved | lost
    safe_wal_bytes: int | None
    retained_bytes: int
    invalid_reason: str | None
    xmin_age: int | None

    @property
    def lost(self) -> bool:
        return self.wal_status == "lost" or self.invalid_reason is not None


def find(connection: Connection, slot: str) -> Slot | None:
    """The slot, None if there is none of that name."""
    version = connection.info.server_version
    reason = "NULL::text"
    if version >= _REASON_SINCE:
        reason = "invalidation_reason"
    elif version >= _INVALIDATION_SINCE:
        reason = "CASE WHEN conflicting THEN 'conflict with recovery' END"
    row = connection.execute(_SQL.format(reason=reason).encode(), (slot,)).fetchone()
    if row is None:
        return None
    name, kind, plugin, database, temporary, pid, confirmed, restart, wal, safe, kept, why, age = (
        row
    )
    return Slot(
        name=name,
        kind=kind,
        plugin=plugin,
        database=database,
        temporary=temporary,
        active_pid=pid,
        confirmed=None if confirmed is None else parse_lsn(confirmed),
        restart=None if restart is None else parse_lsn(restart),
        wal_status=wal,
        safe_wal_bytes=safe,
        retained_bytes=kept,
        invalid_reason=why,
        xmin_age=age,
    )


def keep_limit(connection: Connection) -> int | None:
    """The most WAL a slot may retain; None if there is no limit but the disk."""
    row = connection.execute(
        "SELECT pg_catalog.pg_size_bytes(pg_catalog.current_setting('max_slot_wal_keep_size'))"
    ).fetchone()
    size = int((row or (-1,))[0])
    return None if size < 0 else size


def wal_size(connection: Connection) -> int | None:
    """All of the WAL on the server's disk; None where this user may not look (pg_monitor may)."""
    (allowed,) = connection.execute(
        "SELECT pg_catalog.has_function_privilege('pg_catalog.pg_ls_waldir()', 'EXECUTE')"
    ).fetchone() or (False,)
    if not allowed:
        return None
    row = connection.execute(
        "SELECT coalesce(sum(size), 0)::bigint FROM pg_catalog.pg_ls_waldir()"
    ).fetchone()
    return int((row or (0,))[0])


def system_identifier(connection: Connection) -> str:
    row = connection.execute(
        "SELECT system_identifier::text FROM pg_catalog.pg_control_system()"
    ).fetchone()
    return str((row or ("",))[0])


def flushed(connection: Connection) -> int:
    """How far the server's log is on disk, which is how far it can be sent."""
    row = connection.execute("SELECT pg_catalog.pg_current_wal_flush_lsn()::text").fetchone()
    return parse_lsn(str((row or ("0/0",))[0]))
