"""Writing a batch to a table without a key (``upsert``): equal rows are taken away one by one.

The batch's sum per row (:mod:`tidegate.spark.net_rows`) says how many of a row come or go. Of those
that go, as many of the lake's equal rows are numbered, and deleted by file and place in it: the
branch is nobody else's, so that a place means the same row until then (I4). Sums are not
idempotent; what keeps a range from counting twice is the position in the snapshot alone (I3).
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F
from pyspark.sql.types import (
    DataType,
    DateType,
    DecimalType,
    IntegerType,
    LongType,
    TimestampNTZType,
    TimestampType,
)

from tidegate import faults
from tidegate.config.pipeline import LakeTarget
from tidegate.errors import DataError
from tidegate.names import quote_spark
from tidegate.schema.table import TableSchema
from tidegate.spark import publish
from tidegate.spark.base import ROW_MISSING
from tidegate.spark.bounds import Bound, bounds, extremes
from tidegate.spark.frozen import frozen
from tidegate.spark.merge import inside_sql, parameters
from tidegate.spark.net_rows import net_rows
from tidegate.spark.parking import value_too_large
from tidegate.spark.row_identity import row_identity
from tidegate.spark.typed import LakeShape

if TYPE_CHECKING:
    from tidegate.spark.modes import Batch

_BOUNDED: Final[tuple[type[DataType], ...]] = (
    IntegerType, LongType, DecimalType, DateType, TimestampNTZType, TimestampType,
)  # fmt: skip
"""Texts have an order, too, but may be long."""
_MOST_BOUNDS: Final = 4
"""Columns by whose values files are skipped; rows that lie together are found by the first few."""


def write_keyless(batch: Batch) -> None:
    """Only what follows the last TRUNCATE counts."""
    log, truncates = batch.log, batch.found.truncates
    if truncates:
        log = log.where(F.col("position") > truncates[-1][0])
    _refuse_partial_rows(batch, log)
    same = _compared(batch, log)
    with batch.fit(lambda: net_rows(log, batch.shape, batch.schemas, same)) as (rows, fitness):
        batch.before_write()
        if truncates:
            batch.clear()
        if not fitness.rows:
            batch.stamp_only()
            return
        comes = fitness.rows > fitness.gone
        if fitness.gone:
            _take_away(batch, rows.where("gone"), same, last=not comes)
            faults.point("apply.after_removal")
        if comes:
            names = enumerate(batch.shape.names)
            new = rows.where("NOT gone").select(*(F.col(f"v{i}").alias(name) for i, name in names))
            batch.append(new)


def _compared(batch: Batch, log: DataFrame) -> tuple[int, ...]:
    """The lake columns that tell rows apart: those the source has now. What a column that left it
    held belongs to one of the rows that are otherwise equal, and nobody says to which."""
    schema = batch.schemas[-1][0]
    if len(batch.schemas) > 1:
        newest = log.agg(F.max_by("schema_id", "position")).collect()[0][0]
        known = {share.schema_id: own for own, share in batch.schemas}
        schema = known.get(newest, schema)
    taken = {column.name for column in schema.columns if column.taken}
    return tuple(i for i, name in enumerate(batch.shape.names) if name in taken)


def _take_away(batch: Batch, gone: DataFrame, same: Sequence[int], *, last: bool) -> None:
    """Delete ``copies`` of the lake's rows that equal each one of ``gone``."""
    shape, session = batch.shape, batch.session
    columns = [(F.col(quote_spark(shape.names[i])), shape.types[i]) for i in same]
    lake = _near(batch, gone, same).select(row_identity(columns).alias("id"), "_file", "_pos")
    in_order = Window.partitionBy("id").orderBy("_file", "_pos")
    equal = lake.join(gone.select("id", "copies"), "id")
    chosen = equal.withColumn("nth", F.row_number().over(in_order)).where("nth <= copies")
    with frozen(chosen.select("_file", "_pos")) as places:
        wanted = gone.agg(F.sum("copies")).collect()[0][0]
        _check_found(batch.target, wanted - places.count())
        view = f"tidegate_places_{uuid.uuid4().hex}"
        places.createOrReplaceTempView(view)
        try:
            batch.run(_delete_sql(batch, view), last=last)
        finally:
            session.catalog.dropTempView(view)


