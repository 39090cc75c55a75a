"""The rows of a lake table that stand for the source's rows, by write mode."""

from __future__ import annotations

from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as F

from tidegate.config.pipeline import LakeTarget
from tidegate.config.sinks import WriteMode
from tidegate.envelope.change import Op
from tidegate.schema.table import TableSchema
from tidegate.spark.audit import column as named
from tidegate.spark.publish import spark_name


def lake_rows(
    session: SparkSession, target: LakeTarget, schema: TableSchema, snapshot_id: int
) -> DataFrame:
    """What the lake says the source holds, at one snapshot."""
    table = session.read.option("versionAsOf", str(snapshot_id)).table(
        spark_name(target.identifier)
    )
    match target.write_mode:
        case WriteMode.HISTORY:
            return table.where("_cdc_current")
        case WriteMode.APPEND:
            return _latest(table, schema)
        case WriteMode.UPSERT:
            return table.where("NOT _cdc_deleted") if target.soft_delete else table


def _latest(table: DataFrame, schema: TableSchema) -> DataFrame:
    """The latest change per key, unless it is a delete.

    A sweep re-read everything and a truncate removed everything, so that what lies before the last
    of either no longer counts.
    """
    resets = table.where(F.col("_cdc_op").isin(Op.READ.value, Op.TRUNCATE.value))
    start = resets.agg(F.max("_cdc_position")).collect()[0][0]
    rows = table.where(F.col("_cdc_op") != Op.TRUNCATE.value)
    if start is not None:
        rows = rows.where(F.col("_cdc_position") >= F.lit(start))
    keys = [named(c.name) for c in schema.key_columns]
    # A key change is two rows at one position; the delete of the old key is another key's row.
    newest = Window.partitionBy(*keys).orderBy(F.desc("_cdc_position"), F.col("_cdc_op") == "d")
    return (
        rows.withColumn("_cdc_rank", F.row_number().over(newest))
        .where((F.col("_cdc_rank") == 1) & (F.col("_cdc_op") != Op.DELETE.value))
        .drop("_cdc_rank")
    )
