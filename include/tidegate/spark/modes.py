"""How a batch becomes lake rows in each write mode.

Every mode writes to a branch. Statements before the last one carry no position, so that no
snapshot claims more than it holds; the last one carries it (I1, I5).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final

from pyspark import StorageLevel
from pyspark.sql import Column as Expr
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from tidegate.config.pipeline import LakeTarget
from tidegate.config.sinks import WriteMode
from tidegate.envelope.change import Op
from tidegate.lake.key_ceiling import Ceiling
from tidegate.names import POSITION_PROPERTY, STEP_PROPERTY
from tidegate.schema.table import TableSchema
from tidegate.spark import publish
from tidegate.spark.base import check_all_found, check_none_moved, fill_from_lake
from tidegate.spark.bounds import Bound
from tidegate.spark.duplicates import settle_duplicates
from tidegate.spark.fitness import Astray, Fitness, examine
from tidegate.spark.fresh import FRESH_ROWS, is_fresh, new_rows
from tidegate.spark.frozen import frozen
from tidegate.spark.gaps import fill_gaps, needs
from tidegate.spark.keyless import write_keyless
from tidegate.spark.merge import (
    SOURCE_VIEW,
    close_all_sql,
    flag_all_sql,
    history_sql,
    parameters,
    soft_delete_sql,
    upsert_sql,
)
from tidegate.spark.resolve import last_per_key, last_typed, last_with_image, versions
from tidegate.spark.stamp import stamped
from tidegate.spark.survey import SchemaShare, Survey
from tidegate.spark.typed import LakeShape, typed
from tidegate.spark.write_options import write_options

PARTIAL_STEP: Final = "part"
"""Step of a snapshot that is followed by more of the same batch."""
_NOT_WRITTEN: Final = ("seq", "tx", "cts", "eid", "act")
"""Of a half, once the last of its key is known."""


@dataclass
class Batch:
    """One table's range of the log, and where it goes."""

    session: SparkSession
    target: LakeTarget
    shape: LakeShape
    schemas: Sequence[tuple[TableSchema, SchemaShare]]
    log: DataFrame
    found: Survey
    epoch: str
    branch: str
    stamp: dict[str, str]
    before_write: Callable[[], None]
    """Called right before the first statement that writes."""
    ceiling: Callable[[str], Ceiling | None] = lambda _: None
    """The highest value the branch may hold in a column."""
    mixed: bool = False
    """Whether the branch holds rows of several cuts (a sweep that is being drained)."""
    follow: bool = False
    """Whether rows with gaps are followed through their key changes."""
    adjusted: dict[str, int] = field(default_factory=dict)
    _kept: ExitStack = field(default_factory=ExitStack)
    """Rows that are kept while a batch is written."""

    @cached_property
    def ref(self) -> str:
        return publish.spark_name(self.target, self.branch)

    @cached_property
    def gaps(self) -> tuple[int, ...]:
        return self.shape.gaps(self.schemas)

    def place(self, column: str) -> Any:
        """A place as the position users see."""
        return F.concat(F.lit(f"{self.epoch}/"), F.col(column))

    def halves(self, log: DataFrame, *, old_rows: bool = False) -> DataFrame:
        """Typed changes of ``log``, gaps filled as far as the batch can."""
        rows = typed(log, self.shape, self.schemas, self.gaps, old_rows=old_rows)
        if not self.shape.key:
            return rows
        every_change = self.target.write_mode is WriteMode.APPEND
        if any(share.images for _, share in self.schemas) and not every_change:
            rows = settle_duplicates(rows, self.shape)
        return fill_gaps(rows, self.shape, self.gaps, follow=self.follow) if self.gaps else rows

    @contextmanager
    def fit(
        self, rows: Callable[[], DataFrame], fresh: Expr | None = None
    ) -> Iterator[tuple[DataFrame, Fitness]]:
        """``rows`` cached and examined, for the length of the block."""
        try:
            try:
                cached, fitness = self._examined(rows(), fresh)
            except Astray:
                self.follow = True
                cached, fitness = self._examined(rows(), fresh)
            for name, count in fitness.adjusted.items():
                self.adjusted[name] = self.adjusted.get(name, 0) + count
            yield cached, fitness
        finally:
            self._kept.close()

    def _examined(self, rows: DataFrame, fresh: Expr | None) -> tuple[DataFrame, Fitness]:
        rows.persist(StorageLevel.MEMORY_AND_DISK)
        self._kept.callback(rows.unpersist)
        return rows, examine(rows, self.shape, self.gaps, self.target.source, fresh)

    def without_gaps(self, rows: DataFrame, fitness: Fitness) -> DataFrame:
        if not fitness.needs:
            return rows
        if self.mixed:
            check_none_moved(self.target, rows, self.shape, self.gaps)
        found = fill_from_lake(self.session, rows, self.shape, self.gaps, self.target, self.branch)
        filled = self._kept.enter_context(frozen(found))
        check_all_found(self.target, fitness.needs - filled.count())
        return rows.where(~needs(self.gaps)).unionByName(filled)

    def run(self, sql: str, args: dict[str, Any] | None = None, *, last: bool) -> None:
        """One statement; ``last`` puts the position on its snapshot."""
        with stamped(self.session, self.stamp if last else partial_stamp(self.stamp)):
            self.session.sql(sql, args=args or None)

    def merge(
        self, sql: Callable[[str, LakeShape, Sequence[Bound]], str], rows: DataFrame, fit: Fitness,
        *, last: bool = True,
    ) -> None:  # fmt: skip
        rows.createOrReplaceTempView(SOURCE_VIEW)
        try:
            self.run(sql(self.ref, self.shape, fit.bounds), parameters(fit.bounds), last=last)
        finally:
            self.session.catalog.dropTempView(SOURCE_VIEW)

    def append(self, rows: DataFrame, *, in_key_order: bool = False) -> None:
        """The last statement of a batch; ``rows`` have the lake's columns."""
        options = write_options(self.target, in_key_order=in_key_order)
        with stamped(self.session, self.stamp):
            rows.writeTo(self.ref).options(**options).append()

    def clear(self) -> None:
        """No row is left. Drops whole files and reads nothing, as a DELETE would, which forgets
        whose it was; readers see it together with what follows (I5)."""
        empty = self.session.table(self.ref).where("false")
        publish.replace(
            empty, self.target, branch=self.branch, properties=partial_stamp(self.stamp)
        )

    def stamp_only(self) -> None:
        """An empty commit with the position."""
        publish.stamp(self.session, self.target, branch=self.branch, properties=self.stamp)


