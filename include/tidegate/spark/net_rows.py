"""What a batch adds to and takes from a table without a key: rows as a multiset.

A change is +1 of its new row and -1 of its old one. Sums of them per row are what the batch comes
to, in whichever order its changes were made: a row that came and went is nothing, and is never
even cast.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

from pyspark.sql import Column as Expr
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from tidegate.envelope.change import Op
from tidegate.schema.table import TableSchema
from tidegate.spark.row_identity import row_identity
from tidegate.spark.survey import SchemaShare
from tidegate.spark.typed import LakeShape, cast_values, cells_of


def net_rows(
    log: DataFrame,
    shape: LakeShape,
    schemas: Sequence[tuple[TableSchema, SchemaShare]],
    same: Sequence[int],
) -> DataFrame:
    """``id`` of the row (:mod:`tidegate.spark.row_identity`, over the lake columns ``same``), its
    values and flags as :func:`tidegate.spark.typed.typed` has them, and ``gone``: to be taken from
    the lake, ``copies`` times. What is to be added is there as often as it is to be added.
    """
    texts = _texts(log, any(share.unchanged for _, share in schemas))
    typed = reduce(DataFrame.unionByName, (_typed(texts, shape, *one) for one in schemas))
    values = [(F.col(f"v{i}"), shape.types[i]) for i in same]
    bad, adjusted = ([f"{flag}{word}" for word in shape.words] for flag in ("bad", "adj"))
    # Different texts may be one value in the lake. What is put rather than taken tells the values
    # of columns that are not looked at.
    net = (
        typed.withColumn("id", row_identity(values))
        .groupBy("id")
        .agg(
            F.sum("n").alias("n"),
            F.min("pos").alias("pos"),
            F.max_by(F.struct(*shape.values, *adjusted), F.col("n")).alias("row"),
            *(F.bit_or(name).alias(name) for name in bad),
        )
    )
    gone, failed = F.col("n") < 0, reduce(Expr.__or__, (F.col(name) != 0 for name in bad))
    return net.where((F.col("n") != 0) | failed).select(
        "id",
        "pos",
        gone.alias("gone"),
        F.abs("n").alias("copies"),
        F.explode(_each("n")).alias("copy"),
        *(F.col(f"row.{name}").alias(name) for name in shape.values),
        *bad,
        # What is taken away adjusts nothing (I6).
        *(F.when(gone, F.lit(0)).otherwise(F.col(f"row.{name}")).alias(name) for name in adjusted),
    )


def _texts(log: DataFrame, holes: bool) -> DataFrame:
    """Rows as the source prints them, and how many of each come (``n``, negative: go)."""
    after = F.col("after")
    if holes:
        # Replica identity FULL: what the new row leaves out is in the old one.
        after = F.transform(
            "after",
            lambda slot, place: F.when(
                F.array_contains(F.coalesce("unchanged", F.array().cast("array<int>")), place),
                F.get("before", place),
            ).otherwise(slot),
        )
    came = F.when(F.col("op") != Op.DELETE, F.struct(after.alias("image"), F.lit(1).alias("n")))
    went = F.when(
        F.col("op").isin(Op.UPDATE.value, Op.DELETE.value),
        F.struct(F.col("before").alias("image"), F.lit(-1).alias("n")),
    )
    sides = log.where(F.col("op") != Op.TRUNCATE).select(
        "schema_id", "position", F.explode(F.array_compact(F.array(came, went))).alias("side")
    )
    return (
        sides.groupBy("schema_id", F.col("side.image").alias("after"))
        .agg(F.sum("side.n").alias("n"), F.min("position").alias("pos"))
        .where("n != 0")
    )


def _typed(
    texts: DataFrame, shape: LakeShape, schema: TableSchema, share: SchemaShare
) -> DataFrame:
    cells = cells_of(shape, schema, SchemaShare(share.schema_id, share.rows))
    nothing = F.lit(None).cast("array<string>")
    rows = texts.where(F.col("schema_id") == share.schema_id).select(
        "n",
        "pos",
        "after",
        F.lit(Op.CREATE.value).alias("op"),
        *(nothing.alias(name) for name in ("key", "before", "unchanged")),
    )
    return cast_values(rows, shape, cells, ())


def _each(number: str) -> Expr:
    """As many elements as rows are to be added, one for a row to be taken."""
    one = F.lit(1).cast("bigint")
    return F.when(F.col(number) > 1, F.sequence(one, F.col(number))).otherwise(F.array(one))
