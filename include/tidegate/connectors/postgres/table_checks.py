"""What ``validate`` asks of a table before it may join a publication.

Once published, a table without a usable identity refuses the application's own UPDATE and DELETE:
that must be found here, not there (I11).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from tidegate.connectors.postgres import discover
from tidegate.connectors.postgres.connection import Connection
from tidegate.connectors.postgres.settings import PostgresSettings
from tidegate.connectors.protocol import Problem, Severity
from tidegate.names import TableId, quote_sql, several

_FACTS_SQL: Final = """
SELECT c.relpersistence::text, c.relispartition,
       pg_catalog.has_table_privilege(c.oid, 'SELECT'),
       pg_catalog.has_schema_privilege(c.relnamespace, 'USAGE'),
       pg_catalog.pg_has_role(c.relowner, 'USAGE'),
       pg_catalog.pg_get_userbyid(c.relowner),
       pg_catalog.row_security_active(c.oid),
       EXISTS (SELECT FROM pg_catalog.pg_index i
               WHERE i.indrelid = c.oid AND i.indisprimary AND NOT i.indimmediate),
       EXISTS (SELECT FROM pg_catalog.pg_inherits h WHERE h.inhparent = c.oid)
FROM pg_catalog.pg_class c WHERE c.oid = %s
"""
_LEAVES_SQL: Final = """
SELECT n.nspname, c.relname, c.relreplident::text, c.relkind::text, c.relpersistence::text,
       pg_catalog.has_table_privilege(c.oid, 'SELECT'),
       pg_catalog.has_schema_privilege(n.oid, 'USAGE'),
       pg_catalog.row_security_active(c.oid)
FROM pg_catalog.pg_partition_tree(%s::oid::regclass) t
JOIN pg_catalog.pg_class c ON c.oid = t.relid
JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
WHERE t.isleaf ORDER BY 1, 2
"""
_KINDS: Final = {
    "v": "a view",
    "m": "a materialized view",
    "f": "a foreign table",
    "S": "a sequence",
    "i": "an index",
    "I": "an index",
    "c": "a composite type",
    "t": "a TOAST table",
}
_FULL: Final = "f"
_NOTHING: Final = "n"
_DEFAULT: Final = "d"
_BY_INDEX: Final = "i"
_WANTED: Final = {_FULL: "FULL", _DEFAULT: "DEFAULT", _NOTHING: "NOTHING"}


@dataclass(frozen=True, slots=True)
class Facts:
    persistence: str
    is_partition: bool
    may_select: bool
    may_use_schema: bool
    owns: bool
    owner: str
    filtered: bool  # row-level security applies to us
    deferrable_key: bool
    has_children: bool


def check_table(
    connection: Connection, table: TableId, settings: PostgresSettings
) -> Iterator[Problem]:
    """Every problem of one table."""
    found = discover.relation(connection, table)
    if found is None:
        yield _error("table_missing", table, "the table does not exist")
        return
    if found.kind not in ("r", "p"):
        what = _KINDS.get(found.kind, f"of kind {found.kind}")
        yield _error("table_kind", table, f"{what} has no changes to capture; list its base table")
        return
    row = connection.execute(_FACTS_SQL, (found.oid,)).fetchone()
    facts = Facts(*(row or ()))
    yield from _storage(table, facts)
    yield from _access(table, facts, settings.username)
    if found.kind == "p":
        yield from _partitions(connection, found, settings.username)
    elif facts.has_children:
        yield _warning(
            "inheritance",
            table,
            "tables that inherit from it are tables of their own: list those you want",
        )
    yield from _identity(found, facts, settings)


def _storage(table: TableId, facts: Facts) -> Iterator[Problem]:
    if facts.persistence == "u":
        yield _error(
            "table_unlogged",
            table,
            "an unlogged table writes no log",
            f"ALTER TABLE {table.sql} SET LOGGED",
        )
    if facts.persistence == "t":
        yield _error("table_temporary", table, "a temporary table writes no log")
    if facts.is_partition:
        yield _warning(
            "table_partition", table, "this is a partition; listing its root takes all partitions"
        )


def _access(table: TableId, facts: Facts, username: str) -> Iterator[Problem]:
    role = quote_sql(username)
    if not facts.may_use_schema:
        fix = f"GRANT USAGE ON SCHEMA {quote_sql(table.schema)} TO {role}"
        yield _error("schema_privilege", table, f"{username} may not use the schema", fix)
    if not facts.may_select:
        fix = grant_sql([table], username)
        yield _error("select_privilege", table, f"{username} may not read the table", fix)
    if facts.filtered:
        yield _error(
            "row_security",
            table,
            f"row-level security would hide rows from {username}",
            f"ALTER ROLE {role} BYPASSRLS",
        )


def _leaf_access(
    root: discover.Relation, leaves: Sequence[Sequence[object]], username: str
) -> Iterator[Problem]:
    """A sweep reads each partition by itself, with the partition's own privileges and policies."""
    role = quote_sql(username)
    closed = list(dict.fromkeys(quote_sql(str(leaf[0])) for leaf in leaves if not leaf[6]))
    if closed:
        fix = f"GRANT USAGE ON SCHEMA {', '.join(closed)} TO {role}"
        message = f"{username} may not use the schema of its partitions ({', '.join(closed)})"
        yield _error("partition_privilege", root.table, message, fix)
    names = [TableId(str(leaf[0]), str(leaf[1])) for leaf in leaves if not leaf[5]]
    if names:
        fix = grant_sql(names, username)
        message = f"{username} may not read the partitions {several(names)}"
        yield _error("partition_privilege", root.table, message, fix)
    hidden = [TableId(str(leaf[0]), str(leaf[1])) for leaf in leaves if leaf[7]]
    if hidden:
        fix = f"ALTER ROLE {role} BYPASSRLS"
        message = f"row-level security of {several(hidden)} would hide rows from {username}"
        yield _error("row_security", root.table, message, fix)


