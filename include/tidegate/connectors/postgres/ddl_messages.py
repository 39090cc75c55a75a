"""Event triggers that write a table's columns to the log whenever ALTER TABLE changed it, and that
``USING`` may have given old rows other values.

pgoutput names columns, it does not number them: which column is which after a rename is certain
only from the numbers. The message is part of the transaction, so it stands in the log exactly where
the change does. Without the trigger (it takes a superuser) the live catalog is asked instead.

The application's DDL comes first (I11): the function reads catalogs, writes one message, and
swallows whatever goes wrong, inside the server.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import psycopg

from tidegate.connectors.postgres.connection import Connection
from tidegate.connectors.postgres.pgoutput import LogicalMessage, RelationColumn, RelationMessage
from tidegate.connectors.postgres.publication import MARK
from tidegate.connectors.postgres.settings import PostgresSettings
from tidegate.names import TableId, quote_sql

_VERSION: Final = 1
_RELAID_VERSION: Final = 2
"""Of a message that releases before it do not know, and pass over."""

_FIND_SQL: Final = """
SELECT pg_catalog.obj_description(t.oid, 'pg_event_trigger'), p.prosrc, t.evtenabled::text
FROM pg_catalog.pg_event_trigger t JOIN pg_catalog.pg_proc p ON p.oid = t.evtfoid
WHERE t.evtname = %s
"""
_TOLD_BY_SQL: Final = """
SELECT t.oid || '/' || t.xmin || '/' || p.xmin
FROM pg_catalog.pg_event_trigger t JOIN pg_catalog.pg_proc p ON p.oid = t.evtfoid
WHERE t.evtname = %s AND t.evtenabled IN ('O', 'A')
"""
_SCHEMA_SQL: Final = """
SELECT pg_catalog.obj_description(n.oid, 'pg_namespace'),
       EXISTS (SELECT FROM pg_catalog.pg_depend d
               WHERE d.refclassid = 'pg_catalog.pg_namespace'::pg_catalog.regclass
                 AND d.refobjid = n.oid)
FROM pg_catalog.pg_namespace n WHERE n.nspname = %s
"""
# An exception block is a subtransaction, and the server sorts a message of one by where it *ends*:
# beside a row of the outer transaction that begins there, either may come first (*measured*, 16 and
# 18). The empty message stands between the two.
_BODY: Final = """
DECLARE
  changed record;
BEGIN
  IF TG_EVENT = 'table_rewrite' THEN
    -- Before the rewrite: a partition has the file that it had until now.
    PERFORM pg_catalog.pg_logical_emit_message(true, {prefix}, pg_catalog.json_build_object(
      'version', {relaid_version}, 'relaid', c.oid::text, 'file', c.relfilenode::text)::text)
    FROM pg_catalog.pg_class c
    WHERE c.oid = pg_catalog.pg_event_trigger_table_rewrite_oid() AND c.relispartition;
    SELECT c.oid, n.nspname, c.relname INTO changed
    FROM pg_catalog.pg_class c
    JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
    WHERE c.oid = coalesce(
      pg_catalog.pg_partition_root(pg_catalog.pg_event_trigger_table_rewrite_oid()),
      pg_catalog.pg_event_trigger_table_rewrite_oid());
    -- 4: a column's values are computed anew. Without USING they are the same values; a statement
    -- that shows neither word was run by a function, and may have any.
    IF pg_catalog.pg_event_trigger_table_rewrite_reason() & 4 <> 0
       AND (pg_catalog.current_query() ~* '\\yusing\\y'
            OR pg_catalog.current_query() !~* '\\yalter\\y')
    THEN
      PERFORM pg_catalog.pg_logical_emit_message(true, {prefix}, pg_catalog.json_build_object(
        'version', {version}, 'rewritten', changed.oid::bigint,
        'schema', changed.nspname, 'name', changed.relname)::text);
      PERFORM pg_catalog.pg_logical_emit_message(true, {prefix}, '');
    END IF;
    RETURN;
  END IF;
  FOR changed IN
    SELECT c.oid, n.nspname, c.relname, c.relreplident, c.relkind
    FROM (SELECT DISTINCT objid FROM pg_catalog.pg_event_trigger_ddl_commands()
          WHERE classid = 'pg_catalog.pg_class'::pg_catalog.regclass) d
    JOIN pg_catalog.pg_class c ON c.oid = d.objid AND c.relkind IN ('r', 'p')
    JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
    JOIN pg_catalog.pg_publication p ON p.pubname = {publication}
    WHERE p.puballtables OR EXISTS (
      SELECT FROM pg_catalog.pg_publication_rel r WHERE r.prpubid = p.oid AND r.prrelid = c.oid)
  LOOP
    PERFORM pg_catalog.pg_logical_emit_message(true, {prefix}, pg_catalog.json_build_object(
      'version', {version}, 'relation', changed.oid::bigint, 'schema', changed.nspname,
      'name', changed.relname, 'identity', changed.relreplident,
      'files', (
        -- pg_partition_tree() would lock every partition.
        WITH RECURSIVE tree(oid) AS (
          SELECT i.inhrelid FROM pg_catalog.pg_inherits i
          WHERE i.inhparent = changed.oid AND changed.relkind = 'p'
          UNION ALL
          SELECT i.inhrelid FROM tree t JOIN pg_catalog.pg_inherits i ON i.inhparent = t.oid
        )
        SELECT pg_catalog.json_object_agg(p.oid::text, p.relfilenode::text)
        FROM tree t JOIN pg_catalog.pg_class p ON p.oid = t.oid AND p.relkind = 'r'),
      'columns', (
        SELECT pg_catalog.json_agg(pg_catalog.json_build_array(
          a.attnum, a.attname, a.atttypid::bigint, a.atttypmod, a.attgenerated <> '',
          EXISTS (
            SELECT FROM pg_catalog.pg_index i
            WHERE i.indrelid = a.attrelid AND a.attnum = ANY (i.indkey[0:i.indnkeyatts - 1])
              AND CASE changed.relreplident WHEN 'd' THEN i.indisprimary AND i.indimmediate
                                            WHEN 'i' THEN i.indisreplident END)
        ) ORDER BY a.attnum)
        FROM pg_catalog.pg_attribute a
        WHERE a.attrelid = changed.oid AND a.attnum > 0 AND NOT a.attisdropped)
    )::text);
    PERFORM pg_catalog.pg_logical_emit_message(true, {prefix}, '');
  END LOOP;
