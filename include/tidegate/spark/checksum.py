"""Sums of row digests: whether two sides are equal, without moving the source's rows.

The source sums its own side up in SQL while Spark does the lake's. Equal sums end a comparison;
anything else is looked at row by row, so that a text that prints otherwise costs time, never truth.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from tidegate.connectors.selecting import Checksum
from tidegate.schema.row_text import DIGEST_HEX, NULL, SEPARATOR, has_row_text
from tidegate.schema.table import Column, TableSchema
from tidegate.schema.types import Kind
from tidegate.spark.audit import column as named
from tidegate.spark.sides import Sides

_LOW_BITS = 32


def equal_rows(sides: Sides, predicate: str | None, lake: DataFrame) -> int | None:
    """The number of rows if the source's (those of ``predicate``) and ``lake`` are equal; None if
    they are not, or if it cannot be told this way."""
    if predicate is None or not has_row_text(sides.schema, sides.plain):
        return None
    with ThreadPoolExecutor(1) as pool:
        asked = pool.submit(
            sides.cut.checksum, sides.target.table, sides.schema, sides.plain, predicate
        )
        ours = lake_checksum(lake, sides.schema)
        theirs = asked.result()
    return ours.rows if ours == theirs else None


def lake_checksum(lake: DataFrame, schema: TableSchema) -> Checksum:
    """The sum over rows in the lake's types."""
    text = F.concat_ws(chr(SEPARATOR), *(_text(column) for column in schema.columns))
    digest = F.conv(F.substring(F.sha2(text, 256), 1, DIGEST_HEX), 16, -10).cast("bigint")
    # By halves: a sum of 64-bit numbers would overflow, a sum of decimals is slow.
    rows, high, low = (
        lake.select(digest.alias("_cdc_digest"))
        .agg(
            F.count(F.lit(1)),
            F.coalesce(F.sum(F.shiftright("_cdc_digest", _LOW_BITS)), F.lit(0)),
            F.coalesce(F.sum(F.col("_cdc_digest").bitwiseAND((1 << _LOW_BITS) - 1)), F.lit(0)),
        )
        .collect()[0]
    )
    return Checksum(rows, (high << _LOW_BITS) + low)


def _text(column: Column) -> SparkColumn:
    value = named(column.name)
    match column.type.kind:
        case Kind.STRING:
            text = F.concat(F.length(value).cast("string"), F.lit(":"), value)
        case Kind.BOOLEAN:
            text = F.when(value, "t").when(~value, "f")
        case Kind.FLOAT:
            text = _bits(value.cast("float"), "Float", "floatToIntBits", 8)
        case Kind.DOUBLE:
            text = _bits(value, "Double", "doubleToLongBits", 16)
        case Kind.BINARY:
            text = F.concat(F.lit("\\x"), F.lower(F.hex(value)))
        case Kind.TIMESTAMPTZ:  # sessions are in UTC (spark/session.py)
            text = F.concat(value.cast("timestamp").cast("string"), F.lit("+00"))
        case _:
            text = value.cast("string")
    return F.coalesce(text, F.lit(NULL))


def _bits(value: SparkColumn, kind: str, method: str, digits: int) -> SparkColumn:
    """A float's bits in hex; there is no function of Spark's own for it."""
    bits = F.reflect(F.lit(f"java.lang.{kind}"), F.lit(method), value).cast("bigint")
    text = F.right(F.lower(F.hex(bits)), F.lit(digits))  # a negative int has eight f too many
    return F.when(value.isNotNull(), F.lpad(text, digits, "0"))
