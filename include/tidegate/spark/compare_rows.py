"""Source against lake where there is no key: how often each row is on either side.

Rows are counted by what they are (:mod:`tidegate.spark.row_identity`), so that one of two equal
rows too few is a difference. There is nothing to name a row by but its values, which are not said
(I9): differences are counted.
"""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from tidegate.schema.keyspace import BUCKETS
from tidegate.spark.audit import column as named
from tidegate.spark.checksum import equal_rows
from tidegate.spark.row_identity import row_identity
from tidegate.spark.sides import Sides
from tidegate.spark.verify import Comparison


def compare_rows(sides: Sides, snapshot_id: int) -> Comparison:
    """All rows of the table at the cut, and all of the lake's; sums first."""
    lake = sides.lake(snapshot_id)
    rows = equal_rows(sides, "true", lake)
    if rows is not None:
        return Comparison(rows, rows)
    theirs, ours = _counted(sides.source(), "theirs"), _counted(lake, "ours")
    own = {side: F.coalesce(F.col(side), F.lit(0)) for side in ("theirs", "ours")}
    more = own["theirs"] - own["ours"]
    totals = (own["theirs"], own["ours"], F.greatest(more, F.lit(0)), F.greatest(-more, F.lit(0)))
    sums = (F.coalesce(F.sum(total), F.lit(0)) for total in totals)
    source_rows, lake_rows, missing, extra = (
        theirs.join(ours, "id", "full_outer").agg(*sums).collect()[0]
    )
    differing = frozenset(range(BUCKETS)) if missing or extra else frozenset()
    return Comparison(source_rows, lake_rows, missing, extra, buckets=differing)


def _counted(rows: DataFrame, name: str) -> DataFrame:
    values = [(named(field.name), field.dataType) for field in rows.schema.fields]
    own = rows.select(row_identity(values).alias("id"))
    return own.groupBy("id").agg(F.count(F.lit(1)).alias(name))
