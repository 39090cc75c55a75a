"""Deploy and undeploy on the source: publication first, then slot; exactly ours comes away again.

Whose an object is: a publication or trigger of ours says so in its comment; the slot cannot, so the
lake notes the intention before the slot is made (``slot_is_ours``). What we did not make is used if
it serves, and never altered or dropped.
"""

from __future__ import annotations

from typing import Final

from psycopg.sql import Literal

from tidegate import faults
from tidegate.connectors.postgres import ddl_messages, discover, publication, slots
from tidegate.connectors.postgres.blockers import blockers, say_waiting, told
from tidegate.connectors.postgres.connection import Connection, session
from tidegate.connectors.postgres.position import start_of
from tidegate.connectors.postgres.replication import CommandTimeoutError, command
from tidegate.connectors.postgres.settings import PostgresSettings
from tidegate.connectors.protocol import Provisioned
from tidegate.envelope.position import parse_lsn
from tidegate.errors import ConfigError, HeldError, RetriableError
from tidegate.names import TableId

_FAILOVER_SINCE: Final = 170000
_SLOT_MADE: Final = "slot {} created"


def plan(settings: PostgresSettings, deployment: str) -> tuple[str, ...]:
    """What ``provision`` would do, in words."""
    with session(settings, "planning the deployment") as connection:
        steps = [sql for sql, _ in _publication_steps(connection, settings, deployment)]
        if slots.find(connection, settings.slot) is None:
            steps.append(f"create the logical replication slot {settings.slot}")
        if trigger := ddl_messages.planned(connection, settings):
            steps.append(trigger)
    return tuple(steps)


def provision(
    settings: PostgresSettings, deployment: str, slot_is_ours: bool, renew: bool = False
) -> Provisioned:
    """Publication before slot: the slot must not decode changes of an unpublished table."""
    with session(settings, "deploying") as connection:
        connection.execute(f"SET lock_timeout = {int(settings.lock_timeout_seconds * 1000)}")
        actions = _publish(connection, settings, deployment)
        faults.point("deploy.after_publication")
        if renew and slot_is_ours and (lost := _drop_lost(connection, settings)):
            actions.append(lost)
            faults.point("deploy.after_drop")
        start, made = _ensure_slot(connection, settings, slot_is_ours)
        faults.point("deploy.after_slot")
        system = slots.system_identifier(connection)
        trigger = ddl_messages.ensure(connection, settings, deployment)
    if made:
        actions.append(_SLOT_MADE.format(settings.slot))
    if trigger:
        actions.append(trigger)
    return Provisioned(
        start=start_of(system, start),
        objects={"publication": settings.publication, "slot": settings.slot},
        actions=tuple(actions),
    )


def deprovision(
    settings: PostgresSettings, deployment: str, slot_is_ours: bool, dry_run: bool
) -> tuple[str, ...]:
    """Slot first: without its publication a slot's next decoding would fail."""
    actions: list[str] = []
    with session(settings, "undeploying") as connection:
        # First, so that the application's DDL is free of us whatever else fails (I11).
        if trigger := ddl_messages.remove(connection, settings, deployment, dry_run=dry_run):
            actions.append(trigger)
        slot = slots.find(connection, settings.slot)
        if slot is not None and slot_is_ours:
            if not dry_run:
                _check_free(slot)
                connection.execute("SELECT pg_catalog.pg_drop_replication_slot(%s)", (slot.name,))
            actions.append(f"slot {slot.name} dropped")
        found = publication.find(connection, settings.publication)
        if found is not None and found.owner() == deployment:
            if not dry_run:
                connection.execute(publication.drop_sql(found.name).encode())
            actions.append(f"publication {found.name} dropped")
    return tuple(actions)


Step = tuple[str, str]  # SQL, words


def _publish(connection: Connection, settings: PostgresSettings, deployment: str) -> list[str]:
    """Bring the publication to the tables, then note the first transaction that began after it:
    older ones may have written to a table before it was in (``beside``)."""
    name = settings.publication
    with connection.transaction():
        steps = _publication_steps(connection, settings, deployment)
        if steps:
            steps.append((publication.comment_sql(name, deployment, settings.pipeline_id), ""))
        actions = [words for step in steps if (words := _execute(step, connection))]
    found = publication.find(connection, name)
    if found is not None and found.owner() == deployment and found.settled() is None:
        begun = publication.own_transaction(connection)
        mark = publication.comment_sql(name, deployment, settings.pipeline_id, begun)
        connection.execute(mark.encode())
    return actions


