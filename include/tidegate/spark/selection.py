"""Which rows of a table are compared: all, those of some buckets of keys, those of a time interval.

A selection means the same keys on both sides, at any snapshot. What the source can decide itself
is pushed down to it as a predicate without row values (I9).
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from functools import reduce
from typing import Final, Protocol

from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from tidegate.connectors.cut import ExactCut
from tidegate.errors import ConfigError
from tidegate.schema.keyspace import BUCKETS, Striping, bucket_arcs, place_arcs, stretches
from tidegate.schema.table import Column, TableSchema
from tidegate.schema.types import Kind
from tidegate.spark.audit import column as named
from tidegate.spark.keyspace import bucket, place, stretch, striped, within
from tidegate.spark.sides import Part, Sides

MOST_PLACES: Final = 4096
"""Places of keys that a statement names at most; with more of them most of a table is read."""
_TIMES: Final = {
    Kind.DATE: "timestamp_ntz",
    Kind.TIMESTAMP: "timestamp_ntz",
    Kind.TIMESTAMPTZ: "timestamp",
}


class Selection(Protocol):
    """Rows of both sides that have the same keys."""

    def part(self, cut: ExactCut, schema: TableSchema) -> Part | None:
        """The rows as a part that the source finds by an index; None: it looks at every row."""
        ...

    def source(self, sides: Sides) -> DataFrame: ...

    def predicate(self, sides: Sides) -> str | None:
        """The same rows in the source's SQL; None where it cannot tell them apart."""
        ...

    def lake(self, sides: Sides, snapshot_id: int) -> DataFrame: ...

    def bucket(self, schema: TableSchema) -> SparkColumn:
        """The bucket of a row's key."""
        ...

    def release(self) -> None:
        """Forget what was cached."""
        ...


@dataclass(frozen=True, slots=True)
class Buckets:
    """Buckets of keys; all of them is the whole table."""

    buckets: tuple[int, ...] = tuple(range(BUCKETS))
    striping: Striping | None = None
    """None: keys are hashed."""

    def part(self, cut: ExactCut, schema: TableSchema) -> Part | None:
        if self._whole or self.striping is None:
            return None
        key = schema.key_columns[0]
        ranges = self.striping.ranges(self.buckets)
        pieces = [cut.ranges_sql(key, (piece,)) for one in ranges for piece in _halves(one)]
        return Part(cut.ranges_sql(key, ranges), tuple(pieces))

    def source(self, sides: Sides) -> DataFrame:
        if self._whole or self.striping is not None:
            return sides.source()
        arcs = bucket_arcs(self.buckets)
        return sides.source(self.predicate(sides)).where(within(sides.schema, arcs))

    def predicate(self, sides: Sides) -> str | None:
        if self._whole:
            return "true"
        if self.striping is not None:
            ranges = self.striping.ranges(self.buckets)
            return sides.cut.ranges_sql(sides.schema.key_columns[0], ranges)
        return sides.cut.keys_sql(sides.schema, bucket_arcs(self.buckets))

    def lake(self, sides: Sides, snapshot_id: int) -> DataFrame:
        rows = sides.lake(snapshot_id)
        if self._whole:
            return rows
        if self.striping is not None:
            return striped(rows, sides.schema, self.striping, self.buckets)
        return rows.where(within(sides.schema, bucket_arcs(self.buckets)))

    def bucket(self, schema: TableSchema) -> SparkColumn:
        return bucket(schema, self.striping)

    def release(self) -> None:
        return

    @property
    def _whole(self) -> bool:
        return len(self.buckets) == BUCKETS


def striping(cut: ExactCut, schema: TableSchema, width: int | None) -> Striping | None:
    """Stripes of a table whose key begins with a whole number, of ``width`` if it still suits."""
    key = schema.key_columns[0]
    if not _is_number(key):
        return None
    # Of an empty table any will do.
    low, high = cut.span(schema.table, key) or (0, BUCKETS - 1)
    return Striping.over(key.name, low, high, width)


def _is_number(key: Column) -> bool:
    """Whether ranges of a key's first column mean the same on both sides."""
    return not key.recast and key.type.kind in (Kind.INT, Kind.LONG)


def _halves(ends: tuple[int, int]) -> list[tuple[int, int]]:
    """Two parts of a range, to be read side by side."""
    low, high = ends
    middle = (low + high) // 2
    return [(low, middle), (middle + 1, high)] if low < high else [ends]