def grant_sql(tables: Sequence[TableId], username: str) -> str:
    """What lets ``username`` read ``tables``."""
    return f"GRANT SELECT ON {', '.join(t.sql for t in tables)} TO {quote_sql(username)}"


def _partitions(
    connection: Connection, root: discover.Relation, username: str
) -> Iterator[Problem]:
    """The log identifies rows as the leaf says and labels them as the root says."""
    leaves = connection.execute(_LEAVES_SQL, (root.oid,)).fetchall()
    yield from _leaf_access(root, [leaf for leaf in leaves if leaf[3] == "r"], username)
    for schema, name, identity, kind, persistence, *_ in leaves:
        leaf = TableId(schema, name)
        if kind == "f":
            message = f"the partition {leaf} is a foreign table; its changes are not captured"
            yield _error("partition_foreign", root.table, message)
        if persistence == "u":
            fix = f"ALTER TABLE {leaf.sql} SET LOGGED"
            message = f"the partition {leaf} is unlogged"
            yield _error("partition_unlogged", root.table, message, fix)
        if kind == "r" and identity != root.identity:
            wanted = _WANTED.get(root.identity, "USING INDEX …")
            message = (
                f"the table's REPLICA IDENTITY does not reach its partition {leaf}: once"
                " published, UPDATE and DELETE there fail or arrive without a key"
            )
            fix = f"ALTER TABLE {leaf.sql} REPLICA IDENTITY {wanted}"
            yield _error("partition_identity", root.table, message, fix)


def _identity(
    found: discover.Relation, facts: Facts, settings: PostgresSettings
) -> Iterator[Problem]:
    """Can UPDATE and DELETE be published, and does the log name the row they change?"""
    table = found.table
    if found.identity == _NOTHING:
        yield _error(
            "identity_nothing",
            table,
            "REPLICA IDENTITY NOTHING: once published, the application's UPDATE and DELETE fail",
            f"ALTER TABLE {table.sql} REPLICA IDENTITY DEFAULT",
        )
        return
    if found.identity in (_DEFAULT, _BY_INDEX) and not found.identity_key:
        yield from _no_key(found, facts, settings)
        return
    if found.identity == _FULL and not found.primary_key:
        yield from _whole_rows(table, settings)
    generated = {a.name for a in found.attributes if a.generated}
    lost = [name for name in found.key if name in generated]
    if lost:
        yield _error(
            "generated_key",
            table,
            f"the key column {', '.join(lost)} is generated, and the log does not carry it",
            f"ALTER TABLE {table.sql} REPLICA IDENTITY USING INDEX <a unique index on columns that"
            " are stored, immediate and NOT NULL>",
        )
    if found.identity == _BY_INDEX and found.primary_key != found.identity_key:
        yield _warning(
            "identity_index",
            table,
            "rows are identified by the replica identity index"
            f" ({', '.join(found.identity_key)}), not by the primary key",
        )


def _whole_rows(table: TableId, settings: PostgresSettings) -> Iterator[Problem]:
    """Without a key the log names an old row by all its values."""
    if str(table) in settings.by_key:
        yield _error(
            "no_key",
            table,
            "without a primary key nobody can tell which of two equal rows a change ended, which"
            " write_mode history and soft_delete keep",
            f"ALTER TABLE {table.sql} ADD PRIMARY KEY (…), or write_mode: append, or upsert without"
            " soft_delete, for this table",
        )
    elif str(table) not in settings.append_only:
        yield _warning(
            "keyless",
            table,
            "without a primary key equal rows are taken away one by one: a change that cannot be"
            " applied holds the table instead of becoming a dead letter, every DELETE and UPDATE"
            " looks through the lake table, and what differs is repaired by a sweep of all of it",
        )


def _no_key(
    found: discover.Relation, facts: Facts, settings: PostgresSettings
) -> Iterator[Problem]:
    table = found.table
    append_only, by_key = (
        str(table) in tables for tables in (settings.append_only, settings.by_key)
    )
    full = f"ALTER TABLE {table.sql} REPLICA IDENTITY FULL"
    if facts.deferrable_key:
        yield _error(
            "deferrable_key",
            table,
            "a DEFERRABLE primary key is no replica identity: once published, the application's"
            " UPDATE and DELETE fail",
            "make the key NOT DEFERRABLE" if by_key else f"{full}, or make the key NOT DEFERRABLE",
        )
        return
    if append_only:
        yield _error(
            "no_identity",
            table,
            "no primary key: once published, the application's UPDATE and DELETE fail",
            full,
        )
        return
    key = f"ALTER TABLE {table.sql} ADD PRIMARY KEY (…)"
    yield _error(
        "no_key",
        table,
        "no primary key: the log cannot say which row it changes, and once published the"
        " application's UPDATE and DELETE fail",
        key if by_key else f"{full}, or {key}",
    )


def _error(code: str, table: TableId, message: str, fix: str | None = None) -> Problem:
    return Problem(f"postgres.{code}", Severity.ERROR, message, str(table), fix)


def _warning(code: str, table: TableId, message: str, fix: str | None = None) -> Problem:
    return Problem(f"postgres.{code}", Severity.WARNING, message, str(table), fix)
