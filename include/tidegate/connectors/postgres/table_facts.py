"""The catalog's traces of changes that pgoutput does not send.

Plain reads of the catalog's tables, never its functions: those look at the newest state, while a
cut must see the catalog at its own snapshot.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from typing import Any, Final

from tidegate.connectors.postgres.connection import Connection
from tidegate.names import TableId
from tidegate.schema.table_facts import Leaf, TableFacts

_NAME_SQL: Final = """
SELECT n.nspname, c.relname
FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
WHERE c.oid = %s
"""
_TABLES_SQL: Final = """
SELECT n.nspname, c.relname, c.oid::bigint, c.relkind = 'p'
FROM pg_catalog.pg_class c
JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
JOIN unnest(%s::text[], %s::text[]) AS w(schema, name)
  ON w.schema = n.nspname AND w.name = c.relname
WHERE c.relkind IN ('r', 'p')
"""
_COLUMNS_SQL: Final = """
SELECT attrelid::bigint, attnum::text, attname, pg_catalog.format_type(atttypid, atttypmod),
       atthasdef OR attidentity <> ''
FROM pg_catalog.pg_attribute
WHERE attrelid = ANY(%s::oid[]) AND attnum > 0 AND NOT attisdropped
ORDER BY attnum
"""
_LABELS_SQL: Final = """
SELECT DISTINCT a.attrelid::bigint, e.oid::text, t.typname || '.' || e.enumlabel
FROM pg_catalog.pg_attribute a
JOIN pg_catalog.pg_type t ON t.oid = a.atttypid OR t.typarray = a.atttypid
JOIN pg_catalog.pg_enum e ON e.enumtypid = t.oid
WHERE a.attrelid = ANY(%s::oid[]) AND a.attnum > 0 AND NOT a.attisdropped
ORDER BY 2
"""
# A partition that was made as one has its row type, its columns and its place in the tree from one
# command. ATTACH writes the columns anew, even in the transaction that made the table.
_LEAVES_SQL: Final = """
WITH RECURSIVE tree(root, oid, since) AS (
  SELECT r, r, NULL::xid FROM unnest(%s::oid[]) AS r
  UNION ALL
  SELECT t.root, i.inhrelid, i.xmin
  FROM tree t
  JOIN pg_catalog.pg_inherits i ON i.inhparent = t.oid
  JOIN pg_catalog.pg_class p ON p.oid = i.inhparent AND p.relkind = 'p'
)
SELECT t.root::bigint, c.oid::text, n.nspname, c.relname, c.relfilenode::text,
       coalesce(t.since = y.xmin AND a.xmin = y.xmin AND a.cmin = y.cmin, t.since IS NULL),
       m.number, m.texts
FROM tree t
JOIN pg_catalog.pg_class c ON c.oid = t.oid AND c.relkind <> 'p'
JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
LEFT JOIN pg_catalog.pg_type y ON y.typrelid = c.oid
LEFT JOIN LATERAL (
  SELECT f.xmin, f.cmin FROM pg_catalog.pg_attribute f
  WHERE f.attrelid = c.oid AND f.attnum > 0 ORDER BY f.attnum LIMIT 1
) a ON true
LEFT JOIN LATERAL (
  SELECT o.attnum::text AS number, f.attmissingval::text::text[] AS texts
  FROM pg_catalog.pg_attribute f
  JOIN pg_catalog.pg_attribute o ON o.attrelid = t.root AND o.attname = f.attname
  WHERE f.attrelid = c.oid AND f.atthasmissing AND NOT f.attisdropped
) m ON true
ORDER BY c.oid, m.number
"""


def table_facts(connection: Connection, table: TableId, known: int | None) -> TableFacts:
    """``known`` is the number that the table had when it was last seen."""
    live = look(connection, (table,))[table]
    if known is None or live.relation == known:
        return live
    row = connection.execute(_NAME_SQL, (known,)).fetchone()
    if row is None:
        return live
    return TableFacts.from_dict({**live.to_dict(), "name_now": str(TableId(*row))})


def look(
    connection: Connection, tables: Sequence[TableId], unsent: Collection[TableId] = ()
) -> dict[TableId, TableFacts]:
    """All tables at once; four queries however many there are. ``unsent``: not published."""
    names = ([t.schema for t in tables], [t.name for t in tables])
    found = {
        TableId(schema, name): (oid, partitioned)
        for schema, name, oid, partitioned in connection.execute(_TABLES_SQL, names).fetchall()
    }
    oids = [oid for oid, _ in found.values()]
    columns = _by_table(connection.execute(_COLUMNS_SQL, (oids,)).fetchall())
    labels = _by_table(connection.execute(_LABELS_SQL, (oids,)).fetchall())
    leaves = _by_table(connection.execute(_LEAVES_SQL, (oids,)).fetchall())
    nothing = TableFacts(None)
    return {
        table: nothing
        if table not in found
        else TableFacts(
            relation=found[table][0],
            columns={number: name for number, name, *_ in columns[found[table][0]]},
            types={number: printed for number, _, printed, _ in columns[found[table][0]]},
            defaults=tuple(n for n, *_, default in columns[found[table][0]] if default),
            labels=dict(labels[found[table][0]]),
            partitioned=found[table][1],
            sent=table not in unsent,
            leaves=_leaves(leaves[found[table][0]]),
        )
        for table in tables
    }


def _by_table(rows: Iterable[tuple[Any, ...]]) -> dict[int, list[tuple[Any, ...]]]:
    found: dict[int, list[tuple[Any, ...]]] = defaultdict(list)
    for oid, *rest in rows:
        found[oid].append(tuple(rest))
    return found


def _leaves(rows: Iterable[tuple[Any, ...]]) -> dict[str, Leaf]:
    found: dict[str, Leaf] = {}
    for oid, schema, name, file, made_empty, number, texts in rows:
        leaf = found.setdefault(oid, Leaf(str(TableId(schema, name)), file, made_empty, {}))
        if number is not None:
            # One element, unless the type's own separator is not a comma.
            missing = texts[0] if len(texts) == 1 else None
            found[oid] = Leaf(
                leaf.name, leaf.file, leaf.made_empty, {**leaf.missing, number: missing}
            )
    return found
