"""Digests of rows: what two tables are compared by, without moving their values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from pyspark.sql import Column as SparkColumn
from pyspark.sql import functions as F

from tidegate.schema.table import Column
from tidegate.schema.types import Kind
from tidegate.spark.audit import column as named

SUM_TYPE: Final = "decimal(38,0)"
"""Sums of 64-bit digests of 10^19 rows fit; a plain bigint would overflow."""

_TO_THE_MICROSECOND: Final = {
    "timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX",
    "timestampNTZFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSS",
}
"""By itself ``to_json`` cuts to milliseconds."""


def row_digest(columns: Sequence[Column]) -> SparkColumn:
    """64 bits of a row's typed values. Which columns are NULL is part of it: Spark's hash skips
    NULLs, so that (1, NULL) and (NULL, 1) would be equal."""
    values = [canonical(column) for column in columns]
    nulls = F.concat(*(F.when(value.isNull(), "1").otherwise("0") for value in values))
    return F.xxhash64(nulls, *values)


def key_digest(columns: Sequence[Column]) -> SparkColumn:
    """64 bits of a row's key; equal keys have equal digests."""
    return F.xxhash64(*(canonical(column) for column in columns))


def canonical(column: Column) -> SparkColumn:
    """A value in the form it is hashed and compared in."""
    value = named(column.name)
    if column.type.kind is Kind.LIST:
        # Hashing an array skips its NULL elements too.
        return F.when(value.isNotNull(), F.to_json(F.struct(value.alias("v")), _TO_THE_MICROSECOND))
    if column.type.kind is Kind.VARIANT:
        return comparable(column, value)
    if column.type.kind in (Kind.FLOAT, Kind.DOUBLE):
        # 0.0 and -0.0 are equal to the source and to every reader.
        return F.when(value == 0, F.lit(0).cast(column.type.spark)).otherwise(value)
    return value


def comparable(column: Column, value: SparkColumn) -> SparkColumn:
    """A value in a form that Spark can compare. A variant has none of its own, but its text is the
    same for equal documents: keys in order, numbers without zeros at their end."""
    return F.to_json(value) if column.type.kind is Kind.VARIANT else value


def digest_sum(digest: SparkColumn) -> SparkColumn:
    """An order-independent sum of digests that sees duplicates."""
    return F.coalesce(F.sum(digest.cast(SUM_TYPE)), F.lit(0).cast(SUM_TYPE))
