"""The catalog's traces of changes that pgoutput does not send.

Plain reads of the catalog's tables, never its functions: those look at the newest state, while a
cut must see the catalog at its own snapshot.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from tidegate.connectors.postgres.connection import Connection
from tidegate.connectors.postgres.leaf_rows import Ground, Rows, compared, rows_of
from tidegate.connectors.postgres.moments import Moment
from tidegate.connectors.postgres.witness import Witness
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
# PARTITION OF writes a table's columns, and then its place in the tree; ATTACH PARTITION writes
# every column anew with the place. So a table was made as a partition, without rows, if one
# transaction made both and a column is older than the place. (``xmax``: a change that was rolled
# back leaves its own number of a command behind.) The same holds for every branch above it.
_LEAVES_SQL: Final = """
WITH RECURSIVE tree(root, oid, joined, made) AS (
  SELECT r, r, NULL::text, true FROM unnest(%s::oid[]) AS r
  UNION ALL
  SELECT t.root, i.inhrelid, concat_ws('/', t.joined, i.xmin::text),
         t.made AND EXISTS (
           SELECT FROM pg_catalog.pg_attribute s
           WHERE s.attrelid = i.inhrelid AND s.attname = 'tableoid' AND s.xmin = i.xmin
         ) AND EXISTS (
           SELECT FROM pg_catalog.pg_attribute f
           WHERE f.attrelid = i.inhrelid AND f.attnum > 0 AND NOT f.attisdropped
             AND f.xmin = i.xmin AND f.xmax = '0'::xid
             AND f.cmin::text::bigint < i.cmin::text::bigint
         )
  FROM tree t
  JOIN pg_catalog.pg_inherits i ON i.inhparent = t.oid
  JOIN pg_catalog.pg_class p ON p.oid = i.inhparent AND p.relkind = 'p'
)
SELECT t.root::bigint, c.oid::text, n.nspname, c.relname, c.relfilenode::text,
       t.made, t.joined, m.number, m.texts
FROM tree t
JOIN pg_catalog.pg_class c ON c.oid = t.oid AND c.relkind <> 'p'
JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
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
    now = Moment.now(connection)
    live = _with_rows(connection, look(connection, (table,))[table], now)
    if known is None or live.relation == known:
        return live
    row = connection.execute(_NAME_SQL, (known,)).fetchone()
    if row is None:
        return live
    return TableFacts.from_dict({**live.to_dict(), "name_now": str(TableId(*row))})


def _with_rows(connection: Connection, live: TableFacts, now: Moment) -> TableFacts:
    """An attached partition without rows lacks none."""
    leaves = {
        number: replace(leaf, made_empty=True)
        if not leaf.made_empty
        and rows_of(connection, TableId.parse(leaf.name), None, now) is Rows.NONE
        else leaf
        for number, leaf in live.leaves.items()
    }
    return replace(live, leaves=leaves)


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


def look_again(
    connection: Connection,
    seen: Mapping[TableId, TableFacts],
    known: Mapping[TableId, TableFacts],
    now: Moment,
    told_by: str | None,
    witness: Witness | None = None,
    through: int = 0,
) -> dict[TableId, TableFacts]:
    """Looks taken right after ``now``, with what became of the rows since those that are
    ``known``; ``told_by``: what writes ``ALTER … USING`` to the log that ``witness`` reads."""
    found = {}
    for table, facts in seen.items():
        facts = replace(facts, told_by=told_by, mark=now.mark)
        ground = known.get(table)
        if ground is not None:
            facts = compared(connection, table, facts, Ground(ground, now, witness, through))
        found[table] = facts
    return found


def look_in_cut(
    connection: Connection, table: TableId, known: TableFacts | None, told_by: str | None
) -> TableFacts:
    """Of the transaction's own snapshot. Whether the log tells of what it sees is of no matter: in
    doubt a sweep that goes on reads the table anew."""
    now = Moment.now(connection)
    before = {} if known is None else {table: known}
    return look_again(connection, look(connection, (table,)), before, now, told_by)[table]


def _by_table(rows: Iterable[tuple[Any, ...]]) -> dict[int, list[tuple[Any, ...]]]:
    found: dict[int, list[tuple[Any, ...]]] = defaultdict(list)
    for oid, *rest in rows:
        found[oid].append(tuple(rest))
    return found


def _leaves(rows: Iterable[tuple[Any, ...]]) -> dict[str, Leaf]:
    found: dict[str, Leaf] = {}
    for oid, schema, name, file, made_empty, joined, number, texts in rows:
        new = Leaf(str(TableId(schema, name)), file, made_empty, {}, joined)
        leaf = found.setdefault(oid, new)
        if number is not None:
            # One element, unless the type's own separator is not a comma.
            missing = texts[0] if len(texts) == 1 else None
            found[oid] = replace(leaf, missing={**leaf.missing, number: missing})
    return found
