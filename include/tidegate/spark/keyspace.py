"""Places of keys (``schema.keyspace``) as Spark computes them."""

from __future__ import annotations

from functools import reduce

from pyspark.sql import Column as SparkColumn
from pyspark.sql import functions as F

from tidegate.schema.keyspace import BUCKET_PLACES, SEPARATOR, Arcs
from tidegate.schema.table import Column, TableSchema
from tidegate.schema.types import Kind
from tidegate.spark.digest import canonical


def place(schema: TableSchema) -> SparkColumn:
    """The place of a row's key."""
    texts = [_text(column) for column in schema.key_columns]
    digest = F.sha2(F.concat_ws(chr(SEPARATOR), *texts), 256)
    return F.conv(F.substring(digest, 1, 4), 16, 10).cast("int")


def bucket(schema: TableSchema) -> SparkColumn:
    return F.floor(place(schema) / F.lit(BUCKET_PLACES)).cast("int")


def within(schema: TableSchema, arcs: Arcs) -> SparkColumn:
    """Whether a row's key lies in ``arcs``."""
    own = place(schema)
    terms = [(own >= lower) & (own < upper) for lower, upper in arcs]
    return reduce(SparkColumn.__or__, terms, F.lit(False))


def _text(column: Column) -> SparkColumn:
    value = canonical(column)
    return F.hex(value) if column.type.kind is Kind.BINARY else value.cast("string")
