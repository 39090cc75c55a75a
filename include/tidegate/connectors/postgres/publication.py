"""The pipeline's publication: what it holds, whose it is, and the SQL that changes it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Final

from tidegate.connectors.postgres.connection import Connection
from tidegate.connectors.postgres.discover import numbers
from tidegate.errors import ConfigError
from tidegate.names import TableId, quote_sql

MARK: Final = "tidegate:"
"""Comments of publications that Tidegate made begin with this, then JSON."""

ACTIONS: Final = ("insert", "update", "delete", "truncate")

_SQL: Final = """
SELECT p.oid, p.puballtables, p.pubviaroot, p.pubinsert, p.pubupdate, p.pubdelete, p.pubtruncate,
       pg_catalog.obj_description(p.oid, 'pg_publication')
FROM pg_catalog.pg_publication p WHERE p.pubname = %s
"""
_MEMBERS_SQL: Final = """
SELECT n.nspname, c.relname, {listed}
FROM pg_catalog.pg_publication_rel r
JOIN pg_catalog.pg_class c ON c.oid = r.prrelid
JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
WHERE r.prpubid = %s ORDER BY 1, 2
"""
_ADDED_SQL: Final = """
SELECT n.nspname, c.relname, r.xmin::text
FROM pg_catalog.pg_publication p
JOIN pg_catalog.pg_publication_rel r ON r.prpubid = p.oid
JOIN pg_catalog.pg_class c ON c.oid = r.prrelid
JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
WHERE p.pubname = %s
"""
_SENT_SQL: Final = """
SELECT schemaname::text, tablename::text, {filter}
FROM pg_catalog.pg_publication_tables WHERE pubname = %s
"""
_FILTERS_SINCE: Final = 150000


@dataclass(frozen=True, slots=True)
class Publication:
    """A publication that exists."""

    name: str
    all_tables: bool
    via_root: bool
    actions: tuple[str, ...]
    comment: str | None
    members: frozenset[TableId]  # named in it
    sent: frozenset[TableId]  # sent because of it, by schema or FOR ALL TABLES as well
    filtered: frozenset[TableId]  # of which only some rows are sent
    narrowed: frozenset[TableId]  # of which only listed columns are sent

    def owner(self) -> str | None:
        """The deployment that made it, None if Tidegate did not."""
        return _mark(self.comment).get("deployment")

    def settled(self) -> int | None:
        """The number of a transaction that began after it was last altered by us; None while that
        is not known."""
        found = _mark(self.comment).get("settled")
        return found if isinstance(found, int) else None


def find(connection: Connection, name: str) -> Publication | None:
    row = connection.execute(_SQL, (name,)).fetchone()
    if row is None:
        return None
    knows = connection.info.server_version >= _FILTERS_SINCE
    filters = "rowfilter" if knows else "NULL::text"
    listed = "r.prattrs IS NOT NULL" if knows else "false"
    members = connection.execute(_MEMBERS_SQL.format(listed=listed).encode(), (row[0],)).fetchall()
    sent = connection.execute(_SENT_SQL.format(filter=filters).encode(), (name,)).fetchall()
    return Publication(
        name=name,
        all_tables=row[1],
        via_root=row[2],
        actions=tuple(a for a, on in zip(ACTIONS, row[3:7], strict=True) if on),
        comment=row[7],
        members=frozenset(TableId(schema, table) for schema, table, _ in members),
        sent=frozenset(TableId(schema, table) for schema, table, _ in sent),
        filtered=frozenset(TableId(schema, table) for schema, table, rows in sent if rows),
        narrowed=frozenset(TableId(schema, table) for schema, table, columns in members if columns),
    )


_PUBLISHED_SQL: Final = """
SELECT schemaname::text, tablename::text FROM pg_catalog.pg_publication_tables WHERE pubname = %s
"""


def unpublished(
    connection: Connection, name: str, tables: tuple[TableId, ...]
) -> frozenset[TableId]:
    """Tables whose changes the publication does not send: new in the file, or made anew."""
    rows = connection.execute(_PUBLISHED_SQL, (name,)).fetchall()
    return frozenset(tables) - {TableId(schema, table) for schema, table in rows}


def check_published(connection: Connection, name: str, tables: tuple[TableId, ...]) -> None:
    """Refuse to capture where no change would be sent at all. A table that was dropped, or is
    not published, stops nobody else: looks at the catalog tell of it, and apply holds it (I8)."""
    there = tuple(numbers(connection, tables))
    if there and len(unpublished(connection, name, there)) == len(there):
        unsent = ", ".join(map(str, there))
        raise ConfigError(
            "capture.not_published",
            f"the publication {name} does not send {unsent}",
            hint="run `tidegate deploy`, then sweep these tables: changes made meanwhile were not"
            " captured",
        )


def added(connection: Connection, name: str) -> dict[TableId, int]:
    """Its tables, and the transactions that named them in it: numbers of 32 bits."""
    rows = connection.execute(_ADDED_SQL, (name,)).fetchall()
    return {TableId(schema, table): int(xid) for schema, table, xid in rows}


def own_transaction(connection: Connection) -> int:
    """The number of a transaction of its own: whatever has a higher one writes later."""
    row = connection.execute("SELECT pg_catalog.pg_current_xact_id()::text").fetchone()
    return int((row or ("0",))[0])


def comment_sql(name: str, deployment: str, pipeline_id: str, settled: int | None = None) -> str:
    facts: dict[str, Any] = {"deployment": deployment, "pipeline": pipeline_id}
    if settled is not None:
        facts["settled"] = settled
    mark = MARK + json.dumps(facts)
    return f"COMMENT ON PUBLICATION {quote_sql(name)} IS '{mark}'"


def create_sql(name: str, tables: tuple[TableId, ...], partitioned: frozenset[TableId]) -> str:
    """Only the listed tables; partitions speak as their root."""
    return (
        f"CREATE PUBLICATION {quote_sql(name)} FOR TABLE {_names(tables, partitioned)}"
        " WITH (publish_via_partition_root = true)"
    )


def set_sql(name: str, tables: tuple[TableId, ...], partitioned: frozenset[TableId]) -> str:
    return f"ALTER PUBLICATION {quote_sql(name)} SET TABLE {_names(tables, partitioned)}"


def add_sql(name: str, tables: tuple[TableId, ...], partitioned: frozenset[TableId]) -> str:
    return f"ALTER PUBLICATION {quote_sql(name)} ADD TABLE {_names(tables, partitioned)}"


def via_root_sql(name: str) -> str:
    return f"ALTER PUBLICATION {quote_sql(name)} SET (publish_via_partition_root = true)"


def drop_sql(name: str) -> str:
    return f"DROP PUBLICATION {quote_sql(name)}"


def _names(tables: tuple[TableId, ...], partitioned: frozenset[TableId]) -> str:
    """ONLY: a table's children by inheritance are tables of their own."""
    return ", ".join(t.sql if t in partitioned else f"ONLY {t.sql}" for t in tables)


def _mark(comment: str | None) -> dict[str, Any]:
    if not comment or not comment.startswith(MARK):
        return {}
    try:
        mark = json.loads(comment.removeprefix(MARK))
    except ValueError:  # someone edited it: then it is theirs
        return {}
    return mark if isinstance(mark, dict) else {}
