"""Is the source ready: every problem in one report, each with the SQL that fixes it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from tidegate.connectors.postgres import ddl_messages, discover, publication, slots
from tidegate.connectors.postgres.connection import Connection, session
from tidegate.connectors.postgres.settings import MAX_VERSION, MIN_VERSION, PostgresSettings
from tidegate.connectors.postgres.table_checks import check_table
from tidegate.connectors.protocol import Problem, Severity, ValidationReport
from tidegate.connectors.source_status import SLOT_LOST
from tidegate.names import TableId, quote_sql, several

_NEEDED_SLOTS: Final = 2  # the pipeline's own, and a sweep's for a moment
_SMALL_WAL_MB: Final = 1024
_IDLE_TIMEOUT_SINCE: Final = 180000

_SERVER_SQL: Final = """
SELECT pg_catalog.current_setting('wal_level'), pg_catalog.pg_is_in_recovery(),
       pg_catalog.current_setting('max_replication_slots')::int
         - (SELECT count(*) FROM pg_catalog.pg_replication_slots),
       pg_catalog.current_setting('max_wal_senders')::int
         - (SELECT count(*) FROM pg_catalog.pg_stat_replication),
       (SELECT setting::bigint FROM pg_catalog.pg_settings WHERE name = 'max_slot_wal_keep_size')
"""
_MAY_CREATE_SQL: Final = """
SELECT pg_catalog.has_database_privilege(pg_catalog.current_database(), 'CREATE')
"""
_ROLE_SQL: Final = """
SELECT r.rolsuper OR r.rolreplication OR EXISTS (
         SELECT FROM pg_catalog.pg_roles g
         WHERE g.rolname = 'rds_replication' AND pg_catalog.pg_has_role(r.oid, g.oid, 'MEMBER'))
