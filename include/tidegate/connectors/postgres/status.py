"""Where the source's log stands, and what the slot makes it keep."""

from __future__ import annotations

from tidegate.connectors.postgres import slots
from tidegate.connectors.postgres.connection import session
from tidegate.connectors.postgres.position import epoch_of
from tidegate.connectors.postgres.settings import PostgresSettings
from tidegate.connectors.source_status import SlotStatus, SourceStatus
from tidegate.envelope.position import boundary


def status(settings: PostgresSettings, epoch: str | None) -> SourceStatus:
    """Positions are given in ``epoch``; without one (not deployed), in a nominal one."""
    with session(settings, "reading the status") as connection:
        current = slots.flushed(connection)
        slot = slots.find(connection, settings.slot)
        epoch = epoch or epoch_of(slots.system_identifier(connection), 0)
        keep, size = slots.keep_limit(connection), slots.wal_size(connection)
    return SourceStatus(
        current=boundary(epoch, current),
        slot=None if slot is None else _status(slot, epoch),
        keep_bytes=keep,
        log_bytes=size,
    )


def _status(slot: slots.Slot, epoch: str) -> SlotStatus:
    return SlotStatus(
        name=slot.name,
        active_pid=slot.active_pid,
        confirmed=None if slot.confirmed is None else boundary(epoch, slot.confirmed),
        retained_bytes=slot.retained_bytes,
        wal_status=slot.wal_status,
        safe_wal_bytes=slot.safe_wal_bytes,
        invalid_reason=slot.invalid_reason,
        xmin_age=slot.xmin_age,
    )
