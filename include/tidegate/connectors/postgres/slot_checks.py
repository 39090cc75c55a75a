"""Before a capture starts: is the source's log the one we know, and is all of it still there?"""

from __future__ import annotations

from typing import Final

from tidegate.connectors.postgres.connection import Connection
from tidegate.connectors.postgres.position import check_system, way_back
from tidegate.connectors.postgres.settings import PostgresSettings
from tidegate.envelope.position import Position, format_lsn, parse_lsn
from tidegate.errors import FatalError

PLUGIN: Final = "pgoutput"

_SQL: Final = """
SELECT plugin::text, database::text, confirmed_flush_lsn::text, restart_lsn::text, wal_status,
       (SELECT system_identifier::text FROM pg_catalog.pg_control_system())
FROM (SELECT 1) AS one LEFT JOIN pg_catalog.pg_replication_slots ON slot_name = %s
"""


def check_slot(connection: Connection, settings: PostgresSettings, after: Position) -> None:
    """Refuse to go on where something between ``after`` and the slot is lost."""
    row = connection.execute(_SQL, (settings.slot,)).fetchone()
    assert row is not None  # FROM one row, left join
    plugin, database, confirmed, restart, wal_status, system = row
    tables = settings.tables
    check_system(after.epoch, system, tables)
    if plugin is None:
        raise _refuse(settings, "capture.slot_missing", "does not exist any more")
    if plugin != PLUGIN or database != settings.database:
        raise _refuse(
            settings, "capture.slot_foreign", f"belongs to {plugin} in database {database}"
        )
    if wal_status == "lost" or restart is None:
        raise _refuse(
            settings,
            "capture.slot_lost",
            "was invalidated by the server (max_slot_wal_keep_size, or its log was removed)",
        )
    if confirmed is not None and parse_lsn(confirmed) > after.lsn:
        # START_REPLICATION below it would silently be forwarded: a gap nobody would see.
        raise _refuse(
            settings,
            "capture.slot_ahead",
            f"was advanced to {confirmed} by somebody else; the change log ends at"
            f" {format_lsn(after.lsn)}",
        )


def _refuse(settings: PostgresSettings, code: str, what: str) -> FatalError:
    return FatalError(
        code, f"replication slot {settings.slot} {what}", hint=way_back(settings.tables)
    )
