"""What a sweep means in each write mode.

``upsert`` replaces the rows. ``soft_delete`` replaces them and keeps what the source no longer
has, flagged. ``append`` adds every row once more as ``op = r``. ``history`` closes the versions
that differ at the cut and opens new ones.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from pyspark import StorageLevel
from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from tidegate.config.pipeline import LakeTarget
from tidegate.config.sinks import WriteMode
from tidegate.connectors.cut import Chunk
from tidegate.envelope.change import Op
from tidegate.envelope.position import Position
from tidegate.names import quote_spark
from tidegate.schema.table import TableSchema
from tidegate.spark import publish
from tidegate.spark.audit import column as named
from tidegate.spark.digest import comparable
from tidegate.spark.frozen import frozen
from tidegate.spark.sweep_parking import SweepParking
from tidegate.spark.sweep_read import BAD, Seen


@dataclass(frozen=True, slots=True)
class ModeSweep:
    """One table's sweep at one cut, as its write mode wants it."""

    session: SparkSession
    target: LakeTarget
    schema: TableSchema
    branch: str
    cut: Position
    cut_time: datetime
    base: int | None
    """``main`` when the branch was made; None for an empty table."""

    @property
    def replaces(self) -> bool:
        """Whether the swept rows take the place of all older ones."""
        return self.target.write_mode is WriteMode.UPSERT

    @property
    def diffs(self) -> bool:
        """Whether the swept rows must be compared with what is there, not just written."""
        return self.target.write_mode is WriteMode.HISTORY and self.base is not None

    def shape(self, frame: DataFrame) -> DataFrame:
        """Swept rows with the ``_cdc_`` columns of the mode."""
        match self.target.write_mode:
            case WriteMode.APPEND:
                return self._read_events(frame)
            case WriteMode.HISTORY:
                return self._open_versions(frame)
            case WriteMode.UPSERT if self.target.soft_delete:
                return frame.withColumns(
                    {"_cdc_deleted": F.lit(False), "_cdc_position": F.lit(None).cast("string")}
                )
            case WriteMode.UPSERT:
                return frame

    def finish(self, properties: dict[str, str], parking: SweepParking) -> None:
        """What follows the last chunk."""
        if self.target.soft_delete and self.replaces and self.base is not None:
            self._carry_over(properties, parking)

    def swept(self, parking: SweepParking | None) -> DataFrame:
        """The rows of the branch that stand for the source's rows at the cut."""
        frame = self._branch()
        match self.target.write_mode:
            case WriteMode.APPEND:
                here = F.col("_cdc_position") == str(self.cut)
                return frame.where((F.col("_cdc_op") == Op.READ.value) & here)
            case WriteMode.HISTORY:
                # What was there before stays current until the row's letter is applied.
                current = frame.where("_cdc_current")
                return current if parking is None else parking.without(current)
            case WriteMode.UPSERT if self.target.soft_delete:
                return frame.where("NOT _cdc_deleted")
            case WriteMode.UPSERT:
                return frame

    def merge_difference(
        self, chunks: Sequence[Chunk], parking: SweepParking, properties: dict[str, str]
    ) -> Seen:
        """``history``: close what differs or is gone, open what is new or differs."""
        read = parking.reading.rows(chunks)
        # The one pass over the source.
        with frozen(self._difference(read.marked, parking), StorageLevel.DISK_ONLY) as diff:
            seen = read.seen()
            parking.park(chunks, seen)
            self._close_versions(diff)
            opened = diff.where("_cdc_new").select(*(named(c.name) for c in self.schema.columns))
            publish.append(
                self._open_versions(opened),
                self.target.identifier,
                branch=self.branch,
                properties=properties,
            )
        return seen

    def _branch(self) -> DataFrame:
        return self.session.table(publish.spark_name(self.target.identifier, self.branch))

    def _main(self) -> DataFrame:
        return self.session.read.option("versionAsOf", str(self.base)).table(
            publish.spark_name(self.target.identifier)
        )

    def _read_events(self, frame: DataFrame) -> DataFrame:
        # The same read of the same cut gives the same ids; rows without a key get random ones.
        event_id = F.expr("uuid()")
        if self.schema.key_columns:
            seed = uuid.uuid5(uuid.NAMESPACE_OID, f"{self.target.source} {self.cut}").hex
            keys = [named(c.name).cast("string") for c in self.schema.key_columns]
            digest = F.md5(F.concat_ws("\x1f", F.lit(seed), *keys))
            event_id = F.regexp_replace(digest, "^(.{8})(.{4})(.{4})(.{4})", "$1-$2-$3-$4-")
        return frame.withColumns(
            {
                "_cdc_op": F.lit(Op.READ.value),
                "_cdc_position": F.lit(str(self.cut)),
                "_cdc_commit_ts": self._now(),
                "_cdc_event_id": event_id,
            }
        )

    def _open_versions(self, frame: DataFrame) -> DataFrame:
        return frame.withColumns(
            {
                "_cdc_valid_from": self._now(),
                "_cdc_valid_to": F.lit(None).cast("timestamp"),
                "_cdc_from_position": F.lit(str(self.cut)),
                "_cdc_to_position": F.lit(None).cast("string"),
                "_cdc_current": F.lit(True),
                "_cdc_deleted": F.lit(False),
            }
        )

    def _now(self) -> SparkColumn:
        return F.lit(self.cut_time.isoformat()).cast("timestamp")

    def _carry_over(self, properties: dict[str, str], parking: SweepParking) -> None:
        """Rows the source no longer has stay, flagged; a row that came back is not doubled."""
        keys = [c.name for c in self.schema.key_columns]
        live = self._branch().where("NOT _cdc_deleted").select(*(named(key) for key in keys))
        gone = parking.without(self._main().join(live, keys, "left_anti"))
        columns = [field.name for field in self._branch().schema.fields]
        carried = gone.withColumns(
            {
                "_cdc_deleted": F.lit(True),
                "_cdc_position": F.coalesce("_cdc_position", F.lit(str(self.cut))),
            }
        ).select(*(named(name) for name in columns))
        publish.append(carried, self.target.identifier, branch=self.branch, properties=properties)

    def _difference(self, source: DataFrame, parking: SweepParking) -> DataFrame:
        """One row per key that differs: new values, ``_cdc_new`` and ``_cdc_old`` say which side
        has it. A row that cannot be taken differs from nothing: its letter is yet to come."""
        keys = [c.name for c in self.schema.key_columns]
        current = parking.without(self._branch().where("_cdc_current"))
        old = current.withColumn("_cdc_old", F.lit(True)).alias("o")
        new = source.withColumn("_cdc_new", F.lit(True)).alias("n")
        on = [_side("n", key).eqNullSafe(_side("o", key)) for key in keys]
        same = F.lit(True)
        for column in self.schema.columns:
            if column.key is None:
                new_value, old_value = (
                    comparable(column, _side(alias, column.name)) for alias in ("n", "o")
                )
                same = same & new_value.eqNullSafe(old_value)
        both = F.col("_cdc_new").isNotNull() & F.col("_cdc_old").isNotNull()
        values = [
            F.coalesce(_side("n", c.name), _side("o", c.name)).alias(c.name)
            if c.key is not None
            else _side("n", c.name).alias(c.name)
            for c in self.schema.columns
        ]
        flags = [
            F.coalesce(F.col(flag), F.lit(False)).alias(flag) for flag in ("_cdc_new", "_cdc_old")
        ]
        good = ~F.coalesce(F.col(BAD), F.lit(False))
        return new.join(old, on, "full_outer").where(~(both & same) & good).select(*values, *flags)

    def _close_versions(self, diff: DataFrame) -> None:
        view = f"tidegate_diff_{uuid.uuid4().hex}"
        keys = [quote_spark(c.name) for c in self.schema.key_columns]
        on = " AND ".join(f"t.{key} = s.{key}" for key in keys)
        table = publish.spark_name(self.target.identifier, self.branch)
        diff.where("_cdc_old").createOrReplaceTempView(view)
        try:
            self.session.sql(
                f"MERGE INTO {table} t USING {view} s ON {on} AND t._cdc_current"
                " WHEN MATCHED THEN UPDATE SET"
                f" t._cdc_valid_to = TIMESTAMP '{self.cut_time.isoformat()}',"
                f" t._cdc_to_position = {publish.literal(str(self.cut))},"
                " t._cdc_current = false, t._cdc_deleted = NOT s._cdc_new"
            )
        finally:
            self.session.catalog.dropTempView(view)


def _side(alias: str, name: str) -> SparkColumn:
    return F.col(f"{alias}.{quote_spark(name)}")
