"""Places and buckets of keys (``schema.keyspace``) as Spark computes them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from tidegate.schema.keyspace import BUCKET_PLACES, BUCKETS, SEPARATOR, STRETCH, Arcs, Striping
from tidegate.schema.table import Column, TableSchema
from tidegate.schema.types import Kind
from tidegate.spark.audit import column as named
from tidegate.spark.digest import canonical


def place(schema: TableSchema) -> SparkColumn:
    """The place of a row's key."""
    texts = [_text(column) for column in schema.key_columns]
    digest = F.sha2(F.concat_ws(chr(SEPARATOR), *texts), 256)
    return F.conv(F.substring(digest, 1, 4), 16, 10).cast("int")


def stretch(column: Column) -> SparkColumn:
    """Where the stretch begins that a row's number lies in."""
    number = named(column.name).cast("bigint")
    return number - F.pmod(number, F.lit(STRETCH))


def bucket(schema: TableSchema, striping: Striping | None = None) -> SparkColumn:
    """The bucket of a row's key."""
    if striping is None:
        return F.floor(place(schema) / F.lit(BUCKET_PLACES)).cast("int")
    number, width = named(striping.column).cast("bigint"), striping.width
    # A multiple of the width, so that the quotient is whole whatever a double loses.
    inside = F.pmod(number, F.lit(width * BUCKETS)) - F.pmod(number, F.lit(width))
    return F.round(inside / F.lit(width)).cast("int")


def striped(
    rows: DataFrame, schema: TableSchema, striping: Striping, buckets: Sequence[int]
) -> DataFrame:
    """Those of ``rows`` whose keys are in ``buckets``. What lies beyond the source's numbers is
    asked for apart: files without such numbers are skipped in either case."""
    number = named(striping.column)
    ranges = (number.between(low, high) for low, high in striping.ranges(buckets))
    inside = rows.where(reduce(SparkColumn.__or__, ranges, F.lit(False)))
    low, high = striping.ends
    beyond = rows.where((number < low) | (number > high))
    return inside.unionAll(beyond.where(bucket(schema, striping).isin(list(buckets))))


def within(schema: TableSchema, arcs: Arcs) -> SparkColumn:
    """Whether a row's key lies in ``arcs``."""
    own = place(schema)
    terms = [(own >= lower) & (own < upper) for lower, upper in arcs]
    return reduce(SparkColumn.__or__, terms, F.lit(False))


def _text(column: Column) -> SparkColumn:
    value = canonical(column)
    return F.hex(value) if column.type.kind is Kind.BINARY else value.cast("string")
