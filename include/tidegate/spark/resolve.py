"""From halves to what is written: the last state per key, or every version of a row."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column as Expr
from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from tidegate.schema.table import TableSchema
from tidegate.spark.gaps import fill_gaps
from tidegate.spark.remembered import remembered
from tidegate.spark.survey import SchemaShare
from tidegate.spark.typed import PUTS, LakeShape, cast_some, cast_values, cells_of, keyed


def last_per_key(halves: DataFrame, shape: LakeShape, *, in_order: bool = False) -> DataFrame:
    """The state each key is left in; ``gone`` where there is no row any more.

    ``in_order``: the changes of a key follow one another already, as a window over them leaves
    them, so that they need not be sorted again. Otherwise the newest comes first, of which Spark
    keeps one per key before it moves any row.
    """
    if in_order:
        later = F.lead("pos").over(Window.partitionBy(*shape.keys).orderBy("pos", "seq"))
        last = halves.withColumn("later", later).where("later IS NULL").drop("later")
    else:
        last = halves.withColumn("nth", _newest_first(len(shape.key))).where("nth = 1").drop("nth")
    return last.withColumn("gone", _is_gone("act"))


@remembered
def _newest_first(keys: int) -> Expr:
    window = Window.partitionBy(*(f"k{i}" for i in range(keys)))
    return F.row_number().over(window.orderBy(F.desc("pos"), F.desc("seq")))


def last_typed(
    log: DataFrame,
    shape: LakeShape,
    schema: TableSchema,
    share: SchemaShare,
    gaps: Sequence[int],
    *,
    follow: bool,
) -> DataFrame:
    """:func:`last_per_key` of a batch of one schema without old rows: values that a later change
    replaces are never parsed, but for those that may fill its gaps."""
    cells = cells_of(shape, schema, share)
    own = log.where(F.col("schema_id") == share.schema_id)
    halves = keyed(own, shape, schema, cells, images=False)
    if not gaps:
        return cast_values(last_per_key(halves, shape), shape, cells, gaps)
    sent = cast_some(halves, shape, cells, gaps, gaps)
    last = last_per_key(fill_gaps(sent, shape, gaps, follow=follow), shape, in_order=True)
    return cast_values(last, shape, cells, gaps, done=gaps)


def last_with_image(halves: DataFrame, shape: LakeShape) -> DataFrame:
    """Like :func:`last_per_key`, but a key that is gone keeps the last row the batch knows of it.

    ``imaged`` is false where the batch only tells that the row is gone. So soft-deleted rows look
    the same however the log is cut into batches.
    """
    until_now = (
        Window.partitionBy(*shape.keys)
        .orderBy("pos", "seq")
        .rowsBetween(Window.unboundedPreceding, Window.currentRow)
    )
    own = {"pos", "seq", "tx", "cts", "eid", "act", "twin", *shape.keys}
    carried = [name for name in halves.columns if name not in own]
    put = F.when(F.col("act").isin(*PUTS), F.struct(*carried))
    imaged = halves.withColumn("image", F.last(put, ignorenulls=True).over(until_now))
    kept = [name for name in halves.columns if name in own]
    last = last_per_key(imaged.select(*kept, "image"), shape, in_order=True)
    return last.select(
        *kept,
        "gone",
        F.col("image").isNotNull().alias("imaged"),
        *(_or_empty(halves, name).alias(name) for name in carried),
    )


def _or_empty(halves: DataFrame, name: str) -> Expr:
    """A key without an image has no values, no gaps and no flags."""
    value = F.col(f"image.{name}")
    if name.startswith("n"):
        return F.coalesce(value, F.lit(False))
    if name.startswith(("bad", "adj")):
        return F.coalesce(value, F.lit(0).cast("bigint"))
    return value


def versions(halves: DataFrame, shape: LakeShape) -> DataFrame:
    """For history: a row per version, and per key one row that closes what the lake has.

    ``close`` tells the two apart. A version has ``from_pos`` ``from_ts`` of the change that made
    it; both have ``to_pos`` ``to_ts`` of the change that ended them (a closing row: of the key's
    first change), and ``ended``: whether the row was gone with it.
    """
    in_order = Window.partitionBy(*shape.keys).orderBy("pos", "seq")
    rows = halves.select(
        "*",
        F.lead(F.struct("pos", "cts", "act")).over(in_order).alias("next"),
        F.row_number().over(in_order).alias("nth"),
    )
    is_put, is_first = F.col("act").isin(*PUTS), F.col("nth") == 1
    roles = F.filter(
        F.array(F.when(is_first, F.lit(True)), F.when(is_put, F.lit(False))),
        lambda role: role.isNotNull(),
    )
    split = rows.select("*", F.explode(roles).alias("close")).drop("nth")
    close = F.col("close")

    def end(closing: Expr, version: Expr) -> Expr:
        return F.when(close, closing).otherwise(version)

    return split.select(
        *(name for name in split.columns if name not in ("next", "seq", "tx", "eid")),
        F.when(~close, F.col("pos")).alias("from_pos"),
        F.when(~close, F.col("cts")).alias("from_ts"),
        end(F.col("pos"), F.col("next.pos")).alias("to_pos"),
        end(F.col("cts"), F.col("next.cts")).alias("to_ts"),
        end(_is_gone("act"), F.coalesce(_is_gone("next.act"), F.lit(False))).alias("ended"),
    )


@remembered
def _is_gone(act: str) -> Expr:
    return F.col(act).isin("d", "o")
