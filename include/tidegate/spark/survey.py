"""What a range of the change log holds, table by table, from its narrow columns alone.

One pass over the log serves all tables of a run; tables without rows cost nothing more.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import pyarrow as pa
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F

from tidegate.envelope.change import Op
from tidegate.envelope.log_rows import too_large
from tidegate.envelope.position import Position
from tidegate.envelope.visible import HALF, NUMBERS, Visible
from tidegate.names import CATALOG, quote_spark
from tidegate.spark.local_rows import local_rows


@dataclass(frozen=True, slots=True)
class LogPin:
    """The change log at one snapshot: what a whole run reads."""

    identifier: tuple[str, str]
    snapshot_id: int


@dataclass(frozen=True, slots=True)
class LogRange:
    """(after, until] of one epoch, but for the transactions that what is written to holds."""

    after: Position
    until: Position
    held: Visible | None = None


@dataclass(frozen=True, slots=True)
class SchemaShare:
    """The rows of a range that were written under one schema."""

    schema_id: str
    rows: int
    first: str = ""  # place; known where a range has several schemas
    unchanged: frozenset[int] = frozenset()
    """Slots that at least one row did not send."""
    gaps: frozenset[int] = frozenset()
    """Those of them that no old row supplies either."""
    too_large: frozenset[int] = frozenset()
    """Slots whose value at least one row had to leave out for its size."""
    images: bool = False
    """Whether rows carry whole old rows (replica identity FULL)."""
    blind: bool = False
    """Whether changes of older rows come without them."""


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


def missing(log: DataFrame, held: Visible | None) -> DataFrame:
    """Changes by transactions that are not ``held``."""
    if held is None:
        return log
    behind = F.pmod(F.lit(held.xmax) - F.col("tx_id"), F.lit(NUMBERS))
    seen = (behind > 0) & (behind < HALF) & ~F.col("tx_id").isin(list(held.running))
    return log.where(~F.coalesce(seen, F.lit(False)))


def survey(session: SparkSession, pin: LogPin, ranges: Mapping[str, LogRange]) -> dict[str, Survey]:
    """The surveys of all tables in ``ranges``; a table without rows is absent."""
    return survey_rows(_within(session, pin, ranges)) if ranges else {}


def survey_rows(rows: DataFrame) -> dict[str, Survey]:
    """The surveys of the tables whose changes are in ``rows``, which have the log's columns."""
    # Counts and flags only, which Spark aggregates in compiled code; most batches need no more.
    counted = rows.groupBy("table", "schema_id").agg(
        F.count("*").alias("rows"),
        F.max(F.col("before").isNotNull()).alias("images"),
        F.max(F.col("before").isNull() & F.col("op").isin(Op.UPDATE, Op.DELETE)).alias("blind"),
        F.max(F.coalesce(F.size("unchanged") > 0, F.lit(False))).alias("holes"),
        F.max(F.col("op") == Op.TRUNCATE).alias("cleared"),
    )
    found = counted.collect()
    schemas = Counter(row.table for row in found)
    special = {row.table for row in found if row.holes or row.cleared or schemas[row.table] > 1}
    details = _details(rows.where(F.col("table").isin(list(special)))) if special else {}
    return _gather(found, details)


def _within(session: SparkSession, pin: LogPin, ranges: Mapping[str, LogRange]) -> DataFrame:
    """Row changes and truncates of the tables, each in its own range."""
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
    if len({(entry.after.place, entry.until.place) for entry in ranges.values()}) == 1:
        return missing(rows, some.held)
    bounds = local_rows(
        session,
        own_table=(pa.string(), ranges),
        after_place=(pa.string(), (entry.after.place for entry in ranges.values())),
        until_place=(pa.string(), (entry.until.place for entry in ranges.values())),
    )
    inside = (F.col("position") > F.col("after_place")) & (
        F.col("position") <= F.col("until_place")
    )
    return rows.join(F.broadcast(bounds), (F.col("table") == F.col("own_table")) & inside)


def _details(rows: DataFrame) -> dict[tuple[str, str], Row]:
    """Order of schemas, slots that were not sent and places of truncates."""
    not_supplied = F.when(F.col("before").isNull(), F.col("unchanged"))
    place = F.struct("position", F.unix_micros("commit_ts").alias("committed"))
    found = rows.groupBy("table", "schema_id").agg(
        F.min("position").alias("first"),
        F.array_distinct(F.flatten(F.collect_set("unchanged"))).alias("unchanged"),
        F.array_distinct(F.flatten(F.collect_set(not_supplied))).alias("gaps"),
        F.collect_list(F.when(F.col("op") == Op.TRUNCATE, place)).alias("truncates"),
    )
    return {(row.table, row.schema_id): row for row in found.collect()}


def _gather(found: list[Row], details: dict[tuple[str, str], Row]) -> dict[str, Survey]:
    shares: dict[str, list[SchemaShare]] = {}
    truncates: dict[str, list[tuple[str, int | None]]] = {}
    for row in found:
        known = details.get((row.table, row.schema_id))
        share = SchemaShare(row.schema_id, row.rows, images=row.images, blind=row.blind)
        if known is not None:
            share = replace(
                share,
                first=known["first"],
                unchanged=frozenset(slot for slot in known.unchanged if slot >= 0),
                gaps=frozenset(slot for slot in known.gaps if slot >= 0),
                too_large=frozenset(too_large(slot) for slot in known.unchanged if slot < 0),
            )
            truncates.setdefault(row.table, []).extend(
                (place.position, place.committed) for place in known.truncates
            )
        shares.setdefault(row.table, []).append(share)
    return {
        table: Survey(
            tuple(sorted(own, key=lambda share: share.first)),
            tuple(sorted(truncates.get(table, ()), key=lambda entry: entry[0])),
        )
        for table, own in shares.items()
    }
