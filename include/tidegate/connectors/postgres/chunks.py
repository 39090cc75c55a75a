"""How a table is divided among the tasks that read it.

By key: ranges cut at quantiles of a sample; valid at any later cut, so a sweep can resume. By CTID:
block ranges, the fastest read there is, valid while the cut's lock keeps the table's file as it is.
"""

from __future__ import annotations

import hashlib
import itertools
from dataclasses import dataclass
from typing import Any, Final

from tidegate.connectors.cut import Chunk
from tidegate.connectors.postgres.connection import Connection
from tidegate.names import TableId, quote_sql
from tidegate.schema.table import Column, TableSchema

_SAMPLE_PER_CHUNK: Final = 300
"""Rows sampled per chunk: keeps chunks within about ±15 % of their size."""
_SAMPLE_ALL_ROWS: Final = 50_000  # below that, read all keys: cheaper than being wrong
_GUESSED_DENSITY: Final = 60.0  # rows per block of a table that was never analysed
_WHOLE: Final = "true"

_PARTS_SQL: Final = """
SELECT c.oid, pg_catalog.format('%%I.%%I', n.nspname, c.relname), c.reltuples, c.relpages,
       pg_catalog.pg_relation_size(c.oid)
         / pg_catalog.current_setting('block_size')::bigint,
       pg_catalog.has_table_privilege(c.oid, 'SELECT')
         AND pg_catalog.has_schema_privilege(n.oid, 'USAGE')
FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind = 'r' AND c.oid IN (
  SELECT %(oid)s::oid UNION SELECT relid FROM pg_catalog.pg_partition_tree(%(oid)s::oid::regclass))
ORDER BY c.oid
"""


@dataclass(frozen=True, slots=True)
class Part:
    """A table that has a file: the table itself, or a leaf partition."""

    oid: int
    sql_name: str
    density: float  # rows per block
    blocks: int
    readable: bool = True

    @property
    def rows(self) -> int:
        return int(self.density * self.blocks)


def parts(connection: Connection, oid: int) -> list[Part]:
    rows = connection.execute(_PARTS_SQL, {"oid": oid}).fetchall()
    return [
        Part(o, name, _density(tuples, pages), blocks, readable)
        for o, name, tuples, pages, blocks, readable in rows
    ]


def by_ctid(found: list[Part], partitioned: bool, chunk_rows: int) -> list[Chunk]:
    """Block ranges; the last of a file is open, so that nothing depends on its exact length."""
    chunks: list[Chunk] = []
    for part in found:
        step = max(1, int(chunk_rows / max(part.density, 1.0)))
        for first in range(0, max(part.blocks, 1), step):
            last = first + step
            predicate = f"ctid >= '({first},0)'::tid"
            if last < part.blocks:
                predicate += f" AND ctid < '({last},0)'::tid"
            if partitioned:  # true for the table itself as well as for the partition
                predicate += f" AND tableoid = {part.oid}"
            estimate = int(min(step, max(part.blocks - first, 0)) * part.density)
            relation = part.sql_name if partitioned else None
            name = f"ctid-{part.oid}-{first}"
            chunks.append(Chunk(name, predicate, estimate=estimate, relation=relation))
    return chunks


def by_key(
    connection: Connection,
    from_sql: str,
    schema: TableSchema,
    rows: int,
    chunk_rows: int,
    after: tuple[str, ...] | None,
) -> list[Chunk]:
    """Key ranges at sampled quantiles, in key order."""
    keys = schema.key_columns
    percent = 100.0
    if rows > _SAMPLE_ALL_ROWS:
        wanted = _SAMPLE_PER_CHUNK * max(1, rows // chunk_rows)
        percent = min(100.0, max(100.0 * wanted / rows, 0.0001))
    bounds, estimate = _quantiles(connection, from_sql, keys, percent, chunk_rows, after)
    edges: list[tuple[str, ...] | None] = [after, *bounds, None]
    return [
        _range(keys, lower, upper, estimate // (len(edges) - 1))
        for lower, upper in itertools.pairwise(edges)
    ]


def _quantiles(
    connection: Connection,
    from_sql: str,
    keys: tuple[Column, ...],
    percent: float,
    chunk_rows: int,
    after: tuple[str, ...] | None,
) -> tuple[list[tuple[str, ...]], int]:
    texts = ", ".join(f"concat({quote_sql(key.name)})" for key in keys)
    order = ", ".join(quote_sql(key.name) for key in keys)
    where = _lower(keys, after) if after else _WHOLE
    sample = "" if percent >= 100.0 else f" TABLESAMPLE SYSTEM ({percent:.6f}) REPEATABLE (1)"
    sql = f"""
WITH sample AS (
  SELECT ARRAY[{texts}] AS key, row_number() OVER (ORDER BY {order}) AS n, count(*) OVER () AS size
  FROM {from_sql}{sample} WHERE {where}),
planned AS (
  SELECT key, n, size, greatest(1, ceil(size * %(scale)s::float8 / %(rows)s))::bigint AS chunks
  FROM sample)
SELECT key, size FROM planned
WHERE n = 1 OR (n - 1) * chunks / size <> (n - 2) * chunks / size
ORDER BY n
"""
    scale = 100.0 / percent
    picked: list[tuple[Any, ...]] = connection.execute(
        sql.replace("%", "%%").replace("%%(scale)s", "%(scale)s").replace("%%(rows)s", "%(rows)s"),
        {"scale": scale, "rows": chunk_rows},
    ).fetchall()
    estimate = int(picked[0][1] * scale) if picked else 0
    return [tuple(key) for key, _ in picked[1:]], estimate


def _range(
    keys: tuple[Column, ...],
    lower: tuple[str, ...] | None,
    upper: tuple[str, ...] | None,
    estimate: int,
) -> Chunk:
    conditions = [_lower(keys, lower)] if lower else []
    if upper:
        conditions.append(f"{_row(keys)} < {_literals(keys, upper)}")
    digest = hashlib.sha256(repr((lower, upper)).encode()).hexdigest()[:12]
    predicate = " AND ".join(conditions) or _WHOLE
    return Chunk(f"key-{digest}", predicate, lower, upper, estimate)


def _lower(keys: tuple[Column, ...], lower: tuple[str, ...]) -> str:
    return f"{_row(keys)} >= {_literals(keys, lower)}"


def _row(keys: tuple[Column, ...]) -> str:
    return f"({', '.join(quote_sql(key.name) for key in keys)})"


def _literals(keys: tuple[Column, ...], values: tuple[str, ...]) -> str:
    typed = (f"{literal(v)}::{k.source_type}" for k, v in zip(keys, values, strict=True))
    return f"({', '.join(typed)})"


def literal(value: str) -> str:
    """An SQL string literal, whatever ``standard_conforming_strings`` says."""
    quoted = "'" + value.replace("'", "''") + "'"
    return " E" + quoted.replace("\\", "\\\\") if "\\" in value else quoted


def _density(tuples: float, pages: int) -> float:
    return tuples / pages if tuples > 0 and pages > 0 else _GUESSED_DENSITY


def from_clause(table: TableId, partitioned: bool) -> str:
    """Without ONLY, children by inheritance (tables of their own) would be read too."""
    return table.sql if partitioned else f"ONLY {table.sql}"
