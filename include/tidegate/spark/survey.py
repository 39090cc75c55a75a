"""What a range of the change log holds, table by table, from its narrow columns alone.

One pass over the log serves all tables of a run; tables without rows cost nothing more.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F

from tidegate.envelope.change import Op
from tidegate.envelope.position import Position
from tidegate.names import CATALOG, quote_spark


@dataclass(frozen=True, slots=True)
class LogPin:
    """The change log at one snapshot: what a whole run reads."""

    identifier: tuple[str, str]
    snapshot_id: int


@dataclass(frozen=True, slots=True)
class LogRange:
    """(after, until] of one epoch."""

    after: Position
    until: Position


@dataclass(frozen=True, slots=True)
class SchemaShare:
    """The rows of a range that were written under one schema."""

    schema_id: str
    rows: int
    first: str  # place
    unchanged: frozenset[int] = frozenset()
    """Slots that at least one row did not send."""
    gaps: frozenset[int] = frozenset()
    """Those of them that no old row supplies either."""
    images: bool = False
    """Whether rows carry whole old rows (replica identity FULL)."""


@dataclass(frozen=True, slots=True)
class Survey:
    """One table's part of a range."""

    shares: tuple[SchemaShare, ...] = ()  # in log order
    truncates: tuple[tuple[str, int | None], ...] = field(default=())
    """(place, commit time in microseconds), in log order."""

    @property
    def rows(self) -> int:
        return sum(share.rows for share in self.shares)


NOTHING = Survey()


def read_log(session: SparkSession, pin: LogPin) -> DataFrame:
    """The pinned log; commits after the pin are not seen."""
    name = quote_spark(CATALOG, *pin.identifier)
    return session.read.option("versionAsOf", pin.snapshot_id).table(name)


def survey(session: SparkSession, pin: LogPin, ranges: Mapping[str, LogRange]) -> dict[str, Survey]:
    """The surveys of all tables in ``ranges``; a table without rows is absent."""
    if not ranges:
        return {}
    some = next(iter(ranges.values()))
    lowest = min(entry.after.place for entry in ranges.values())
    highest = max(entry.until.place for entry in ranges.values())
    rows = read_log(session, pin).where(
        (F.col("epoch") == some.after.epoch)
        & (F.col("position") > lowest)
        & (F.col("position") <= highest)
        & F.col("table").isin(list(ranges))
        & F.col("op").isin([Op.CREATE, Op.UPDATE, Op.DELETE, Op.TRUNCATE, Op.READ])
    )
    bounds = session.createDataFrame(
        [(table, entry.after.place, entry.until.place) for table, entry in ranges.items()],
        "own_table string, after_place string, until_place string",
    )
    within = (F.col("position") > F.col("after_place")) & (
        F.col("position") <= F.col("until_place")
    )
    not_supplied = F.when(F.col("before").isNull(), F.col("unchanged"))
    place = F.struct("position", F.unix_micros("commit_ts").alias("committed"))
    joined = rows.join(F.broadcast(bounds), (F.col("table") == F.col("own_table")) & within)
    found = joined.groupBy("table", "schema_id").agg(
        F.count("*").alias("rows"),
        F.min("position").alias("first"),
        F.array_distinct(F.flatten(F.collect_set("unchanged"))).alias("unchanged"),
        F.array_distinct(F.flatten(F.collect_set(not_supplied))).alias("gaps"),
        F.bool_or(F.col("before").isNotNull()).alias("images"),
        F.collect_list(F.when(F.col("op") == Op.TRUNCATE, place)).alias("truncates"),
    )
    return _gather(found.collect())


def _gather(rows: list[Row]) -> dict[str, Survey]:
    shares: dict[str, list[SchemaShare]] = {}
    truncates: dict[str, list[tuple[str, int | None]]] = {}
    for row in rows:
        shares.setdefault(row.table, []).append(
            SchemaShare(
                row.schema_id,
                row.rows,
                row["first"],
                frozenset(row.unchanged or ()),
                frozenset(row.gaps or ()),
                row.images,
            )
        )
        truncates.setdefault(row.table, []).extend(
            (place.position, place.committed) for place in row.truncates
        )
    return {
        table: Survey(
            tuple(sorted(found, key=lambda share: share.first)),
            tuple(sorted(truncates[table], key=lambda entry: entry[0])),
        )
        for table, found in shares.items()
    }
