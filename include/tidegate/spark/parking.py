"""Setting aside what cannot be applied: the failing changes of a batch and what waits behind them.

Nothing here runs for a batch that is fit and a table without letters. Otherwise the changes of the
rows in question are looked at one by one, on the driver: they are few, or the table is held.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import cached_property
from typing import TYPE_CHECKING, Final

import pyarrow as pa
from pyspark.sql import Column as Expr
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F

from tidegate.config.pipeline import LakeTarget
from tidegate.config.platform import DlqConfig
from tidegate.config.sinks import WriteMode
from tidegate.envelope.change import Op
from tidegate.envelope.dead_letter import BEHIND_LETTER, Key, Parked, Role
from tidegate.envelope.log_rows import too_large
from tidegate.envelope.position import Position
from tidegate.errors import DataError
from tidegate.lake.dead_letter_fold import Letter
from tidegate.lake.waiting import Step, Waiting, who_waits
from tidegate.observability.frames import code_frames
from tidegate.schema.table import TableSchema
from tidegate.spark.fitness import CAST_FAILED, failing_columns
from tidegate.spark.local_rows import local_rows
from tidegate.spark.survey import SchemaShare, Survey
from tidegate.spark.typed import LakeShape

if TYPE_CHECKING:
    from tidegate.spark.modes import Batch

SMALL_BATCH: Final = 100
"""Changes below which a share says nothing: one of two is not a flood."""
_STEPS_PER_LETTER: Final = 100
"""How many changes of the rows in question are looked at, per letter that a table may have."""
_EPOCH_BEGAN: Final = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass
class Parking:
    """One batch's changes that are set aside."""

    session: SparkSession
    target: LakeTarget
    shape: LakeShape
    schemas: Sequence[tuple[TableSchema, SchemaShare]]
    log: DataFrame
    found: Survey
    epoch: str
    limits: DlqConfig
    letters: Sequence[Letter] = ()
    """Those that wait already."""
    parked: Mapping[str, Role] = field(default_factory=dict)
    """By event id: the rows of a sweep share their place in the log."""
    _stack: str = ""
    _reasons: dict[str, str] = field(default_factory=dict)
    """Event id of a failing change → the columns that could not take it."""

    @property
    def rest(self) -> DataFrame:
        """The batch without what is set aside."""
        if not self.parked:
            return self.log
        return self.log.join(F.broadcast(self._events(self.parked)), "event_id", "left_anti")

    def wait_for_letters(self) -> None:
        """Set aside the changes of rows that have letters waiting."""
        if self.letters and self.shape.key:
            self._close(set(self._blocked))
            self._check_limits()

    def set_aside(self, batch: Batch, cause: DataError) -> None:
        """Find the failing changes of ``batch`` (:attr:`rest`, which was found unfit) and set them
        aside with what waits behind them; raise ``cause`` if that is no way forward."""
        if not makes_letters(self.target, self.limits, keyed=bool(self.shape.key)):
            raise cause
        self._refuse_truncates()
        if self.limits.include_headers:
            self._stack = code_frames(cause)
        self._find_failing(batch)
        before = len(self.parked)
        if self.shape.key:
            self._close({*self._blocked, *self._keys_at(self._reasons)})
        else:
            self.parked = dict.fromkeys(self._reasons, Role.FAILED)
        if len(self.parked) == before:
            raise cause
        self._check_limits()

    def collect(self) -> list[Parked]:
        """What was set aside, values included, in log order."""
        if not self.parked:
            return []
        rows = self._steps(self.log.join(F.broadcast(self._events(self.parked)), "event_id"))
        found = rows.withColumn("committed", F.unix_micros("commit_ts")).drop("commit_ts")
        return [self._letter(row) for row in found.orderBy("position").collect()]

    def _close(self, keys: set[Key]) -> None:
        """Who waits, given the changes of ``keys`` and of every row they lead to."""
        while True:
            waiting = self._waiting(self._touching(keys))
            if waiting.keys <= keys:
                break
            keys |= waiting.keys
        self.parked = waiting.changes

    @cached_property
    def _blocked(self) -> frozenset[Key]:
        """Rows that letters keep from going on."""
        return frozenset(key for letter in self.letters for key in letter.keys)

    def _waiting(self, steps: Iterable[Step]) -> Waiting:
        upsert = self.target.write_mode is WriteMode.UPSERT
        return who_waits(
            steps,
            self._reasons.keys(),
            self._blocked,
            last_only=upsert,
            keeps_images=self.target.soft_delete,
        )

    def _find_failing(self, batch: Batch) -> None:
        every_change = self.target.write_mode is WriteMode.APPEND
        batch.follow = True  # every change counts here, and not just the last of each row
        halves = batch.halves(self.rest, old_rows=every_change)
        found = failing_columns(halves, self.shape, self.limits.max_dead_letters)
        for event, names in found.items():
            self._reasons[event] = cast_failed(names)[1]
        if len(found) > self.limits.max_dead_letters:
            raise self._flood(f"more than {self.limits.max_dead_letters} changes")

    def _check_limits(self) -> None:
        total = len(self.letters) + len(self.parked)
        if total > self.limits.max_dead_letters:
            raise self._flood(f"{total} changes, those that wait already included,")
        share = len(self._reasons) / max(1, self.found.rows)
        if self.found.rows >= SMALL_BATCH and share > self.limits.max_dead_letter_ratio:
            raise self._flood(f"{len(self._reasons)} of the {self.found.rows} changes of a batch")

    def _flood(self, how_many: str) -> DataError:
        columns = sorted(set(self._reasons.values()))[:3]
        told = f" ({'; '.join(columns)})" if columns else ""
        return DataError(
            "apply.too_many_dead_letters",
            f"{self.target.source}: {how_many} would be dead letters{told}; nothing of this batch"
            " was applied",
            hint="give the columns another type or policy (docs/reference/types.md), or redrive or"
            " discard what waits (`tidegate dead-letters list`), or raise dlq.max_dead_letters or"
            " dlq.max_dead_letter_ratio; then open the table's gate",
        )

    def _refuse_truncates(self) -> None:
        """Where older versions stay, a truncate ends them all; a letter that is applied later
        would come to life after it."""
        if self.found.truncates and not _outlives_truncate(self.target):
            raise truncated_behind_letters(self.target)

    def _keys_at(self, events: Iterable[str]) -> set[Key]:
        at = self._steps(self.log.join(F.broadcast(self._events(events)), "event_id"))
        return {key for step in _as_steps(at.collect()) for key in step.keys}

    def _touching(self, keys: set[Key]) -> list[Step]:
        """The batch's changes that come from or lead to ``keys``."""
        texts = (pa.list_(pa.string()), [list(key) for key in keys])
        wanted = local_rows(self.session, k=texts).select(F.to_json("k").alias("k"))
        steps = self._steps(self.log.where(F.col("op") != Op.TRUNCATE))
        ends = F.array_distinct(F.array(F.to_json("key"), F.to_json("new_key")))
        hits = steps.select(
            "event_id", "position", "op", "key", "new_key", F.explode(ends).alias("k")
        )
        found = hits.join(F.broadcast(wanted), "k", "left_semi").drop("k").distinct()
        most = _STEPS_PER_LETTER * self.limits.max_dead_letters
        rows = found.limit(most + 1).collect()
        if len(rows) > most:
            raise self._flood(f"rows with more than {most} changes in one batch")
        return _as_steps(rows)

    def _steps(self, log: DataFrame) -> DataFrame:
        """``log`` with the key each change leaves its row under."""
        new_keys = [
            F.when(F.col("schema_id") == share.schema_id, _new_key(schema))
            for schema, share in self.schemas
        ]
        put = F.col("after").isNotNull() & F.lit(bool(self.shape.key))
        # Casts: without a key there is nothing in either.
        own = F.coalesce(F.col("key"), F.array().cast("array<string>"))
        new = F.when(put, F.coalesce(*new_keys)).otherwise(own)
        return log.withColumns({"key": own, "new_key": new})

    def _events(self, ids: Iterable[str]) -> DataFrame:
        return local_rows(self.session, event_id=(pa.string(), ids))

    def _letter(self, row: Row) -> Parked:
        event = row.asDict(recursive=True)
        # A collected timestamp is local to this process; the log's is an instant.
        micros = event.pop("committed")
        event["commit_ts"] = (
            None if micros is None else _EPOCH_BEGAN + timedelta(microseconds=micros)
        )
        role = self.parked[row.event_id]
        code, message = self._diagnosis(row, role)
        return Parked(
            position=Position(self.epoch, row.position),
            key=tuple(row.key),
            new_key=tuple(row.new_key),
            role=role,
            code=code,
            message=message,
            event=event,
            stack=self._stack if role is Role.FAILED else "",
        )

    def _diagnosis(self, row: Row, role: Role) -> tuple[str, str]:
        lost = [too_large(slot) for slot in row.unchanged or () if slot < 0]
        if lost:
            columns = {share.schema_id: schema.columns for schema, share in self.schemas}
            return value_too_large([columns[row.schema_id][slot].name for slot in lost])
        if role is Role.WAITING:
            return BEHIND_LETTER, "an earlier change of the same row waits"
        return CAST_FAILED, self._reasons[row.event_id]