def partial_stamp(stamp: Mapping[str, str]) -> dict[str, str]:
    """Of a snapshot that is followed by more of the same batch: it stands at no position."""
    own = {key: value for key, value in stamp.items() if key != POSITION_PROPERTY}
    return own | {STEP_PROPERTY: PARTIAL_STEP}


def write(batch: Batch) -> None:
    """Write the batch to its branch; the branch's head then carries the position."""
    match batch.target.write_mode:
        case WriteMode.UPSERT if batch.target.soft_delete:
            _soft_delete(batch)
        case WriteMode.UPSERT if not batch.shape.key:
            write_keyless(batch)
        case WriteMode.UPSERT:
            _upsert(batch)
        case WriteMode.APPEND:
            _append(batch)
        case WriteMode.HISTORY:
            _history(batch)


def _upsert(batch: Batch) -> None:
    """Only what follows the last TRUNCATE counts."""
    log, truncates = batch.log, batch.found.truncates
    if truncates:
        log = log.where(F.col("position") > truncates[-1][0])
    fresh = is_fresh(_ceiling(batch))
    with batch.fit(lambda: _last(batch, log).drop(*_NOT_WRITTEN), fresh) as (cached, fitness):
        batch.before_write()
        if truncates:
            batch.clear()
        if not fitness.rows:
            batch.stamp_only()
            return
        whole = batch.without_gaps(cached, fitness)
        if fitness.fresh < FRESH_ROWS:
            batch.merge(upsert_sql, whole, fitness)
            return
        if fitness.fresh < fitness.rows:
            batch.merge(upsert_sql, whole.where(~fresh), fitness, last=False)
        # Finding the last change of every key has sorted them.
        ordered = batch.shape.key == batch.shape.key[:1]
        batch.append(new_rows(whole.where(fresh), batch.shape), in_key_order=ordered)


def _last(batch: Batch, log: DataFrame) -> DataFrame:
    """The state each key is left in."""
    schema, share = batch.schemas[0]
    if len(batch.schemas) == 1 and not share.images:
        return last_typed(log, batch.shape, schema, share, batch.gaps, follow=batch.follow)
    return last_per_key(batch.halves(log), batch.shape, in_order=bool(batch.gaps))


def _ceiling(batch: Batch) -> Ceiling | None:
    if batch.found.rows < FRESH_ROWS:
        return None
    if batch.found.truncates:
        return Ceiling(None)
    return batch.ceiling(batch.shape.names[batch.shape.key[0]])


def _soft_delete(batch: Batch) -> None:
    """A truncate is a delete of every row: of the lake's at the first one, of a row of the batch
    at the first one that follows its last change."""
    places = [place for place, _ in batch.found.truncates]
    with batch.fit(lambda: _last_or_ended(batch, places)) as (cached, fitness):
        batch.before_write()
        if places:
            at = {"at": f"{batch.epoch}/{places[0]}"}
            batch.run(flag_all_sql(batch.ref), at, last=False)
        if fitness.rows:
            batch.merge(soft_delete_sql, batch.without_gaps(cached, fitness), fitness)
        else:
            batch.stamp_only()


