"""Tables that could be taken, for whoever writes a pipeline's file."""

from __future__ import annotations

from typing import Final

from tidegate.connectors.postgres.connection import session
from tidegate.connectors.postgres.settings import PostgresSettings
from tidegate.connectors.protocol import AvailableTable
from tidegate.names import TableId

# Leaves of a partitioned table are taken with their root. Sizes are the planner's estimates.
_TABLES: Final = """
SELECT n.nspname, c.relname,
       EXISTS (SELECT FROM pg_catalog.pg_index i
               WHERE i.indrelid = c.oid AND i.indisprimary) AS keyed,
       greatest(c.reltuples, 0)::bigint,
       CASE WHEN c.relkind = 'p' THEN NULL ELSE pg_catalog.pg_total_relation_size(c.oid) END
FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind IN ('r', 'p') AND NOT c.relispartition AND c.relpersistence = 'p'
  AND n.nspname NOT IN ('pg_catalog', 'information_schema') AND n.nspname NOT LIKE 'pg\\_%'
  AND pg_catalog.has_table_privilege(c.oid, 'SELECT')
ORDER BY 1, 2
"""


def available(settings: PostgresSettings) -> tuple[AvailableTable, ...]:
    """Permanent tables that the user may read, by name."""
    with session(settings, "listing tables") as connection:
        rows = connection.execute(_TABLES).fetchall()
    return tuple(
        AvailableTable(str(TableId(schema, name)), keyed, rows_about, size)
        for schema, name, keyed, rows_about, size in rows
    )