def _delete_sql(batch: Batch, view: str) -> str:
    same = "t._file = s._file AND t._pos = s._pos"
    if publish.merges_on_read(batch.session, batch.target):
        return f"MERGE INTO {batch.ref} t USING {view} s ON {same} WHEN MATCHED THEN DELETE"
    # A MERGE that writes files anew does not know the places of rows; a DELETE does, but does not
    # count them.
    return f"DELETE FROM {batch.ref} t WHERE EXISTS (SELECT 1 FROM {view} s WHERE {same})"


def _near(batch: Batch, gone: DataFrame, same: Sequence[int]) -> DataFrame:
    """The lake's rows with file and place, from the files that may hold one of ``gone``."""
    able = [i for i in same if isinstance(batch.shape.types[i], _BOUNDED)][:_MOST_BOUNDS]
    probe = replace(batch.shape, key=tuple(able))
    rows = gone.select(*(F.col(f"v{i}").alias(f"k{n}") for n, i in enumerate(able)))
    limits = _limits(rows, probe)
    where = " AND ".join(inside_sql(probe, bound) for bound in limits) or "true"
    sql = f"SELECT t.*, t._file, t._pos FROM {batch.ref} t WHERE {where}"
    return batch.session.sql(sql, args=parameters(limits) or None)


def _limits(rows: DataFrame, probe: LakeShape) -> tuple[Bound, ...]:
    """Of the columns that have a value in every row: no range holds NULL."""
    nulls = (F.bool_or(F.col(key).isNull()).alias(f"null{i}") for i, key in enumerate(probe.keys))
    found: Any = rows.agg(F.count("*").alias("rows"), *extremes(probe), *nulls).collect()[0]
    return tuple(b for b in bounds(rows, probe, found) if not found[f"null{b.key}"])


def _check_found(target: LakeTarget, missing: int) -> None:
    if missing:
        raise DataError(
            ROW_MISSING,
            f"{target.source}: {missing} rows were changed or deleted that the lake does not have",
            hint="the lake table was changed by something else than Tidegate, or rows were"
            " rewritten at the source without an event: sweep it, then open its gate",
        )


def _refuse_partial_rows(batch: Batch, log: DataFrame) -> None:
    """A row of which a part is not known equals no other: nothing of the batch is applied."""
    large = [(schema, share.too_large) for schema, share in batch.schemas if share.too_large]
    if large:
        lost = F.exists(F.coalesce("unchanged", F.array().cast("array<int>")), lambda s: s < 0)
        if not log.where(lost).isEmpty():
            raise _too_large(batch.target, large)
    blind = any(share.blind for _, share in batch.schemas)
    if blind and not log.where(F.col("op").isin("u", "d") & F.col("before").isNull()).isEmpty():
        raise DataError(
            "apply.old_row_unknown",
            f"{batch.target.source}: changes came without the whole row they changed, which a"
            " table without a key needs",
            hint="set REPLICA IDENTITY FULL, and raise capture.max_value_bytes if rows are larger;"
            " then sweep the table, and open its gate",
        )


def _too_large(
    target: LakeTarget, large: Sequence[tuple[TableSchema, frozenset[int]]]
) -> DataError:
    names = sorted({schema.columns[slot].name for schema, slots in large for slot in slots})
    code, message = value_too_large(names)
    return DataError(
        code,
        f"{target.source}: {message}, so that its rows cannot be told apart",
        hint="raise capture.max_value_bytes, sweep the table, then open its gate",
    )
