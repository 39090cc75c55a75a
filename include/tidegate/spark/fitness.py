"""Whether a batch may be written: one pass over its resolved rows.

A value that does not cast exactly makes the batch :class:`Unfit`: what fails is then set aside as
dead letters (:mod:`tidegate.spark.parking`, I7). A gap nothing fills or rows that cannot be told
apart hold the whole table: nothing of the batch is applied, nothing is lost. Columns, counts and
places are said; values never (I9).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import reduce
from typing import Final

from pyspark.sql import Column as Expr
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from tidegate.errors import DataError
from tidegate.spark.bounds import Bound, bounds, extremes
from tidegate.spark.gaps import ASTRAY, needs
from tidegate.spark.remembered import remembered
from tidegate.spark.typed import BITS, LakeShape

CAST_FAILED: Final = "apply.cast_failed"


class Unfit(DataError):
    """Some rows of a batch hold values their columns cannot take."""


class Astray(Exception):
    """Rows of a batch must be followed through their key changes (:mod:`tidegate.spark.gaps`)."""


@dataclass(frozen=True, slots=True)
class Fitness:
    """What a batch that may be written looks like."""

    rows: int
    gone: int
    needs: int
    """Rows with gaps that only the lake can fill."""
    fresh: int = 0
    """Rows under keys that the lake cannot have."""
    bounds: tuple[Bound, ...] = ()
    adjusted: dict[str, int] = field(default_factory=dict)
    """Per column: values that a policy adjusted (I6)."""


def examine(
    rows: DataFrame,
    shape: LakeShape,
    gaps: Sequence[int],
    table: str,
    fresh: Expr | None = None,
) -> Fitness:
    """Read ``rows`` (cached: this is the pass that fills the cache) and raise if they are unfit."""
    flags = tuple(name for name in ("twin", "gone", ASTRAY) if name in rows.columns)
    found = rows.agg(
        F.count_if(F.lit(False) if fresh is None else fresh).alias("fresh"),
        *_looks(shape.nameless, tuple(gaps), flags),
    ).collect()[0]
    if found.astray:
        raise Astray
    bad = _columns(shape, [found[f"bad{word}"] for word in shape.words])
    if bad or found.no_key:
        raise _unfit(rows, shape, bad, table)
    if found.twins:
        raise DataError(
            "apply.rows_not_distinct",
            f"{table}: a transaction left several rows under one key, and its changes do not tell"
            " which of them they mean",
            hint="sweep the table",
        )
    adjusted = _columns(shape, [found[f"adj{word}"] for word in shape.words])
    return Fitness(
        rows=found.rows,
        gone=found.gone,
        needs=found.needs,
        fresh=found.fresh,
        bounds=bounds(rows, shape, found),
        adjusted=_count(rows, shape, adjusted, "adj") if adjusted else {},
    )


@remembered
def _looks(shape: LakeShape, gaps: tuple[int, ...], flags: tuple[str, ...]) -> tuple[Expr, ...]:
    """What is asked of every batch; ``flags``: those of its marks that it has at all."""
    twin, gone, astray = (
        F.col(name) if name in flags else F.lit(False) for name in ("twin", "gone", ASTRAY)
    )
    return (
        F.count("*").alias("rows"),
        F.count_if(gone).alias("gone"),
        F.count_if(needs(gaps)).alias("needs"),
        F.coalesce(F.bool_or(twin), F.lit(False)).alias("twins"),
        F.coalesce(F.bool_or(astray), F.lit(False)).alias("astray"),
        F.coalesce(F.bool_or(_no_key(shape)), F.lit(False)).alias("no_key"),
        *(F.bit_or(f"bad{word}").alias(f"bad{word}") for word in shape.words),
        *(F.bit_or(f"adj{word}").alias(f"adj{word}") for word in shape.words),
        *extremes(shape),
    )


def failing_columns(halves: DataFrame, shape: LakeShape, limit: int) -> dict[str, list[str]]:
    """Event ids of changes that do not cast, and the columns that do not take them (none: the key);
    at most ``limit`` + 1."""
    words = [F.bit_or(f"bad{word}").alias(f"bad{word}") for word in shape.words]
    wrong = reduce(Expr.__or__, (F.col(f"bad{word}") != 0 for word in shape.words), F.lit(False))
    found = halves.where(wrong | _no_key(shape)).groupBy("eid").agg(*words).limit(limit + 1)
    return {
        row.eid: [
            shape.names[i] for i in _columns(shape, [row[f"bad{word}"] for word in shape.words])
        ]
        for row in found.collect()
    }


def _no_key(shape: LakeShape) -> Expr:
    return reduce(Expr.__or__, (F.col(key).isNull() for key in shape.keys), F.lit(False))


def _unfit(rows: DataFrame, shape: LakeShape, bad: Sequence[int], table: str) -> Unfit:
    wrong = reduce(Expr.__or__, (_bit("bad", i) for i in bad), _no_key(shape))
    found = rows.where(wrong).agg(F.count("*").alias("rows"), F.min("pos").alias("first"))
    total = found.collect()[0]
    counts = _count(rows, shape, bad, "bad") or {shape.names[i]: total.rows for i in shape.key}
    columns = ", ".join(f"{name} ({count})" for name, count in counts.items())
    return Unfit(
        CAST_FAILED,
        f"{table}: {total.rows} rows hold values that {columns} cannot take exactly, the first at"
        f" {total['first']}; nothing of this batch was applied",
        hint="correct the values at the source (a newer change of the same row replaces them), or"
        " give the columns another type or policy in the pipeline's file (docs/reference/types.md);"
        " then open the table's gate",
    )


def _count(rows: DataFrame, shape: LakeShape, columns: Sequence[int], flag: str) -> dict[str, int]:
    if not columns:
        return {}
    found = rows.agg(*(F.count_if(_bit(flag, i)).alias(str(i)) for i in columns)).collect()[0]
    return {shape.names[i]: found[str(i)] for i in columns}


def _bit(flag: str, i: int) -> Expr:
    return F.col(f"{flag}{i // BITS}").bitwiseAND(1 << (i % BITS)) != 0


def _columns(shape: LakeShape, words: Sequence[int | None]) -> list[int]:
    return [i for i in range(len(shape.names)) if (words[i // BITS] or 0) >> (i % BITS) & 1]
