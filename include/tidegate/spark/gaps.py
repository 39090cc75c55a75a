"""Values the source did not send (unchanged TOAST), from earlier changes of the same row.

A gap is filled by the last change of that row in the batch that did send the value. A row is
followed through its key changes: what moved in under a new key has the values it had under the
old one. What no change of the batch tells is in the lake, under the key the row had before the
batch: the *base*, ``b0…`` (:mod:`tidegate.spark.base`).

Following rows takes a pass over the batch before anything else can be done, and hardly any batch
needs it. So it is left out at first, and rows that would have needed it are marked :data:`ASTRAY`.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import Final

from pyspark.sql import Column as Expr
from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F
from pyspark.sql.types import DataType

from tidegate.spark.remembered import named, remembered
from tidegate.spark.typed import BITS, PUTS, LakeShape

ASTRAY: Final = "astray"
"""A value was left out of a row that came from another key, and it was not followed."""


def fill_gaps(
    halves: DataFrame, shape: LakeShape, gaps: Sequence[int], *, follow: bool
) -> DataFrame:
    """Fill what the batch knows; ``n…`` stays true where only the lake does, ``b…`` says where.
    Without ``follow`` both are wrong for rows that are :data:`ASTRAY`, and right for all others."""
    traced = _trace(halves, shape, gaps)
    moves = _follow(traced, shape, gaps) if follow else None
    if moves is not None:
        joined = traced.join(moves, traced["origin"] == moves["place"], "left")
    else:
        unknown = [F.lit(None).cast(traced.schema[f"cell{i}"].dataType) for i in gaps]
        joined = traced.select(
            "*",
            *(cell.alias(f"past{i}") for i, cell in zip(gaps, unknown, strict=True)),
            *(F.col(key).alias(f"past_{key}") for key in shape.keys),
        )
    filled = _filled(joined, shape, gaps)
    if follow:
        return filled.drop("origin")
    return filled.withColumn(ASTRAY, _moved_in() & needs(gaps)).drop("origin")


def needs(gaps: Sequence[int]) -> Expr:
    """Whether a row has a gap left."""
    return reduce(Expr.__or__, (F.col(f"n{i}") for i in gaps), F.lit(False))


def _moved_in() -> Expr:
    return F.col("origin").isNotNull() & (F.col("origin") != "")


def _trace(halves: DataFrame, shape: LakeShape, gaps: Sequence[int]) -> DataFrame:
    """``cell3``: what is known of value 3 after this half (NULL: nothing since the batch began,
    ``known = false``: nothing since the row moved in). ``origin``: where the row moved in."""
    until_now = (
        Window.partitionBy(*shape.keys)
        .orderBy("pos", "seq")
        .rowsBetween(Window.unboundedPreceding, Window.currentRow)
    )
    types = {field.name: field.dataType for field in halves.schema}
    cells = [
        F.last(_cell(i, types[f"v{i}"]), ignorenulls=True).over(until_now).alias(f"cell{i}")
        for i in gaps
    ]
    begins = F.when(F.col("act") == "c", F.lit("")).when(F.col("act") == "i", F.col("pos"))
    origin = F.last(begins, ignorenulls=True).over(until_now).alias("origin")
    return halves.select("*", *cells, origin)


@remembered
def _cell(i: int, type_: DataType) -> Expr:
    word, bit = f"bad{i // BITS}", 1 << (i % BITS)
    known = F.struct(
        F.lit(True).alias("known"),
        F.col(f"v{i}").alias("value"),
        F.col(word).bitwiseAND(bit).alias("bad"),
        F.col(f"adj{i // BITS}").bitwiseAND(bit).alias("adj"),
    )
    unknown = F.struct(
        F.lit(False).alias("known"),
        F.lit(None).cast(type_).alias("value"),
        F.lit(0).cast("bigint").alias("bad"),
        F.lit(0).cast("bigint").alias("adj"),
    )
    sent = F.col("act").isin(*PUTS) & ~F.col(f"n{i}")
    return F.when(sent, known).when(F.col("act").isin("c", "i"), unknown)


def _known(cell: str) -> Expr:
    return F.coalesce(F.col(f"{cell}.known"), F.lit(False))


def _follow(traced: DataFrame, shape: LakeShape, gaps: Sequence[int]) -> DataFrame | None:
    """What is known of a row when it moved out, by the place of the move; None without moves.

    A row that moved again and again is a chain of moves; each round doubles how far back every
    link looks, so a chain of n moves takes log2(n) rounds.
    """
    moves = traced.where("act = 'o'").select(
        F.col("pos").alias("place"),
        F.col("origin").alias("earlier"),
        *(F.col(f"cell{i}").alias(f"past{i}") for i in gaps),
        *(F.col(key).alias(f"past_{key}") for key in shape.keys),
    )
    moves = moves.localCheckpoint()
    if moves.isEmpty():
        return None
    while not moves.where(_pending(gaps)).isEmpty():
        moves = _look_back(moves, shape, gaps).localCheckpoint()
    return moves.drop("earlier")


def _pending(gaps: Sequence[int]) -> Expr:
    unknown = reduce(Expr.__or__, (~_known(f"past{i}") for i in gaps))
    return unknown & F.col("earlier").isNotNull() & (F.col("earlier") != "")


def _look_back(moves: DataFrame, shape: LakeShape, gaps: Sequence[int]) -> DataFrame:
    before = moves.select(*(F.col(name).alias(f"before_{name}") for name in moves.columns))
    joined = moves.withColumn("pending", _pending(gaps)).join(
        before, F.col("pending") & (F.col("earlier") == F.col("before_place")), "left"
    )

    def take(name: str) -> Expr:
        return F.when(F.col("pending"), F.col(f"before_{name}")).otherwise(F.col(name)).alias(name)

    return joined.select(
        "place",
        take("earlier"),
        *(
            F.when(_known(f"past{i}") | ~F.col("pending"), F.col(f"past{i}"))
            .otherwise(F.col(f"before_past{i}"))
            .alias(f"past{i}")
            for i in gaps
        ),
        *(take(f"past_{key}") for key in shape.keys),
    )


def _filled(joined: DataFrame, shape: LakeShape, gaps: Sequence[int]) -> DataFrame:
    technical = {"place", *(f"cell{i}" for i in gaps), *(f"past{i}" for i in gaps)}
    technical |= {f"past_{key}" for key in shape.keys}
    kept = [name for name in joined.columns if name not in technical]
    filled = _fillings(tuple(gaps))
    rows = (filled[name] if name in filled else named(name)[0] for name in kept)
    return joined.select(*rows, *_base(len(shape.key)))


@remembered
def _fillings(gaps: tuple[int, ...]) -> dict[str, Expr]:
    """Values, gaps and flags once what was found is in them."""
    filled: dict[str, Expr] = {}
    for i in gaps:
        gap = F.col(f"n{i}") & F.col("act").isin(*PUTS)
        found = F.when(_known(f"cell{i}"), F.col(f"cell{i}")).when(
            _known(f"past{i}"), F.col(f"past{i}")
        )
        filled[f"v{i}"] = F.when(gap, found["value"]).otherwise(F.col(f"v{i}"))
        filled[f"n{i}"] = gap & found.isNull()
        for word, flag in ((f"bad{i // BITS}", "bad"), (f"adj{i // BITS}", "adj")):
            own = filled.get(word, F.col(word))
            extra = F.when(gap & found.isNotNull(), found[flag]).otherwise(F.lit(0))
            filled[word] = own.bitwiseOR(extra)
    return {name: value.alias(name) for name, value in filled.items()}


@remembered
def _base(keys: int) -> tuple[Expr, ...]:
    """The key under which the lake has the row."""
    return tuple(
        F.when(_moved_in(), F.col(f"past_k{i}")).otherwise(F.col(f"k{i}")).alias(f"b{i}")
        for i in range(keys)
    )