FROM pg_catalog.pg_roles r WHERE r.rolname = current_user
"""

_NOT_OURS_SQL: Final = """
SELECT c.oid, r.rolname, NOT r.rolsuper AND NOT r.rolcanlogin AND r.rolname !~ '^pg_'
FROM pg_catalog.pg_class c JOIN pg_catalog.pg_roles r ON r.oid = c.relowner
WHERE c.oid = ANY(%s::oid[]) AND NOT pg_catalog.pg_has_role(c.relowner, 'USAGE')
"""


def validate(settings: PostgresSettings) -> ValidationReport:
    """Nothing is changed. A source that cannot be reached raises what to do about it."""
    with session(settings, "validating") as connection:
        problems = [*_version(connection)]
        if not problems:
            problems += _server(connection, settings)
            problems += _slot(connection, settings)
            problems += _tables(connection, settings)
            problems += _publication(connection, settings)
            problems += _columns_told(connection, settings)
            problems += _generated(connection, settings)
    return ValidationReport(tuple(problems))


def _version(connection: Connection) -> Iterator[Problem]:
    version = connection.info.server_version // 10000
    if not MIN_VERSION <= version <= MAX_VERSION:
        message = f"PostgreSQL {version}; supported are {MIN_VERSION} to {MAX_VERSION}"
        yield _error("version", message)


def _server(connection: Connection, settings: PostgresSettings) -> Iterator[Problem]:
    row = connection.execute(_SERVER_SQL).fetchone() or ()
    level, recovering, slots_left, senders_left, keep_mb = row
    if recovering:
        yield _error("standby", "this is a standby; give the primary's address")
    if level != "logical":
        fix = "ALTER SYSTEM SET wal_level = 'logical'; -- then restart the server"
        yield _error("wal_level", f"wal_level is {level}, not logical", fix)
    role = connection.execute(_ROLE_SQL).fetchone()
    if role is None or not role[0]:
        yield _error(
            "replication_privilege",
            f"{settings.username} may not replicate",
            f"ALTER ROLE {quote_sql(settings.username)} REPLICATION"
            " -- on RDS: GRANT rds_replication TO it",
        )
    exists = slots.find(connection, settings.slot) is not None
    if slots_left < _NEEDED_SLOTS - exists:
        yield _full("max_replication_slots", slots_left)
    if senders_left < _NEEDED_SLOTS:
        yield _full("max_wal_senders", senders_left)
    yield from _retention(connection, keep_mb)


def _full(setting: str, left: int) -> Problem:
    message = f"{setting}: {max(left, 0)} free; one for capture and one for sweeps are needed"
    fix = f"ALTER SYSTEM SET {setting} = …; -- then restart the server"
    return _error(f"{setting}_used_up", message, fix)


def _retention(connection: Connection, keep_mb: int) -> Iterator[Problem]:
    if keep_mb < 0:
        yield _warning(
            "wal_unbounded",
            "max_slot_wal_keep_size is unlimited: while capture stands still, WAL fills the disk",
            "ALTER SYSTEM SET max_slot_wal_keep_size = '100GB'; SELECT pg_reload_conf()",
        )
    elif keep_mb < _SMALL_WAL_MB:
        yield _warning(
            "wal_bound_small",
            f"max_slot_wal_keep_size is {keep_mb} MB: a short pause of capture loses the slot,"
            " and every table must be swept again",
            "ALTER SYSTEM SET max_slot_wal_keep_size = '100GB'; SELECT pg_reload_conf()",
        )
    if connection.info.server_version >= _IDLE_TIMEOUT_SINCE:
        row = connection.execute(
            "SELECT setting::bigint FROM pg_catalog.pg_settings"
            " WHERE name = 'idle_replication_slot_timeout'"
        ).fetchone()
        if row and row[0] > 0:
            message = f"idle_replication_slot_timeout is {row[0]} s: a pause of capture that long"
            yield _warning("slot_idle_timeout", f"{message} loses the slot")


def _slot(connection: Connection, settings: PostgresSettings) -> Iterator[Problem]:
    slot = slots.find(connection, settings.slot)
    if slot is None:
        return
    drop = f"SELECT pg_drop_replication_slot('{slot.name}')"
    if slot.kind != "logical" or slot.plugin != "pgoutput" or slot.database != settings.database:
        yield _error(
            "slot_unfit",
            f"the slot {slot.name} is not a pgoutput slot of {settings.database}",
            f"{drop} -- if nobody uses it; or set source.slot_name",
        )
    elif slot.lost:
        yield _error(
            SLOT_LOST,
            f"the slot {slot.name} was invalidated"
            f" ({slot.invalid_reason or 'its WAL was removed'}): changes are missing",
            "-- nothing to run: `tidegate recover` makes a new slot and sweeps what lost changes",
        )


def _tables(connection: Connection, settings: PostgresSettings) -> Iterator[Problem]:
    if not settings.tables:
        yield _error("no_tables", "source.tables lists no table")
    for table in settings.table_ids:
        yield from check_table(connection, table, settings)


def _publication(connection: Connection, settings: PostgresSettings) -> Iterator[Problem]:
    found = publication.find(connection, settings.publication)
    relations = [discover.relation(connection, table) for table in settings.table_ids]
    live = [relation for relation in relations if relation is not None]
    partitioned = frozenset(relation.table for relation in live if relation.kind == "p")
    if found is None or found.owner() is not None:
        yield from _may_publish(connection, settings, found, live)
        return
    there = tuple(relation.table for relation in live)
    for table in (table for table in there if table not in found.sent):
        yield _error(
            "publication_tables",
            f"the publication {found.name} is not Tidegate's and does not send it",
            publication.add_sql(found.name, (table,), partitioned),
            str(table),
        )
    if partitioned and not found.via_root:
        message = f"the publication {found.name} sends partitions under their own names"
        yield _error("publication_via_root", message, publication.via_root_sql(found.name))
    yield from _sends_all(found, there)


def _sends_all(found: publication.Publication, tables: tuple[TableId, ...]) -> Iterator[Problem]:
    unsent = [a for a in publication.ACTIONS if a not in found.actions]
    if unsent:
        yield _error(
            "publication_actions",
            f"the publication {found.name} does not send {', '.join(unsent)}",
            f"ALTER PUBLICATION {quote_sql(found.name)}"
            f" SET (publish = '{', '.join(publication.ACTIONS)}')",
        )
    for table in tables:
        if table in found.filtered:
            message = f"the publication {found.name} filters rows; a sweep would bring all of them"
            fix = f"ALTER PUBLICATION {quote_sql(found.name)} SET TABLE … -- without WHERE"
            yield _error("publication_filter", message, fix, str(table))
        if table in found.narrowed:
            message = (
                f"the publication {found.name} sends listed columns only; a sweep would bring all"
            )
            fix = f"ALTER PUBLICATION {quote_sql(found.name)} SET TABLE … -- without column lists"
            yield _error("publication_columns", message, fix, str(table))


def _columns_told(connection: Connection, settings: PostgresSettings) -> Iterator[Problem]:
    """How renames are told from a drop and an add."""
    if ddl_messages.installed(connection, settings):
        message = "the event trigger notes in the log what ALTER TABLE does: renames are certain"
    elif ddl_messages.planned(connection, settings):
        message = "deploy installs an event trigger that notes what ALTER TABLE does to columns"
    else:
        why = "this user may not install" if settings.ddl_messages else "ddl_messages: off leaves"
        message = (
            f"{why} the event trigger: renames are read from the live catalog, and held where it"
            " is ambiguous"
        )
    yield Problem("postgres.ddl_messages", Severity.INFO, message)


def _generated(connection: Connection, settings: PostgresSettings) -> Iterator[Problem]:
    """Said once for all tables."""
    found = []
    for table in settings.table_ids:
        relation = discover.relation(connection, table)
        if relation is None:
            continue
        left = discover.left_out(connection, relation, settings.publication)
        names = [name for name, why in left.items() if why == discover.GENERATED]
        if names:
            found.append(f"{table} ({several(names)})")
    if found:
        yield _warning(
            "generated_columns",
            f"PostgreSQL does not send generated columns, so the lake has none of {several(found)}",
            "-- compute them in the lake (a view); or, from PostgreSQL 18 on, in a publication of"
            " your own: publish_generated_columns = stored",
        )


def _may_publish(
    connection: Connection,
    settings: PostgresSettings,
    found: publication.Publication | None,
    live: list[discover.Relation],
) -> Iterator[Problem]:
    """Creating a publication takes CREATE on the database and ownership of its tables."""
    role = quote_sql(settings.username)
    if found is None:
        row = connection.execute(_MAY_CREATE_SQL).fetchone()
        if row is not None and not row[0]:
            fix = f"GRANT CREATE ON DATABASE {quote_sql(settings.database)} TO {role}"
            yield _error(
                "create_privilege", f"{settings.username} may not create publications", fix
            )
    unsent = [one for one in live if found is None or one.table not in found.sent]
    yield from _ownership(connection, settings, found, live, unsent)


def _ownership(
    connection: Connection,
    settings: PostgresSettings,
    found: publication.Publication | None,
    live: list[discover.Relation],
    unsent: list[discover.Relation],
) -> Iterator[Problem]:
    """Said once for all tables. Never is membership of a superuser, or of a role that people or
    applications log in as, the way: it would give the user all they may do."""
    numbers = [relation.oid for relation in unsent]
    rows = connection.execute(_NOT_OURS_SQL, (numbers,)).fetchall()
    if not rows:
        return
    of = {oid: owner for oid, owner, _ in rows}
    foreign = [relation.table for relation in unsent if relation.oid in of]
    owners = sorted(set(of.values()))
    message = f"only their owner ({', '.join(owners)}) may publish {several(foreign)}"
    role = quote_sql(settings.username)
    if all(dedicated for _, _, dedicated in rows):
        fix = "; ".join(f"GRANT {quote_sql(owner)} TO {role}" for owner in owners)
    else:
        partitioned = frozenset(relation.table for relation in live if relation.kind == "p")
        if found is None:
            tables = tuple(relation.table for relation in live)
            by_owner = publication.create_sql(settings.publication, tables, partitioned)
        else:
            by_owner = publication.add_sql(found.name, tuple(foreign), partitioned)
        fix = (
            f"{by_owner}; -- by who owns them all: Tidegate then need not\n"
            "-- or give them to a role for that, which nobody logs in as: CREATE ROLE cdc_owner"
            f" NOLOGIN; GRANT cdc_owner TO {role}; ALTER TABLE … OWNER TO cdc_owner;"
        )
    problem = _error("ownership", message, fix)
    yield replace(problem, tables=tuple(str(table) for table in foreign))


def _error(code: str, message: str, fix: str | None = None, table: str | None = None) -> Problem:
    return Problem(f"postgres.{code}", Severity.ERROR, message, table, fix)


def _warning(code: str, message: str, fix: str | None = None) -> Problem:
    return Problem(f"postgres.{code}", Severity.WARNING, message, None, fix)
