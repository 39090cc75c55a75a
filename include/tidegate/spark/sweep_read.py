"""Reading a source table at a cut, in parallel, with the lake's exact types.

Every task opens its own connection and joins the one exported snapshot before it reads its chunk.
Columns whose JDBC value is the lake value pass through; all others arrive as the log path's own
text and go through the same casts, so that a sweep and a change give the same value (I6).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import Final

from pyspark import StorageLevel
from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql import functions as F

from tidegate.config.platform import SweepConfig
from tidegate.connectors.cut import Chunk, Cut, LoneCut, Survey
from tidegate.errors import DataError
from tidegate.schema.table import Column, TableSchema
from tidegate.schema.types import Kind
from tidegate.spark.audit import column as named
from tidegate.spark.casts import cast

BAD: Final = "_cdc_bad"
"""Of rows as :attr:`SourceRead.marked` has them: whether a value cannot be taken exactly."""


@dataclass(frozen=True, slots=True)
class Seen:
    """What passed through a read."""

    failed: Mapping[str, int] = field(default_factory=dict)
    adjusted: Mapping[str, int] = field(default_factory=dict)
    failed_rows: int = 0
    """Rows with at least one failed value."""

    def plus(self, other: Seen) -> Seen:
        return Seen(
            _added(self.failed, other.failed),
            _added(self.adjusted, other.adjusted),
            self.failed_rows + other.failed_rows,
        )


@dataclass(frozen=True, slots=True)
class SourceRead:
    """One pass over some chunks; what it saw is known once one of its frames was consumed."""

    marked: DataFrame
    """Every row, failed values as NULL, with the flag :data:`BAD`."""
    names: tuple[str, ...]
    cast: tuple[str, ...]
    """Columns that may fail, in the order of the counters."""
    observation: Observation

    @property
    def frame(self) -> DataFrame:
        """Every row; what failed is NULL."""
        return self.marked.select(*(named(name) for name in self.names))

    @property
    def good(self) -> DataFrame:
        """The rows that can be taken exactly."""
        if not self.cast:
            return self.frame
        return self.marked.where(~F.col(BAD)).select(*(named(name) for name in self.names))

    def seen(self) -> Seen:
        """Counts of the action that consumed a frame (call it after exactly one)."""
        if not self.cast:
            return Seen()  # nothing was observed: every column is exact as it is
        observed = self.observation.get
        failed = {c: _int(observed[f"failed_{i}"]) for i, c in enumerate(self.cast)}
        adjusted = {c: _int(observed[f"adjusted_{i}"]) for i, c in enumerate(self.cast)}
        return Seen(
            {name: count for name, count in failed.items() if count},
            {name: count for name, count in adjusted.items() if count},
            _int(observed["failed_rows"]),
        )


@dataclass(frozen=True, slots=True)
class Reading:
    """How one table is read at one cut."""

    session: SparkSession
    cut: Cut
    schema: TableSchema
    survey: Survey
    settings: SweepConfig
    all_rows: bool = False
    """Whether rows with a value that is too large are read, something small in its place."""

    def rows(self, chunks: Sequence[Chunk], keys: DataFrame | None = None) -> SourceRead:
        """The rows of ``chunks`` as lake values; with ``keys`` of those keys only, so that what is
        seen is theirs alone."""
        parts: Sequence[Chunk | str] = chunks or ("false",)  # an empty table may have no chunk
        raw = self.query(
            self.cut.select_sql(
                self.schema.table,
                self.schema,
                part if self.all_rows else self.fitting(part),
                plain_columns=self.survey.plain,
                too_large=self.survey.too_large if self.all_rows else (),
            )
            for part in parts
        )
        return self._typed(raw, keys)

    def query(self, statements: Iterable[str]) -> DataFrame:
        """The rows of ``statements`` together, over at most ``parallelism`` connections."""
        frames = [frame for sql in statements for frame in self._answers(sql)]
        connections = self.settings.parallelism
        raw = reduce(DataFrame.unionAll, frames)
        if min(len(frames), self.session.sparkContext.defaultParallelism) > connections:
            raw = raw.coalesce(connections)  # as many tasks as connections; fewer cores see to it
        return raw

    @property
    def casts(self) -> tuple[Column, ...]:
        """Columns that arrive as text. The survey found the others to hold nothing that JDBC cannot
        carry."""
        if isinstance(self.cut, LoneCut):
            return self.schema.columns
        return tuple(
            column
            for column in self.schema.columns
            if column.name not in self.survey.plain and not self.cut.native(column)
        )

    @property
    def too_large_sql(self) -> str | None:
        """Rows with a value that is too large; None: there are none."""
        large = [c for c in self.schema.columns if c.name in self.survey.too_large]
        return " OR ".join(self.cut.too_large_sql(c) for c in large) or None

    def fitting(self, part: Chunk | str) -> Chunk | str:
        """``part`` without the rows that hold a value too large to be taken."""
        large = self.too_large_sql
        if large is None:
            return part
        if isinstance(part, str):
            return f"({part}) AND NOT ({large})"
        return replace(part, predicate_sql=f"({part.predicate_sql}) AND NOT ({large})")

    def _answers(self, sql: str) -> Iterator[DataFrame]:
        if not isinstance(self.cut, LoneCut):
            yield self._query(sql)
            return
        # Rows that came through the driver lie on the executors' disks, however many they are.
        for part in self.cut.fetch(sql, self.settings.chunk_rows):
            frame = self.session.createDataFrame(part)
            yield frame.localCheckpoint(storageLevel=StorageLevel.DISK_ONLY)

    def _query(self, sql: str) -> DataFrame:
        jdbc = self.cut.jdbc
        options = {
            **jdbc.properties,
            "url": jdbc.url,
            "driver": jdbc.driver,
            "dbtable": f"({sql}) AS swept",
            "sessionInitStatement": jdbc.session_init,
            # Above zero: without it PostgreSQL's driver reads with autocommit, outside the snapshot
            "fetchsize": str(self.settings.fetch_size),
            "pushDownPredicate": "false",  # the chunk's predicate is in the query already
        }
        return self.session.read.format("jdbc").options(**options).load()

    def _typed(self, raw: DataFrame, keys: DataFrame | None) -> SourceRead:
        names = tuple(column.name for column in self.schema.columns)
        casts = self.casts
        observation = Observation()
        results = {column.name: cast(column, named(column.name)) for column in casts}
        values = raw.select(
            *(
                (results[c.name].value if c.name in results else _native(c)).alias(c.name)
                for c in self.schema.columns
            ),
            *(named(c.name).alias(f"_cdc_text{i}") for i, c in enumerate(casts)),
        )
        if keys is not None:
            values = values.join(keys, keys.columns, "left_semi")
        if not casts:
            marked = values.withColumn(BAD, F.lit(False))
            return SourceRead(marked, names, (), observation)
        # Two steps, so that the flags look at values that are there instead of parsing them again.
        flags = [
            cast(column, F.col(f"_cdc_text{i}")).judge(named(column.name))
            for i, column in enumerate(casts)
        ]
        flagged = values.select(
            *(named(name) for name in names),
            *(failed.alias(f"_cdc_failed{i}") for i, (failed, _) in enumerate(flags)),
            *(adjusted.alias(f"_cdc_adjusted{i}") for i, (_, adjusted) in enumerate(flags)),
        )
        bad = reduce(SparkColumn.__or__, (F.col(f"_cdc_failed{i}") for i in range(len(casts))))
        counters = [
            F.count_if(F.col(f"_cdc_{kind}{i}")).alias(f"{kind}_{i}")
            for kind in ("failed", "adjusted")
            for i in range(len(casts))
        ]
        observed = flagged.observe(observation, F.count_if(bad).alias("failed_rows"), *counters)
        marked = observed.select(*(named(name) for name in names), bad.alias(BAD))
        return SourceRead(marked, names, tuple(c.name for c in casts), observation)


def _native(column: Column) -> SparkColumn:
    """The value of a native or plain column (``connectors.cut.Survey``)."""
    value = named(column.name)
    if column.type.kind is Kind.DATE:
        return F.date_from_unix_date(value)
    # An instant to a timestamp without zone: sessions are in UTC (spark/session.py).
    return value.cast(column.type.spark)


def check_exact(table: str, seen: Seen) -> None:
    """Refuse a table whose values the lake cannot hold and no policy covers (I6, I9)."""
    if not seen.failed:
        return
    raise DataError(
        "sweep.inexact_values",
        f"{table}: values that cannot be taken exactly in {told(seen.failed)}",
        hint="mend them at the source, or give the columns another type or policy in the"
        " pipeline's file (docs/reference/types.md); then sweep again",
    )


def told(counts: Mapping[str, int]) -> str:
    """Columns and in how many rows: never values."""
    return ", ".join(f"{name} ({count} rows)" for name, count in counts.items())


def key_names(schema: TableSchema) -> tuple[str, ...]:
    return tuple(column.name for column in schema.key_columns)


def _added(one: Mapping[str, int], two: Mapping[str, int]) -> dict[str, int]:
    return {name: one.get(name, 0) + two.get(name, 0) for name in {**one, **two}}


def _int(value: object) -> int:
    return int(str(value)) if value is not None else 0
