"""Which rows are younger than a mark, by the transaction that wrote them (``xmin``).

A row version never changes, and keeps its ``xmin`` when it is frozen or moved by VACUUM FULL. Every
transaction that a snapshot does not see has a number at or above the snapshot's own ``xmin``. So a
row whose ``xmin`` lies below that of an earlier cut was there at that cut, as it is now, as long as
- it is the same history: numbers above the fork of a failover are given out twice;
- the table is the same, with the same columns, types, labels and files: neither a partition that
  was attached nor an ALTER that rewrites nothing gives rows new versions;
- a value's text follows from its bytes alone: a ``regclass`` prints what an object is called now;
- fewer than two thousand million transactions lie between.
"""

from __future__ import annotations

import hashlib
import json
import re
from typing import Final

from tidegate.connectors.marking import Changed
from tidegate.connectors.postgres.connection import Connection
from tidegate.envelope.mark import Mark
from tidegate.envelope.visible import NUMBERS
from tidegate.schema.table import TableSchema
from tidegate.schema.table_facts import TableFacts

APART: Final = 2**31 - 2**20
"""Transactions between mark and cut: fewer than PostgreSQL itself can tell apart."""
_TYPES: Final = re.compile(
    r"(boolean|smallint|integer|bigint|real|double precision|numeric|text|bytea|date|uuid|jsonb?"
    r"|inet|cidr|macaddr8?|interval|(character|bit)( varying)?|time(stamp)?( with(out)? time zone)?"
    r"|time(stamp)?\(\d\) with(out)? time zone)(\([\d,-]+\))?(\[\])*"
)
"""Types whose text follows from the value alone."""


def mark(
    connection: Connection, timeline: int, schema: TableSchema, facts: TableFacts
) -> Mark | None:
    """The table at the snapshot of ``connection``."""
    if not _tells_all(schema, facts):
        return None
    sql = "SELECT pg_catalog.pg_snapshot_xmin(pg_catalog.pg_current_snapshot())::text"
    row = connection.execute(sql).fetchone()
    return None if row is None else Mark(str(timeline), int(row[0]), _shape(schema, facts))


def changed(
    connection: Connection,
    timeline: int,
    from_sql: str,
    schema: TableSchema,
    facts: TableFacts,
    since: Mark,
) -> Changed | None:
    """One scan of the table, in parallel as a ``count(*)`` is."""
    if (since.line, since.shape) != (str(timeline), _shape(schema, facts)):
        return None
    sql = "SELECT pg_catalog.pg_snapshot_xmax(pg_catalog.pg_current_snapshot())::text"
    row = connection.execute(sql).fetchone()
    if row is None or not 0 <= int(row[0]) - since.version < APART:
        return None
    predicate = younger_sql(since.version, int(row[0]))
    counts = f"SELECT count(*), count(*) FILTER (WHERE {predicate}) FROM {from_sql}"
    rows, younger = connection.execute(counts.encode()).fetchone() or (0, 0)
    return Changed(int(rows), int(younger), predicate)


def younger_sql(version: int, end: int) -> str:
    """Rows written by transactions from ``version`` on, up to ``end``. Numbers have no order in
    SQL, their bytes do; ``age()`` would keep the scan from being parallel."""
    low, high = (f"'\\x{number % NUMBERS:08x}'::bytea" for number in (version, end))
    number = "pg_catalog.xidsend(xmin)"
    if version % NUMBERS <= end % NUMBERS:
        return f"({number} >= {low} AND {number} < {high})"
    return f"({number} >= {low} OR {number} < {high})"


def _tells_all(schema: TableSchema, facts: TableFacts) -> bool:
    plain = all(_TYPES.fullmatch(column.source_type) for column in schema.columns)
    return plain and not facts.partitioned and facts.relation is not None


def _shape(schema: TableSchema, facts: TableFacts) -> str:
    others = dict.fromkeys(("rewrite", "astray", "told_by", "mark"))  # the log's, or the moment's
    known = facts.to_dict() | others
    taken = [(column.recast, column.taken) for column in schema.columns]
    text = json.dumps([schema.fingerprint, taken, known], sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()