EXCEPTION WHEN OTHERS THEN
  NULL; -- the change of the table is none of our business
END
"""


@dataclass(frozen=True, slots=True)
class Told:
    """A table's columns right after ALTER TABLE."""

    message: RelationMessage  # as pgoutput would describe it from here on
    numbers: dict[str, int]  # by name, generated columns included
    generated: bool  # whether some columns may not be sent
    files: Mapping[str, str] = field(default_factory=dict)  # of partitions, by number

    @property
    def relid(self) -> int:
        return self.message.relid


@dataclass(frozen=True, slots=True)
class Rewritten:
    """A table whose old rows ``ALTER … USING`` may have given other values."""

    table: TableId


@dataclass(frozen=True, slots=True)
class Relaid:
    """A partition that ALTER TABLE is about to write to another file."""

    leaf: str  # its number
    file: str  # that it had


def trigger_name(settings: PostgresSettings) -> str:
    return f"tidegate_{settings.pipeline_id}_ddl"


def _rewrite_name(settings: PostgresSettings) -> str:
    return f"tidegate_{settings.pipeline_id}_rewrite"


def prefix(settings: PostgresSettings) -> str:
    """What our messages begin with; other pipelines of the database have their own."""
    return f"tidegate:{settings.pipeline_id}"


def installed(connection: Connection, settings: PostgresSettings) -> bool:
    """Whether the trigger is there, is ours and fires."""
    row = connection.execute(_FIND_SQL, (trigger_name(settings),)).fetchone()
    return row is not None and (row[0] or "").startswith(MARK) and row[2] in ("O", "A")


def told_by(connection: Connection, settings: PostgresSettings) -> str | None:
    """The event trigger that tells of ``ALTER … USING``, where it fires: another text once it was
    away for a while."""
    row = connection.execute(_TOLD_BY_SQL, (_rewrite_name(settings),)).fetchone()
    return None if row is None or not installed(connection, settings) else str(row[0])


def ensure(connection: Connection, settings: PostgresSettings, deployment: str) -> str | None:
    """Make, renew or (``ddl_messages: off``) remove the trigger; what was done, None: nothing.

    Who may not make one goes on without.
    """
    name = trigger_name(settings)
    row = connection.execute(_FIND_SQL, (name,)).fetchone()
    if row is not None and not _is_ours(row[0], deployment):
        return None
    if not settings.ddl_messages:
        return remove(connection, settings, deployment)
    if row is not None and row[1] == _body(settings):
        return None
    try:
        with connection.transaction():
            made = connection.execute(_SCHEMA_SQL, (_schema_name(settings),)).fetchone() is None
            for statement in _statements(settings, deployment, with_schema=made):
                connection.execute(statement.encode())
    except psycopg.errors.InsufficientPrivilege:
        return None
    return f"event trigger {name} " + ("created" if row is None else "renewed")


