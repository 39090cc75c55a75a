"""Where the keys of a batch lie, so that a merge reads only files that may hold them.

Most batches touch recent keys and a few old ones. One span from the oldest to the newest would
cover the whole table, so the span of the first key column is cut at its widest holes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from pyspark.sql import Column as Expr
from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F
from pyspark.sql.types import (
    DataType,
    DateType,
    DecimalType,
    IntegerType,
    LongType,
    StringType,
    TimestampNTZType,
    TimestampType,
)

from tidegate.spark.typed import LakeShape

RANGES: Final = 32
"""Iceberg checks each file against every range: enough to skip, few enough to be quick."""
SPLIT_ROWS: Final = 200_000
"""Larger batches touch most files anyway, and looking for holes sorts the keys."""
SPARSE: Final = 4
"""Keys this many times wider spread than there are rows have holes worth cutting out."""

_ORDERED: Final = (
    IntegerType, LongType, DecimalType, StringType, DateType, TimestampNTZType, TimestampType,
)  # fmt: skip
_INTEGERS: Final = (IntegerType, LongType)
PLAIN: Final = "{}"
_MARKS: Final[dict[type[DataType], str]] = {
    DateType: "date_from_unix_date({})",
    TimestampNTZType: "CAST(timestamp_micros({}) AS TIMESTAMP_NTZ)",
    TimestampType: "timestamp_micros({})",
}


@dataclass(frozen=True, slots=True)
class Bound:
    """Ranges that hold all values of one key column, as :func:`_comparable` has them."""

    key: int  # place in the key
    ranges: tuple[tuple[Any, Any], ...]
    mark: str = PLAIN
    """SQL that makes the column's type of a range's end again."""


def extremes(shape: LakeShape) -> list[Expr]:
    """Aggregates: the smallest and largest value of every key column that has an order."""
    return [
        aggregate(_comparable(shape, i)).alias(f"{name}{i}")
        for i in _ordered(shape)
        for name, aggregate in (("low", F.min), ("high", F.max))
    ]


def bounds(rows: DataFrame, shape: LakeShape, found: Any) -> tuple[Bound, ...]:
    """From a row with ``rows`` and :func:`extremes`; ``rows`` is cached."""
    return tuple(
        Bound(i, _ranges(rows, shape, i, found), _mark(shape, i))
        for i in _ordered(shape)
        if found[f"low{i}"] is not None
    )


def _ranges(rows: DataFrame, shape: LakeShape, i: int, found: Any) -> tuple[tuple[Any, Any], ...]:
    low, high = found[f"low{i}"], found[f"high{i}"]
    if i != 0 or not isinstance(_type(shape, i), _INTEGERS) or found.rows > SPLIT_ROWS:
        return ((low, high),)
    if high - low <= found.rows * SPARSE:
        return ((low, high),)
    key = F.col("k0")
    neighbours = rows.select(
        key.alias("left"), F.lead(key).over(Window.orderBy(key)).alias("right")
    )
    hole = F.col("right").cast("double") - F.col("left").cast("double")
    widest = neighbours.where(hole > 1).orderBy(hole.desc()).limit(RANGES - 1).collect()
    cuts = sorted((row.left, row.right) for row in widest)
    starts = [low, *(right for _, right in cuts)]
    ends = [*(left for left, _ in cuts), high]
    return tuple(zip(starts, ends, strict=True))


def _ordered(shape: LakeShape) -> list[int]:
    return [i for i in range(len(shape.key)) if isinstance(_type(shape, i), _ORDERED)]


def _type(shape: LakeShape, i: int) -> DataType:
    return shape.types[shape.key[i]]


def _mark(shape: LakeShape, i: int) -> str:
    return next((m for type_, m in _MARKS.items() if isinstance(_type(shape, i), type_)), PLAIN)


def _comparable(shape: LakeShape, i: int) -> Expr:
    """Days and moments travel as numbers: Python would read instants in the driver's own time zone,
    and cannot hand over years before 1000."""
    key = F.col(f"k{i}")
    if isinstance(_type(shape, i), DateType):
        return F.unix_date(key)
    if isinstance(_type(shape, i), TimestampNTZType | TimestampType):
        return F.unix_micros(key.cast("timestamp"))  # sessions are in UTC (spark/session.py)
    return key