def makes_letters(target: LakeTarget, limits: DlqConfig, *, keyed: bool) -> bool:
    """Whether what cannot be applied is set aside; otherwise it holds the table. Where rows without
    a key are taken away one by one, later changes of a row cannot be told from those of another."""
    known = keyed or target.write_mode is WriteMode.APPEND
    return limits.enabled and limits.max_dead_letters > 0 and known


def cast_failed(names: Iterable[str]) -> tuple[str, str]:
    """Code and message of a change that these columns cannot take (none: the key)."""
    return CAST_FAILED, f"{', '.join(names) or 'the key'} cannot take its value exactly"


def value_too_large(names: Iterable[str]) -> tuple[str, str]:
    return (
        "apply.value_too_large",
        f"{', '.join(names)} is larger than capture.max_value_bytes and was not captured",
    )


def truncated_behind_letters(target: LakeTarget) -> DataError:
    return DataError(
        "apply.truncate_behind_letters",
        f"{target.source}: a TRUNCATE follows changes that could not be applied, and"
        f" {target.write_mode}{' with soft_delete' if target.soft_delete else ''} keeps what it"
        " ended",
        hint="redrive or discard the table's dead letters, or sweep it; then open its gate",
    )


def superseded_by_truncate(target: LakeTarget, found: Survey, letters: Sequence[Letter]) -> bool:
    """Whether a TRUNCATE of the batch makes ``letters`` moot; refuses where it cannot."""
    if not found.truncates or not letters:
        return False
    if not _outlives_truncate(target):
        raise truncated_behind_letters(target)
    return target.forgets


def _outlives_truncate(target: LakeTarget) -> bool:
    """Whether rows that a TRUNCATE ended need nothing from letters before it: they are gone, or
    every change is a row of its own."""
    return target.forgets or target.write_mode is WriteMode.APPEND


def _new_key(schema: TableSchema) -> Expr:
    """The key of the new row; a part that was not sent is the old key's."""
    slots = {column.key: slot for slot, column in enumerate(schema.columns)}
    parts = [
        F.when(
            F.coalesce(F.array_contains("unchanged", slots[place]), F.lit(False)),
            F.col("key").getItem(place),
        ).otherwise(F.col("after").getItem(slots[place]))
        for place in range(len(schema.key_columns))
    ]
    return F.array(*parts) if parts else F.array().cast("array<string>")


def _as_steps(rows: Iterable[Row]) -> list[Step]:
    return [
        Step(
            row.event_id,
            row.position,
            tuple(row.key),
            tuple(row.new_key),
            gone=row.op == Op.DELETE,
        )
        for row in rows
    ]
