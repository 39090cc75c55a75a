"""The cut: tables as they were at one exact position of the log (DESIGN §7.2).

The position comes from a temporary logical slot, whose snapshot holds exactly the transactions that
committed before its consistent point. A transaction that has locked the tables first adopts that
snapshot and exports it again; then the slot goes, so that a long sweep keeps no WAL (I11).

A new slot waits for every transaction that runs. Where that takes too long, and the caller can do
with it, the cut is made beside them (:mod:`tidegate.connectors.postgres.beside`).
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from tidegate.connectors.postgres import beside as beside_running
from tidegate.connectors.postgres import chunks as chunking
from tidegate.connectors.postgres import discover
from tidegate.connectors.postgres.blockers import blockers, say_waiting, told
from tidegate.connectors.postgres.connection import Connection, connect, connect_replication
from tidegate.connectors.postgres.cut import PostgresBesideCut, PostgresCut
from tidegate.connectors.postgres.failures import translated
from tidegate.connectors.postgres.position import check_system
from tidegate.connectors.postgres.replication import (
    CommandTimeoutError,
    NewSlot,
    create_temporary_slot,
    identify,
)
from tidegate.connectors.postgres.settings import PostgresSettings
from tidegate.envelope.position import boundary
from tidegate.errors import ConfigError, HeldError
from tidegate.names import TableId

_TRANSACTION_TIMEOUT_SINCE: Final = 170000


@contextmanager
def open_cut(
    settings: PostgresSettings, tables: tuple[TableId, ...], epoch: str, *, beside: bool = False
) -> Iterator[PostgresCut]:
    """Lock, cut, export; everything ends with the context. With ``beside`` the cut need not be
    exact at its position if that would take too long."""
    holder = connect(settings, "cut")
    try:
        with translated(settings, "locking tables for the cut"):
            relations = _lock(holder, settings, tables)
        exporter = connect_replication(settings, "cut")
        try:
            yield _made(settings, holder, exporter, epoch, relations, beside)
        finally:
            exporter.close()
    finally:
        holder.close()


def _made(
    settings: PostgresSettings,
    holder: Connection,
    exporter: Connection,
    epoch: str,
    relations: dict[TableId, discover.Relation],
    beside: bool,
) -> PostgresCut:
    with translated(settings, "making the cut"):
        system = identify(exporter)
        check_system(epoch, system.identifier, settings.tables)
        slot = _slot(settings, exporter)
        if slot is not None:
            # Adopted and exported again by the transaction that holds the locks: the slot, which
            # keeps WAL and catalog rows, need not live as long as the read.
            holder.execute(f"SET TRANSACTION SNAPSHOT '{slot.snapshot}'".encode())
            row = holder.execute("SELECT pg_catalog.pg_export_snapshot()").fetchone()
            exporter.close()
            name = str((row or ("",))[0])
            position = boundary(epoch, slot.consistent_point)
            return PostgresCut(settings, holder, position, name, system.timeline, relations)
        taken = beside_running.take(settings, holder, epoch, relations) if beside else None
    if taken is None:
        raise _held_back(settings, beside)
    exporter.close()
    cut = PostgresBesideCut(
        settings, holder, taken.position, taken.snapshot_name, system.timeline, relations
    )
    cut.visible = taken.visible
    return cut


def _lock(
    holder: Connection, settings: PostgresSettings, tables: tuple[TableId, ...]
) -> dict[TableId, discover.Relation]:
    """ACCESS SHARE keeps TRUNCATE, rewrites and VACUUM FULL out until the read ends (STACK.md)."""
    relations: dict[TableId, discover.Relation] = {}
    for table in tables:
        found = discover.relation(holder, table)
        if found is None:
            raise ConfigError(
                "source.table_missing",
                f"table {table} does not exist",
                hint="check source.tables and `tidegate validate`",
            )
        relations[table] = found
    longest = int(settings.max_snapshot_seconds * 1000)
    guard = "idle_in_transaction_session_timeout"
    if holder.info.server_version >= _TRANSACTION_TIMEOUT_SINCE:
        guard = "transaction_timeout"
    holder.execute("BEGIN ISOLATION LEVEL REPEATABLE READ, READ ONLY")
    holder.execute(f"SET LOCAL lock_timeout = {int(settings.lock_timeout_seconds * 1000)}".encode())
    # The server ends the snapshot even if this process hangs (I11); its limit is an int of ms.
    holder.execute(f"SET LOCAL {guard} = {min(longest, 2**31 - 1)}".encode())
    names = ", ".join(
        chunking.from_clause(t, relations[t].kind == "p") for t in sorted(tables, key=str)
    )
    holder.execute(f"LOCK TABLE {names} IN ACCESS SHARE MODE".encode())
    return relations


def _slot(settings: PostgresSettings, exporter: Connection) -> NewSlot | None:
    """A slot for the length of a cut; None if transactions held it back for too long."""
    name, limit = f"tidegate_cut_{uuid.uuid4().hex[:12]}", settings.cut_timeout_seconds
    try:
        return create_temporary_slot(exporter, name, limit, say_waiting(settings, "the cut", limit))
    except CommandTimeoutError:
        return None


def _held_back(settings: PostgresSettings, beside: bool) -> HeldError:
    why = ""
    if beside:
        why = " (one of them may be older than a table's place in the publication)"
    return HeldError(
        "sweep.cut_held_back",
        f"open transactions held the cut back for {settings.cut_timeout_seconds:.0f} s{why}:"
        f" {told(blockers(settings))}",
        hint="let them end, or end them with the statements named, then sweep again; a longer wait"
        " is sweep.cut_timeout_seconds",
    )