def _publication_steps(
    connection: Connection, settings: PostgresSettings, deployment: str
) -> list[Step]:
    """The statements that bring the publication to the listed tables."""
    name, tables = settings.publication, settings.table_ids
    partitioned = _partitioned(connection, tables)
    found = publication.find(connection, name)
    if found is None:
        return [(publication.create_sql(name, tables, partitioned), f"publication {name} created")]
    if found.owner() != deployment:
        _check_foreign(found, settings, partitioned)
        return []
    steps: list[Step] = []
    if partitioned and not found.via_root:
        steps.append((publication.via_root_sql(name), f"publication {name} by partition root"))
    if found.members != frozenset(tables):
        steps.append(
            (
                publication.set_sql(name, tables, partitioned),
                f"publication {name} now holds {len(tables)} tables",
            )
        )
    return steps


def _check_foreign(
    found: publication.Publication, settings: PostgresSettings, partitioned: frozenset[TableId]
) -> None:
    """A publication that we did not make serves as it is, or is refused with the SQL to mend it."""
    missing = tuple(t for t in settings.table_ids if t not in found.sent)
    unrooted = partitioned and not found.via_root
    if missing or unrooted:
        sql = (
            publication.add_sql(found.name, missing, partitioned)
            if missing
            else (publication.via_root_sql(found.name))
        )
        raise ConfigError(
            "deploy.publication_foreign",
            f"the publication {found.name} exists, was not made by this deployment, and does not"
            f" send {', '.join(map(str, missing or partitioned))} as needed",
            hint=f"run `{sql}`, or set source.publication_name to a name that is free",
        )


def _partitioned(connection: Connection, tables: tuple[TableId, ...]) -> frozenset[TableId]:
    found = {t: discover.relation(connection, t) for t in tables}
    return frozenset(t for t, r in found.items() if r is not None and r.kind == "p")


def _execute(step: Step, connection: Connection) -> str:
    sql, words = step
    connection.execute(sql.encode())
    return words


def _drop_lost(connection: Connection, settings: PostgresSettings) -> str | None:
    """A slot that the server invalidated serves nobody any more; a healthy one is never dropped."""
    slot = slots.find(connection, settings.slot)
    if slot is None or not slot.lost:
        return None
    _check_free(slot)
    connection.execute("SELECT pg_catalog.pg_drop_replication_slot(%s)", (slot.name,))
    return f"lost slot {slot.name} dropped"


def _ensure_slot(
    connection: Connection, settings: PostgresSettings, slot_is_ours: bool
) -> tuple[int, bool]:
    """The slot's start: its consistent point, or of one we made before, what it confirmed."""
    slot = slots.find(connection, settings.slot)
    if slot is None:
        return _create_slot(connection, settings), True
    if not slot_is_ours:
        raise ConfigError(
            "deploy.slot_exists",
            f"the replication slot {slot.name} exists and was not made by this deployment",
            hint="two readers of one slot lose changes: set source.slot_name to a name that is"
            f" free, or, if nobody uses it, SELECT pg_drop_replication_slot('{slot.name}')",
        )
    if slot.kind != "logical" or slot.plugin != "pgoutput" or slot.database != settings.database:
        raise ConfigError(
            "deploy.slot_unfit",
            f"the replication slot {slot.name} is {slot.kind} {slot.plugin or ''} of database"
            f" {slot.database}, not a pgoutput slot of {settings.database}",
            hint="set source.slot_name to a name that is free",
        )
    return slot.confirmed or 0, False


def _create_slot(connection: Connection, settings: PostgresSettings) -> int:
    limit = settings.cut_timeout_seconds
    name = Literal(settings.slot).as_string(connection)
    failover = ", failover => true" if connection.info.server_version >= _FAILOVER_SINCE else ""
    make = f"pg_catalog.pg_create_logical_replication_slot({name}, 'pgoutput'{failover})"
    try:
        row = command(
            connection,
            f"SELECT lsn::text FROM {make}",
            timeout=limit,
            waiting=say_waiting(settings, f"the slot {settings.slot}", limit),
        )
    except CommandTimeoutError:
        raise RetriableError(
            "deploy.slot_waits",
            f"open transactions of the source held the new slot back for {limit:.0f} s:"
            f" {told(blockers(settings))}",
            hint="let them end, or end them with the statements named, then deploy again; a longer"
            " wait is sweep.cut_timeout_seconds",
        ) from None
    return parse_lsn(str((row or ["0/0"])[0]))


def _check_free(slot: slots.Slot) -> None:
    if slot.active_pid is not None:
        raise HeldError(
            "source.in_use",
            f"the slot {slot.name} is in use by process {slot.active_pid}",
            hint="end the capture that runs, then undeploy again",
        )