@dataclass(slots=True)
class Without:
    """A selection but for the rows of some keys: those that dead letters keep back."""

    inner: Selection
    keys: DataFrame
    unheld: DataFrame | None = None
    """Further ones, in the source's text, because the lake's types cannot hold them."""
    _unexplained: int | None = None

    def part(self, cut: ExactCut, schema: TableSchema) -> Part | None:
        return self.inner.part(cut, schema)

    def bucket(self, schema: TableSchema) -> SparkColumn:
        return self.inner.bucket(schema)

    def source(self, sides: Sides) -> DataFrame:
        rows = self._rest(self.inner.source(sides))
        if self.unheld is None:
            return rows
        # A key that the lake cannot hold was read as NULL: which one it is, only its text tells.
        if self._unexplained is None:
            others = sides.unheld_keys().join(self.unheld, self.unheld.columns, "left_anti")
            self._unexplained = others.count()
        names = self.keys.columns
        there = reduce(SparkColumn.__and__, (named(name).isNotNull() for name in names))
        held = rows.where(there)
        if not self._unexplained:
            return held
        return held.unionAll(rows.where(~there).limit(self._unexplained))

    def predicate(self, sides: Sides) -> str | None:
        return None  # a statement would hold the keys, which are row values (I9)

    def lake(self, sides: Sides, snapshot_id: int) -> DataFrame:
        return self._rest(self.inner.lake(sides, snapshot_id))

    def release(self) -> None:
        self.inner.release()

    def _rest(self, rows: DataFrame) -> DataFrame:
        return rows.join(F.broadcast(self.keys), self.keys.columns, "left_anti")


class Interval:
    """Keys of rows whose time lies in [start, end) on either side: a row that was moved out of the
    interval on one side only is found by the other's key."""

    def __init__(self, column: str, start: datetime, end: datetime) -> None:
        self._column = column
        self._start, self._end = start, end
        self._keys: DataFrame | None = None
        self._predicate: str | None = None

    def part(self, cut: ExactCut, schema: TableSchema) -> Part | None:
        return None

    def bucket(self, schema: TableSchema) -> SparkColumn:
        return bucket(schema)

    def source(self, sides: Sides) -> DataFrame:
        keys = _key_names(sides)
        return sides.source(self._predicate).join(self._known, keys, "left_semi")

    def predicate(self, sides: Sides) -> str | None:
        return None  # some of its keys are known by the lake only

    def lake(self, sides: Sides, snapshot_id: int) -> DataFrame:
        if self._keys is None:
            self._prepare(sides, snapshot_id)
        return sides.lake(snapshot_id).join(self._known, _key_names(sides), "left_semi")

    def release(self) -> None:
        if self._keys is not None:
            self._keys.unpersist()

    @property
    def _known(self) -> DataFrame:
        assert self._keys is not None, "the lake's side comes first"
        return self._keys

    def _prepare(self, sides: Sides, snapshot_id: int) -> None:
        column = time_column(sides, self._column)
        inside = sides.cut.interval_sql(column, self._start, self._end)
        keys = [named(name) for name in _key_names(sides)]
        theirs = sides.source(inside).select(*keys)
        ours = sides.lake(snapshot_id).where(self._inside(column)).select(*keys)
        self._keys = theirs.union(ours).distinct().persist()
        elsewhere = ours.join(theirs, _key_names(sides), "left_anti")
        by_key = keys_predicate(sides, elsewhere)
        # "true": keys that the source cannot look for by their place, so every row is read.
        self._predicate = f"({inside}) OR ({by_key or 'true'})"

    def _inside(self, column: Column) -> SparkColumn:
        kind = _TIMES[column.type.kind]
        low, high = (
            F.lit(moment.astimezone(UTC).replace(tzinfo=None).isoformat(" ")).cast(kind)
            for moment in (self._start, self._end)
        )
        value = named(column.name).cast(kind)
        return (value >= low) & (value < high)


def keys_predicate(sides: Sides, keys: DataFrame) -> str | None:
    """The source's predicate for rows that may have one of ``keys``; None: it cannot tell, or there
    are so many of them that it would not help."""
    key = sides.schema.key_columns[0]
    numbered = _is_number(key)
    at = stretch(key) if numbered else place(sides.schema)
    found = [
        row.at for row in keys.select(at.alias("at")).distinct().limit(MOST_PLACES + 1).collect()
    ]
    if not found:
        return "false"
    if len(found) > MOST_PLACES:
        return None
    if numbered:  # the source finds them by an index, others by a look at every key
        return sides.cut.ranges_sql(key, stretches(found))
    return sides.cut.keys_sql(sides.schema, place_arcs(found))


def time_column(sides: Sides, name: str) -> Column:
    """The column of an interval; refuses what is no time."""
    column = sides.schema.column(name)
    if column is None or column.type.kind not in _TIMES:
        kind = "does not exist" if column is None else f"is a {column.type}"
        raise ConfigError(
            "reload.time_column",
            f"{sides.target.source}: the time column {name} {kind}",
            hint="name a date or timestamp column in the table's reload.time_column",
        )
    return column


def _key_names(sides: Sides) -> list[str]:
    return [column.name for column in sides.schema.key_columns]
