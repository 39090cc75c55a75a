"""Values that only the lake knows: gaps of rows that came into the batch with them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import Final

from pyspark.sql import Column as Expr
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from tidegate.config.pipeline import LakeTarget
from tidegate.config.sinks import WriteMode
from tidegate.errors import DataError
from tidegate.names import quote_spark
from tidegate.spark import publish
from tidegate.spark.gaps import needs
from tidegate.spark.typed import LakeShape

ROW_MOVED: Final = "apply.row_moved"
ROW_MISSING: Final = "apply.row_missing"


def fill_from_lake(
    session: SparkSession,
    rows: DataFrame,
    shape: LakeShape,
    gaps: Sequence[int],
    target: LakeTarget,
    branch: str,
) -> DataFrame:
    """Those of ``rows`` (cached) that have gaps, filled; rows the lake does not have are left out.

    The lake is read as ``branch`` stands, wide columns only from the files that may hold one of
    the keys.
    """
    open_rows = rows.where(needs(gaps))
    if not shape.key:
        return open_rows.limit(0)  # without a key there is no telling which row it was
    base = _lake_rows(session, shape, gaps, target, branch)
    inside = _within(open_rows)
    if inside is not None:
        base = base.where(inside)
    same = reduce(
        Expr.__and__, (open_rows[f"b{i}"] == base[f"base{i}"] for i in range(len(shape.key)))
    )
    joined = base.join(open_rows, same, "inner")
    if target.write_mode is WriteMode.APPEND:
        joined = _newest(joined)
    filled = {
        f"v{i}": F.when(F.col(f"n{i}"), F.col(f"lake{i}")).otherwise(F.col(f"v{i}")) for i in gaps
    }
    return joined.select(*(filled.get(name, F.col(name)).alias(name) for name in rows.columns))


def check_all_found(target: LakeTarget, missing: int) -> None:
    """A row that is not in the lake is never invented."""
    if missing:
        raise DataError(
            ROW_MISSING,
            f"{target.source}: {missing} updates leave out values that only the row they change"
            " could supply, and the lake does not have those rows",
            hint="changes were skipped (`tidegate offsets set --skip`), or something else than"
            " Tidegate changed the lake table: sweep it, then open its gate",
        )


def check_none_moved(
    target: LakeTarget, rows: DataFrame, shape: LakeShape, gaps: Sequence[int]
) -> None:
    """For branches whose chunks were read at different cuts: under the key that a row had before
    the batch there may be another row by now, or none. Only a row that stayed can be looked up."""
    stayed = reduce(
        Expr.__and__, (F.col(f"b{i}").eqNullSafe(F.col(key)) for i, key in enumerate(shape.keys))
    )
    moved = rows.where(needs(gaps) & ~stayed).count()
    if moved:
        raise DataError(
            ROW_MOVED,
            f"{target.source}: {moved} rows came under another key while the table was read, with"
            " values that neither the log nor what was read can tell",
            hint="sweep the whole table anew",
        )


def _lake_rows(
    session: SparkSession, shape: LakeShape, gaps: Sequence[int], target: LakeTarget, branch: str
) -> DataFrame:
    table = session.table(publish.spark_name(target, branch))
    if target.write_mode is WriteMode.HISTORY:
        table = table.where("_cdc_current")
    if target.write_mode is WriteMode.APPEND:
        table = table.where("_cdc_op in ('c', 'u', 'r')")
    own = ["_cdc_position"] if target.write_mode is WriteMode.APPEND else []
    return table.select(
        *(
            F.col(quote_spark(shape.names[place])).alias(f"base{i}")
            for i, place in enumerate(shape.key)
        ),
        *(F.col(quote_spark(shape.names[i])).alias(f"lake{i}") for i in gaps),
        *own,
    )


def _within(open_rows: DataFrame) -> Expr | None:
    """Bounds of the first key column as literals, so that files are skipped."""
    kind = open_rows.schema["b0"].dataType.typeName()
    if kind not in ("integer", "long", "string", "decimal", "date"):
        return None
    low, high = open_rows.agg(F.min("b0"), F.max("b0")).collect()[0]
    return F.col("base0").between(F.lit(low), F.lit(high))


def _newest(joined: DataFrame) -> DataFrame:
    """Of an append table's many rows per key, the newest; each change has its event id, and not
    every value can be grouped by."""
    newest = F.max_by(F.struct(*joined.columns), F.col("_cdc_position")).alias("newest")
    return joined.groupBy("event").agg(newest).select("newest.*")