def remove(
    connection: Connection, settings: PostgresSettings, deployment: str, *, dry_run: bool = False
) -> str | None:
    """Take away what :func:`ensure` made for ``deployment``."""
    name = trigger_name(settings)
    row = connection.execute(_FIND_SQL, (name,)).fetchone()
    if row is None or not _is_ours(row[0], deployment):
        return None
    if not dry_run:
        with connection.transaction():
            for own in (name, _rewrite_name(settings)):
                connection.execute(f"DROP EVENT TRIGGER IF EXISTS {quote_sql(own)}".encode())
            connection.execute(f"DROP FUNCTION {_function(settings)}()".encode())
            mark = connection.execute(_SCHEMA_SQL, (_schema_name(settings),)).fetchone()
            if mark is not None and _is_ours(mark[0], deployment) and not mark[1]:
                connection.execute(f"DROP SCHEMA {_schema(settings)}".encode())
    return f"event trigger {name} dropped"


def planned(connection: Connection, settings: PostgresSettings) -> str | None:
    """What :func:`ensure` would do about a trigger that is not there."""
    row = connection.execute(
        "SELECT rolsuper FROM pg_catalog.pg_roles WHERE rolname = current_user"
    ).fetchone()
    may = row is not None and row[0] and settings.ddl_messages
    if not may or connection.execute(_FIND_SQL, (trigger_name(settings),)).fetchone() is not None:
        return None
    return f"create the event trigger {trigger_name(settings)}"


def parse(message: LogicalMessage) -> Told | Rewritten | Relaid | None:
    """What a message of ours says; None for an empty one, or another release's."""
    if not message.content:
        return None
    data: dict[str, Any] = json.loads(message.content)
    if data.get("version") == _RELAID_VERSION:
        return Relaid(data["relaid"], data["file"])
    if data.get("version") != _VERSION:
        return None
    table = TableId(data["schema"], data["name"])
    if "rewritten" in data:
        return Rewritten(table)
    full = data["identity"] == "f"
    columns = tuple(
        RelationColumn(name, type_oid, typmod, full or key)
        for _, name, type_oid, typmod, generated, key in data["columns"]
        if not generated
    )
    return Told(
        RelationMessage(data["relation"], table, data["identity"], columns),
        {name: number for number, name, *_ in data["columns"]},
        any(generated for *_, generated, _ in data["columns"]),
        data.get("files") or {},
    )


def _statements(settings: PostgresSettings, deployment: str, *, with_schema: bool) -> list[str]:
    name, function, schema = (
        quote_sql(trigger_name(settings)),
        _function(settings),
        _schema(settings),
    )
    rewrite = quote_sql(_rewrite_name(settings))
    mark = MARK + json.dumps({"deployment": deployment, "pipeline": settings.pipeline_id})
    own = [f"CREATE SCHEMA {schema}", f"COMMENT ON SCHEMA {schema} IS '{mark}'"]
    return [
        *(own if with_schema else ()),
        f"DROP EVENT TRIGGER IF EXISTS {name}",
        f"DROP EVENT TRIGGER IF EXISTS {rewrite}",
        f"CREATE OR REPLACE FUNCTION {function}() RETURNS event_trigger LANGUAGE plpgsql"
        f" SET search_path = pg_catalog AS $tidegate${_body(settings)}$tidegate$",
        f"CREATE EVENT TRIGGER {name} ON ddl_command_end WHEN TAG IN ('ALTER TABLE')"
        f" EXECUTE FUNCTION {function}()",
        f"CREATE EVENT TRIGGER {rewrite} ON table_rewrite EXECUTE FUNCTION {function}()",
        f"COMMENT ON EVENT TRIGGER {name} IS '{mark}'",
    ]


def _body(settings: PostgresSettings) -> str:
    return _BODY.format(
        publication=_literal(settings.publication),
        prefix=_literal(prefix(settings)),
        version=_VERSION,
        relaid_version=_RELAID_VERSION,
    )


def _schema_name(settings: PostgresSettings) -> str:
    return f"tidegate_{settings.pipeline_id}"


def _schema(settings: PostgresSettings) -> str:
    return quote_sql(_schema_name(settings))


def _function(settings: PostgresSettings) -> str:
    return f"{_schema(settings)}.{quote_sql('tell_columns')}"


def _literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _is_ours(comment: str | None, deployment: str) -> bool:
    return bool(comment) and f'"deployment": "{deployment}"' in str(comment)