def _last_or_ended(batch: Batch, places: Sequence[str]) -> DataFrame:
    rows = last_with_image(batch.halves(batch.log), batch.shape)
    truncated = F.get(F.filter(F.lit(places), lambda place: place > F.col("pos")), F.lit(0))
    if not places:
        truncated = F.lit(None).cast("string")
    ends = F.when(F.col("gone"), F.col("pos")).otherwise(truncated)
    rows = rows.withColumns({"gone": ends.isNotNull(), "end": ends}).select(
        *rows.columns, F.when(F.col("end").isNotNull(), batch.place("end")).alias("at")
    )
    return rows.drop(*_NOT_WRITTEN)


def _history(batch: Batch) -> None:
    """Every version counts, so the log is taken piece by piece between its truncates."""
    truncates = batch.found.truncates
    if not truncates:
        if not _history_piece(batch, batch.log, last=True):
            batch.stamp_only()
        return
    after = ""  # sorts before every place
    for place, micros in truncates:
        inside = (F.col("position") > after) & (F.col("position") < place)
        _history_piece(batch, batch.log.where(inside))
        at = f"{batch.epoch}/{place}"
        batch.run(close_all_sql(batch.ref), {"micros": micros, "at": at}, last=False)
        after = place
    _history_piece(batch, batch.log.where(F.col("position") > after))
    batch.stamp_only()


def _history_piece(batch: Batch, log: DataFrame, *, last: bool = False) -> bool:
    with batch.fit(lambda: _versions(batch, log)) as (cached, fitness):
        batch.before_write()
        if fitness.rows == 0:
            return False
        batch.merge(history_sql, batch.without_gaps(cached, fitness), fitness, last=last)
        return True


def _versions(batch: Batch, log: DataFrame) -> DataFrame:
    adjusted = [f"adj{word}" for word in batch.shape.words]
    return versions(batch.halves(log), batch.shape).withColumns(
        {
            "from_at": F.when(F.col("from_pos").isNotNull(), batch.place("from_pos")),
            "to_at": F.when(F.col("to_pos").isNotNull(), batch.place("to_pos")),
            "current": ~F.col("close") & F.col("to_pos").isNull(),
            **{f"n{i}": F.col(f"n{i}") & ~F.col("close") for i in batch.gaps},
            # What closes an older version writes no value, and counts none (I6).
            **{word: F.when(F.col("close"), 0).otherwise(F.col(word)) for word in adjusted},
        }
    )


def _append(batch: Batch) -> None:
    """Every change is a row; a truncate is one without values."""
    with batch.fit(lambda: _changes(batch)) as (cached, fitness):
        whole = batch.without_gaps(cached, fitness)
        named = whole.select(
            *(F.col(f"v{i}").alias(name) for i, name in enumerate(batch.shape.names)),
            F.col("op").alias("_cdc_op"),
            F.col("at").alias("_cdc_position"),
            F.col("cts").alias("_cdc_commit_ts"),
            F.col("event").alias("_cdc_event_id"),
        )
        batch.before_write()
        batch.append(named.unionByName(_truncate_rows(batch), allowMissingColumns=True))


def _changes(batch: Batch) -> DataFrame:
    """A key change is two rows: a delete of the old key (its event id ends in ``:old``) and the
    update, so that whoever replays the table by key gets the source's rows."""
    rows = batch.halves(batch.log, old_rows=True)
    moved_out = F.col("act") == "o"
    old_key = {f"v{place}": F.col(f"k{i}") for i, place in enumerate(batch.shape.key)}
    return rows.select(
        *(name for name in rows.columns if name != "act" and name not in batch.shape.values),
        *(
            F.when(moved_out, old_key.get(name, F.lit(None))).otherwise(F.col(name)).alias(name)
            for name in batch.shape.values
        ),
        F.when(moved_out, F.lit("d"))
        .when(F.col("act") == "i", F.lit("u"))
        .otherwise(F.col("act"))
        .alias("op"),
        F.concat("eid", F.when(moved_out, F.lit(":old")).otherwise(F.lit(""))).alias("event"),
        batch.place("pos").alias("at"),
    )


def _truncate_rows(batch: Batch) -> DataFrame:
    return batch.log.where(F.col("op") == Op.TRUNCATE).select(
        F.col("op").alias("_cdc_op"),
        batch.place("position").alias("_cdc_position"),
        F.col("commit_ts").alias("_cdc_commit_ts"),
        F.col("event_id").alias("_cdc_event_id"),
    )
