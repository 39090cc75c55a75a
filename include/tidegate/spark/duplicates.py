"""Two rows under one key within a transaction: deferrable keys, where the source sends old rows.

``UPDATE t SET id = 3 - id`` under a deferrable key moves row 1 onto key 2 while the other row is
still there. The second move then addresses key 2, but not the row that just came: its old row
says so. Such a half is *stray* and must not remove the newcomer.
"""

from __future__ import annotations

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from tidegate.spark.typed import PUTS, LakeShape


def settle_duplicates(halves: DataFrame, shape: LakeShape) -> DataFrame:
    """Drop stray departures; mark as ``twin`` what cannot be told apart with certainty.

    Uncertain (and never seen from an application): a stray row is updated in place before it
    leaves, or three rows stand under one key. The caller refuses batches with twins.
    """
    in_order = Window.partitionBy(*shape.keys).orderBy("pos", "seq")
    prev = F.lag(F.struct("act", "tx", "sid", "ah")).over(in_order)
    rows = halves.withColumn("prev", prev)
    same = F.col("prev.tx").eqNullSafe(F.col("tx")) & (F.col("prev.sid") == F.col("sid"))
    addresses = F.col("act").isin("u", "d", "o") & F.col("bh").isNotNull()
    other = F.col("prev.act").isin(*PUTS) & (F.col("prev.ah") != F.col("bh"))
    stray = F.coalesce(addresses & same & other, F.lit(False))
    third = F.coalesce(
        same & F.col("act").isin("c", "i") & F.col("prev.act").isin("c", "i"), F.lit(False)
    )
    rows = rows.select(
        *(name for name in rows.columns if name != "prev"),
        stray.alias("stray"),
        ((stray & (F.col("act") == "u")) | third).alias("twin"),
    )
    # A running maximum: the last row of a key tells whether any of its rows was uncertain.
    seen = F.max("twin").over(in_order.rowsBetween(Window.unboundedPreceding, Window.currentRow))
    rows = rows.withColumn("twin", seen)
    return rows.where(~(F.col("stray") & F.col("act").isin("d", "o"))).drop(
        "stray", "bh", "ah", "sid"
    )
