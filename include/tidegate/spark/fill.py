"""Computed defaults: the value that a new column has in rows older than it.

The source adds it without touching a row, so the log never tells it; here every row of the lake
that is older than the column gets it, on the batch's branch, before the batch (I3, I5). What is
older includes closed versions and the rows of an append table: the source, too, shows any row it
had before with the default, and the result does not depend on how the log is cut into batches.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from pyspark.sql import Column as Expr
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from tidegate.config.pipeline import LakeTarget
from tidegate.config.sinks import WriteMode
from tidegate.errors import DataError
from tidegate.lake.schema_hold import needs_sweep
from tidegate.names import quote_spark
from tidegate.schema.table import Column
from tidegate.spark import publish
from tidegate.spark.casts import cast
from tidegate.spark.write_options import write_options

TWO_AGES: Final = "apply.rows_of_two_ages"


def fill(
    session: SparkSession,
    target: LakeTarget,
    branch: str,
    columns: Sequence[Column],
    properties: Mapping[str, str],
) -> None:
    """Write the rows of ``branch`` anew, with every column's ``given`` value.

    One pass over the table, files without deletes behind it: cheaper to read than an update of
    every row.
    """
    rows = session.table(publish.spark_name(target, branch))
    types = {field.name: field.dataType for field in rows.schema.fields}
    _check(session, target, columns)
    values = {
        column.name: cast(column, F.lit(column.given)).value.cast(types[column.name])
        for column in columns
    }
    filled = rows.select(
        *(_cell(target, name, values.get(name)).alias(name) for name in rows.columns)
    )
    options = write_options(target, in_key_order=False)
    publish.replace(filled, target, branch=branch, properties=properties, options=options)


def rows_of_two_ages(target: LakeTarget) -> DataError:
    """A branch on which some rows were read before a column came, and some after."""
    return DataError(
        TWO_AGES,
        f"{target.source}: a column came with a default while the table was read; which rows have"
        " it already cannot be told",
        hint="sweep the whole table anew",
    )


def _cell(target: LakeTarget, name: str, value: Expr | None) -> Expr:
    own = F.col(quote_spark(name))
    if value is None:
        return own
    if target.write_mode is WriteMode.APPEND:
        # A delete has its key only, a truncate nothing (typed.py does the same to the log's).
        return F.when(F.col("_cdc_op").isin("c", "u", "r"), value).otherwise(own)
    return value


def _check(session: SparkSession, target: LakeTarget, columns: Sequence[Column]) -> None:
    """A default that the lake's type cannot hold is for a person to see, once, not row by row."""
    flags = [cast(column, F.lit(column.given)).failed for column in columns]
    found = session.range(1).select(*flags).collect()[0]
    wrong = [column.name for column, bad in zip(columns, found, strict=True) if bad]
    if wrong:
        raise needs_sweep(
            target.source, [f"the default of {name} does not fit the lake's type" for name in wrong]
        )
