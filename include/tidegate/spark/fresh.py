"""Rows under keys that the lake cannot have yet: appended, not merged.

A merge joins every row with the table and shuffles it twice more; an append writes it. Where a
batch brings many new rows under growing keys, that is most of its cost.
"""

from __future__ import annotations

from typing import Final

from pyspark.sql import Column as Expr
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from tidegate.lake.key_ceiling import Ceiling
from tidegate.spark.typed import LakeShape

FRESH_ROWS: Final = 50_000
"""Fewer rows are merged with the rest: a commit of their own would cost more than it saves."""


def is_fresh(ceiling: Ceiling | None) -> Expr:
    """Whether a row's first key column is above everything the lake has."""
    if ceiling is None:
        return F.lit(False)
    return F.lit(True) if ceiling.highest is None else F.col("k0") > F.lit(ceiling.highest)


def new_rows(rows: DataFrame, shape: LakeShape) -> DataFrame:
    """``rows`` as the lake's columns; those that are gone again never arrive."""
    # The first key column is the one rows lie sorted by already; the value beside it is the same.
    sources = {shape.key[0]: "k0"}
    return rows.where(~F.col("gone")).select(
        *(F.col(sources.get(i, f"v{i}")).alias(name) for i, name in enumerate(shape.names))
    )
