"""Reading a source table at a cut, in parallel, with the lake's exact types.

Every task opens its own connection and joins the one exported snapshot before it reads its chunk.
Columns whose JDBC value is the lake value pass through; all others arrive as the log path's own
text and go through the same casts, so that a sweep and a change give the same value (I6).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce

from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql import functions as F

from tidegate.connectors.protocol import Chunk, Cut
from tidegate.errors import DataError
from tidegate.schema.table import Column, TableSchema
from tidegate.schema.types import Kind
from tidegate.spark.audit import column as named
from tidegate.spark.casts import cast


@dataclass(frozen=True, slots=True)
class Seen:
    """What passed through a read."""

    failed: Mapping[str, int] = field(default_factory=dict)
    adjusted: Mapping[str, int] = field(default_factory=dict)

    def plus(self, other: Seen) -> Seen:
        return Seen(
            _added(self.failed, other.failed),
            _added(self.adjusted, other.adjusted),
        )


class SourceRead:
    """One pass over some chunks; what it saw is known once the frame was consumed."""

    def __init__(self, frame: DataFrame, counters: _Counters, observation: Observation) -> None:
        self.frame = frame
        self._counters = counters
        self._observation = observation

    def seen(self) -> Seen:
        """Counts of the action that consumed the frame (call it after exactly one)."""
        if not self._counters.cast:
            return Seen()  # nothing was observed: every column is exact as it is
        return self._counters.read(self._observation.get)


def read_chunks(
    session: SparkSession,
    cut: Cut,
    schema: TableSchema,
    chunks: Sequence[Chunk],
    *,
    plain: frozenset[str],
    fetch_size: int,
    connections: int,
) -> SourceRead:
    """The rows of ``chunks`` as lake values, read over at most ``connections`` connections.

    ``plain`` are the columns that this cut's survey found to hold nothing that JDBC cannot carry.
    """
    parts: Sequence[Chunk | str] = chunks or ("false",)  # an empty table may have no chunk
    frames = [
        _query(
            session,
            cut,
            cut.select_sql(schema.table, schema, part, plain_columns=plain),
            fetch_size,
        )
        for part in parts
    ]
    raw = reduce(DataFrame.unionAll, frames)
    if min(len(chunks), session.sparkContext.defaultParallelism) > connections:
        raw = raw.coalesce(connections)  # as many tasks as connections; fewer cores see to it
    return _typed(raw, cut, schema, plain)


def _query(session: SparkSession, cut: Cut, sql: str, fetch_size: int) -> DataFrame:
    options = {
        **cut.jdbc.properties,
        "url": cut.jdbc.url,
        "driver": cut.jdbc.driver,
        "dbtable": f"({sql}) AS swept",
        "sessionInitStatement": cut.jdbc.session_init,
        # Above zero: without it PostgreSQL's driver reads with autocommit, outside the snapshot.
        "fetchsize": str(fetch_size),
        "pushDownPredicate": "false",  # the chunk's predicate is in the query already
    }
    return session.read.format("jdbc").options(**options).load()


@dataclass(frozen=True, slots=True)
class _Counters:
    """Which observed number belongs to which column."""

    cast: tuple[str, ...]

    def read(self, observed: Mapping[str, object]) -> Seen:
        failed = {c: _int(observed[f"failed_{i}"]) for i, c in enumerate(self.cast)}
        adjusted = {c: _int(observed[f"adjusted_{i}"]) for i, c in enumerate(self.cast)}
        return Seen(
            {name: count for name, count in failed.items() if count},
            {name: count for name, count in adjusted.items() if count},
        )


def _typed(raw: DataFrame, cut: Cut, schema: TableSchema, plain: frozenset[str]) -> SourceRead:
    values: dict[str, SparkColumn] = {}
    metrics: list[SparkColumn] = []
    casts: list[str] = []
    for column in schema.columns:
        if column.name in plain or cut.native(column):
            values[column.name] = _native(column)
            continue
        result = cast(column, named(column.name))
        values[column.name] = result.value
        index = len(casts)
        casts.append(column.name)
        metrics.append(F.count_if(result.failed).alias(f"failed_{index}"))
        metrics.append(F.count_if(result.adjusted).alias(f"adjusted_{index}"))
    observation = Observation()
    frame = raw.observe(observation, *metrics) if casts else raw
    return SourceRead(
        frame.select(*(value.alias(name) for name, value in values.items())),
        _Counters(tuple(casts)),
        observation,
    )


def _native(column: Column) -> SparkColumn:
    """The value of a native or plain column (``connectors.protocol.Survey``)."""
    value = named(column.name)
    if column.type.kind is Kind.DATE:
        return F.date_from_unix_date(value)
    # An instant to a timestamp without zone: sessions are in UTC (spark/session.py).
    return value.cast(column.type.spark)


def check_exact(table: str, seen: Seen) -> None:
    """Refuse a table whose values the lake cannot hold and no policy covers (I6, I9)."""
    if not seen.failed:
        return
    named_counts = ", ".join(f"{name} ({count} rows)" for name, count in seen.failed.items())
    raise DataError(
        "sweep.inexact_values",
        f"{table}: values that cannot be taken exactly in {named_counts}",
        hint="mend them at the source, or give the columns another type or policy in the"
        " pipeline's file (docs/reference/types.md); then sweep again",
    )


def key_names(schema: TableSchema) -> tuple[str, ...]:
    return tuple(column.name for column in schema.key_columns)


def value_columns(schema: TableSchema) -> tuple[Column, ...]:
    """Columns that are not part of the key."""
    return tuple(column for column in schema.columns if column.key is None)


def _added(one: Mapping[str, int], two: Mapping[str, int]) -> dict[str, int]:
    return {name: one.get(name, 0) + two.get(name, 0) for name in {**one, **two}}


def _int(value: object) -> int:
    return int(str(value)) if value is not None else 0
