"""Source against lake at one position: counts, digests per bucket of keys, then the keys.

Digests say which buckets of keys differ; only those are joined row by row. Differences are named
by key and column, never by value (I9).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Final

from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame, Row, Window
from pyspark.sql import functions as F

from tidegate.names import quote_spark
from tidegate.schema.table import Column, TableSchema
from tidegate.schema.types import Kind
from tidegate.spark.audit import column as named
from tidegate.spark.digest import comparable, digest_sum, key_digest, row_digest

GROUPS: Final = 1024
"""Groups of keys: enough to narrow a few differences down, few enough to compare in Python."""
MISSING: Final = "missing"  # in the source only
EXTRA: Final = "extra"  # in the lake only
DIFFERENT: Final = "different"
_SAID: Final = {
    MISSING: "missing in the lake",
    EXTRA: "in the lake only",
    DIFFERENT: "different",
}
_UNHELD: Final = "(a value the lake cannot hold)"
_KIND, _COLUMNS, _NTH, _KEY = "_cdc_kind", "_cdc_columns", "_cdc_nth", "_cdc_key"


@dataclass(frozen=True, slots=True)
class Difference:
    """One key at which source and lake differ."""

    kind: str
    key: dict[str, str]
    columns: tuple[str, ...] = ()

    def __str__(self) -> str:
        key = ", ".join(f"{name} = {text}" for name, text in self.key.items())
        columns = f" in {', '.join(self.columns)}" if self.columns else ""
        return f"{_SAID[self.kind]}{columns}: {key}"


@dataclass(frozen=True, slots=True)
class Comparison:
    """What a comparison found."""

    source_rows: int
    lake_rows: int
    missing: int = 0
    extra: int = 0
    different: int = 0
    first: tuple[Difference, ...] = ()
    buckets: frozenset[int] = frozenset()
    """Buckets of keys (``schema.keyspace``) in which something differs."""
    left_out: frozenset[int] = frozenset()
    """Buckets with rows that were not compared."""
    keys: DataFrame | None = None
    """Every differing key once, cached until :meth:`release`; None if there is none."""

    @property
    def count(self) -> int:
        return self.missing + self.extra + self.different

    @property
    def equal(self) -> bool:
        return not self.count

    def release(self) -> None:
        if self.keys is not None:
            self.keys.unpersist()


def compare(
    source: Callable[[], DataFrame],
    lake: DataFrame,
    schema: TableSchema,
    bucket: SparkColumn,
    *,
    limit: int,
) -> Comparison:
    """Compare rows of ``source()`` with ``lake``; at most ``limit`` differences are named.

    Both have the lake's types. ``source`` is called again, at the same cut, if there is something
    to look at more closely.
    """
    ours = _digests(lake, schema)
    theirs = _digests(source(), schema)
    suspects = [group for group in {*ours, *theirs} if ours.get(group) != theirs.get(group)]
    source_rows = sum(count for count, _ in theirs.values())
    lake_rows = sum(count for count, _ in ours.values())
    if not suspects:
        return Comparison(source_rows, lake_rows)
    pairs = _differing(source(), lake, schema, suspects).persist()
    try:
        counts = {row[_KIND]: row["count"] for row in pairs.groupBy(_KIND).count().collect()}
        first = _first(pairs, schema, limit)
        keys = pairs.select(*(named(c.name) for c in schema.key_columns)).distinct().persist()
        places = keys.select(bucket.alias("bucket")).distinct().collect()
    finally:
        pairs.unpersist()
    return Comparison(
        source_rows,
        lake_rows,
        counts.get(MISSING, 0),
        counts.get(EXTRA, 0),
        counts.get(DIFFERENT, 0),
        first,
        frozenset(row.bucket for row in places),
        keys=keys,
    )


def _group(schema: TableSchema) -> SparkColumn:
    return F.pmod(key_digest(schema.key_columns), F.lit(GROUPS)).cast("int")


def _digests(frame: DataFrame, schema: TableSchema) -> dict[int, tuple[int, int]]:
    rows = (
        frame.groupBy(_group(schema).alias("bucket"))
        .agg(
            F.count(F.lit(1)).alias("rows"),
            digest_sum(row_digest(schema.columns)).alias("digest"),
        )
        .collect()
    )
    return {row.bucket: (row.rows, int(row.digest)) for row in rows}


def _differing(
    source: DataFrame, lake: DataFrame, schema: TableSchema, buckets: Sequence[int]
) -> DataFrame:
    """Keys of ``buckets`` that are on one side only or have other values."""
    wanted = _group(schema).isin(list(buckets))
    columns = [named(c.name) for c in schema.columns]
    theirs = source.where(wanted).select(*columns).withColumn(_NTH, F.lit(1)).alias("s")
    # A key that the lake has twice is one row too many: only its first one has a partner.
    copies = Window.partitionBy(*(named(c.name) for c in schema.key_columns)).orderBy(F.lit(1))
    nth = F.row_number().over(copies)
    ours = lake.where(wanted).select(*columns).withColumn(_NTH, nth).alias("l")
    on = reduce(SparkColumn.__and__, [_same(c) for c in schema.key_columns])
    on = on & (F.col(f"l.{_NTH}") == F.col(f"s.{_NTH}"))
    changed = [F.when(~_same(c), F.lit(c.name)) for c in schema.columns if c.key is None] or [
        F.lit(None).cast("string")
    ]
    kind = (
        F.when(F.col(f"l.{_NTH}").isNull(), MISSING)
        .when(F.col(f"s.{_NTH}").isNull(), EXTRA)
        .otherwise(DIFFERENT)
    )
    keys = [
        F.coalesce(_side("s", c.name), _side("l", c.name)).alias(c.name) for c in schema.key_columns
    ]
    pairs = theirs.join(ours, on, "full_outer").select(
        *keys, kind.alias(_KIND), F.array_compact(F.array(*changed)).alias(_COLUMNS)
    )
    return pairs.where((F.col(_KIND) != DIFFERENT) | (F.size(_COLUMNS) > 0))


def _first(pairs: DataFrame, schema: TableSchema, limit: int) -> tuple[Difference, ...]:
    """The first by key, keys as text."""
    few = pairs.orderBy(*(named(c.name) for c in schema.key_columns)).limit(limit)
    keys = (F.coalesce(_printed(column), F.lit(_UNHELD)) for column in schema.key_columns)
    rows = few.select(_KIND, _COLUMNS, F.array(*keys).alias(_KEY)).collect()
    return tuple(_difference(row, schema) for row in rows)


def _printed(column: Column) -> SparkColumn:
    value = named(column.name)
    if column.type.kind is Kind.BINARY:
        return F.concat(F.lit("\\x"), F.lower(F.hex(value)))
    return value.cast("string")


def _difference(row: Row, schema: TableSchema) -> Difference:
    key = {c.name: text for c, text in zip(schema.key_columns, row[_KEY], strict=True)}
    columns = tuple(row[_COLUMNS]) if row[_KIND] == DIFFERENT else ()
    return Difference(row[_KIND], key, columns)


def _side(alias: str, name: str) -> SparkColumn:
    return F.col(f"{alias}.{quote_spark(name)}")


def _same(column: Column) -> SparkColumn:
    theirs, ours = (comparable(column, _side(alias, column.name)) for alias in ("s", "l"))
    return theirs.eqNullSafe(ours)
