"""The catalog's traces of changes that pgoutput does not send."""

from __future__ import annotations

from typing import Final

from tidegate.connectors.postgres import discover
from tidegate.connectors.postgres.connection import Connection
from tidegate.names import TableId
from tidegate.schema.table_facts import TableFacts

_NAME_SQL: Final = """
SELECT n.nspname, c.relname
FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
WHERE c.oid = %s
"""
_DEFAULTS_SQL: Final = """
SELECT a.attname, pg_catalog.bool_or(a.atthasmissing), pg_catalog.bool_or(a.atthasdef)
FROM pg_catalog.pg_attribute a
WHERE a.attrelid IN (
    SELECT %(oid)s::oid UNION SELECT relid FROM pg_catalog.pg_partition_tree(%(oid)s)
  )
  AND a.attnum > 0 AND NOT a.attisdropped AND a.attgenerated = '' AND a.attidentity = ''
GROUP BY a.attname
ORDER BY a.attname
"""
_LABELS_SQL: Final = """
SELECT DISTINCT e.oid::text, t.typname || '.' || e.enumlabel
FROM pg_catalog.pg_attribute a
JOIN pg_catalog.pg_type t ON t.oid = a.atttypid OR t.typarray = a.atttypid
JOIN pg_catalog.pg_enum e ON e.enumtypid = t.oid
WHERE a.attrelid = %s AND a.attnum > 0 AND NOT a.attisdropped
"""
_PARTITIONS_SQL: Final = """
SELECT relid::oid::text, relid::pg_catalog.regclass::text
FROM pg_catalog.pg_partition_tree(%s) WHERE isleaf
"""


def table_facts(connection: Connection, table: TableId, known: int | None) -> TableFacts:
    """``known`` is the number that the table had when it was last seen."""
    live = discover.relation(connection, table)
    moved = None
    if known is not None and (live is None or live.oid != known):
        row = connection.execute(_NAME_SQL, (known,)).fetchone()
        moved = str(TableId(*row)) if row else None
    if live is None:
        return TableFacts(None, moved)
    columns = connection.execute(_DEFAULTS_SQL, {"oid": live.oid}).fetchall()
    return TableFacts(
        relation=live.oid,
        name_now=moved,
        filled=tuple(name for name, filled, _ in columns if filled),
        defaults=tuple(name for name, _, default in columns if default),
        labels=dict(connection.execute(_LABELS_SQL, (live.oid,)).fetchall()),
        partitions=dict(connection.execute(_PARTITIONS_SQL, (live.oid,)).fetchall()),
    )
