"""Source against lake at one position: counts, digests per bucket of keys, then the keys.

Digests say which buckets of keys differ; only those are joined row by row. Differences are named
by key and column, never by value (I9).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import reduce
from typing import Final

from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F

from tidegate.names import quote_spark
from tidegate.schema.table import TableSchema
from tidegate.spark.audit import column as named
from tidegate.spark.digest import digest_sum, key_digest, row_digest

BUCKETS: Final = 1024
"""Buckets of keys: enough to narrow a few differences down, few enough to compare in Python."""
MISSING: Final = "missing"  # in the source only
EXTRA: Final = "extra"  # in the lake only
DIFFERENT: Final = "different"


@dataclass(frozen=True, slots=True)
class Difference:
    """One key at which source and lake differ."""

    kind: str
    key: dict[str, str]
    columns: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Comparison:
    """What a comparison found."""

    source_rows: int
    lake_rows: int
    missing: int = 0
    extra: int = 0
    different: int = 0
    first: tuple[Difference, ...] = field(default=())

    @property
    def equal(self) -> bool:
        return not (self.missing or self.extra or self.different)


def compare(
    source: Callable[[], DataFrame], lake: DataFrame, schema: TableSchema, *, limit: int
) -> Comparison:
    """Compare rows of ``source()`` with ``lake``; at most ``limit`` differences are named.

    ``source`` is called again, at the same cut, if there is something to look at more closely.
    """
    ours = _digests(lake, schema)
    theirs = _digests(_as_lake(source(), lake, schema), schema)
    suspects = [bucket for bucket in {*ours, *theirs} if ours.get(bucket) != theirs.get(bucket)]
    source_rows = sum(count for count, _ in theirs.values())
    lake_rows = sum(count for count, _ in ours.values())
    if not suspects:
        return Comparison(source_rows, lake_rows)
    pairs = _differing(_as_lake(source(), lake, schema), lake, schema, suspects).persist()
    try:
        counts = {row.kind: row["count"] for row in pairs.groupBy("kind").count().collect()}
        keys = [F.col(f"k{i}") for i in range(len(schema.key_columns))]
        first = pairs.orderBy(*keys).limit(limit).collect()
    finally:
        pairs.unpersist()
    return Comparison(
        source_rows,
        lake_rows,
        counts.get(MISSING, 0),
        counts.get(EXTRA, 0),
        counts.get(DIFFERENT, 0),
        tuple(_difference(row, schema) for row in first),
    )


def _as_lake(source: DataFrame, lake: DataFrame, schema: TableSchema) -> DataFrame:
    """Source rows in the lake table's own types, which may be wider."""
    types = {field.name: field.dataType for field in lake.schema.fields}
    return source.select(*(named(c.name).cast(types[c.name]).alias(c.name) for c in schema.columns))


def _bucket(schema: TableSchema) -> SparkColumn:
    return F.pmod(key_digest(schema.key_columns), F.lit(BUCKETS)).cast("int")


def _digests(frame: DataFrame, schema: TableSchema) -> dict[int, tuple[int, int]]:
    rows = (
        frame.groupBy(_bucket(schema).alias("bucket"))
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
    wanted = _bucket(schema).isin(list(buckets))
    columns = [named(c.name) for c in schema.columns]
    theirs = source.where(wanted).select(*columns).withColumn("here", F.lit(True)).alias("s")
    ours = lake.where(wanted).select(*columns).withColumn("here", F.lit(True)).alias("l")
    on = reduce(SparkColumn.__and__, [_same(c.name) for c in schema.key_columns])
    changed = [F.when(~_same(c.name), F.lit(c.name)) for c in schema.columns if c.key is None] or [
        F.lit(None).cast("string")
    ]
    kind = (
        F.when(F.col("l.here").isNull(), MISSING)
        .when(F.col("s.here").isNull(), EXTRA)
        .otherwise(DIFFERENT)
    )
    keys = [
        F.coalesce(_side("s", c.name), _side("l", c.name)).alias(f"k{i}")
        for i, c in enumerate(schema.key_columns)
    ]
    pairs = theirs.join(ours, on, "full_outer").select(
        *keys, kind.alias("kind"), F.array_compact(F.array(*changed)).alias("columns")
    )
    return pairs.where((F.col("kind") != DIFFERENT) | (F.size("columns") > 0))


def _difference(row: Row, schema: TableSchema) -> Difference:
    key = {c.name: str(row[f"k{i}"]) for i, c in enumerate(schema.key_columns)}
    columns = tuple(row.columns) if row.kind == DIFFERENT else ()
    return Difference(row.kind, key, columns)


def _side(alias: str, name: str) -> SparkColumn:
    return F.col(f"{alias}.{quote_spark(name)}")


def _same(name: str) -> SparkColumn:
    return _side("s", name).eqNullSafe(_side("l", name))
