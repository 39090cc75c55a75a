"""Applying one table's range of the change log in one published snapshot.

Whatever the write mode, rows are written to a branch (:mod:`tidegate.spark.fence`). What cannot be
applied is set aside and durable as dead letters before the branch is published (I7).
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Final

from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
from pyiceberg.catalog import Catalog
from pyiceberg.table import Table
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from tidegate import faults
from tidegate.config.pipeline import LakeTarget
from tidegate.config.platform import DlqConfig
from tidegate.errors import FatalError, TidegateError
from tidegate.lake import commits
from tidegate.lake.dead_letter_fold import Letter
from tidegate.lake.dead_letters import DeadLetters
from tidegate.lake.key_ceiling import key_ceiling
from tidegate.lake.schema_history import SchemaHistory
from tidegate.lake.tables import qualified
from tidegate.names import (
    CDC_PREFIX,
    LETTERS_PROPERTY,
    POSITION_PROPERTY,
    RUN_PROPERTY,
    STEP_PROPERTY,
    apply_branch,
)
from tidegate.schema.table import TableSchema
from tidegate.spark import publish
from tidegate.spark.evolve import evolved
from tidegate.spark.fence import Fence, drop_leftovers, reload
from tidegate.spark.fill import fill, rows_of_two_ages
from tidegate.spark.fitness import Unfit
from tidegate.spark.modes import Batch, partial_stamp, write
from tidegate.spark.outcome import Outcome, counts
from tidegate.spark.parking import Parking, superseded_by_truncate
from tidegate.spark.stamp import verify_stamp
from tidegate.spark.survey import LogPin, LogRange, Survey, missing, read_log
from tidegate.spark.typed import LakeShape

STEP: Final = "apply"
FEW_ROWS: Final = 1000
"""So many changes are one task's work: their last states are found without a shuffle. A batch of
five rows took 1.7 s of CPU before and 1.4 to 1.6 s with it, on a machine that was not quiet."""


@dataclass(frozen=True, slots=True)
class ApplyContext:
    """What all tables of a run share."""

    catalog: Catalog
    history: SchemaHistory
    letters: DeadLetters
    limits: DlqConfig
    pin: LogPin
    run: str
    token: str
    check: Callable[[], None]
    """Raises if the lease on the tables is lost."""


@dataclass(frozen=True, slots=True)
class Redrive:
    """Letters to be applied once more, in place of a range of the log."""

    letters: Sequence[Letter]
    rows: DataFrame


def apply_range(
    session: SparkSession,
    context: ApplyContext,
    target: LakeTarget,
    span: LogRange,
    found: Survey,
    *,
    base: int | None = None,
    branch: str | None = None,
    redrive: Redrive | None = None,
) -> Outcome:
    """Apply ``span`` (which ``found`` surveyed) on top of snapshot ``base`` and publish it, or
    onto ``branch``, which belongs to the caller, who publishes it and knows no dead letters.

    ``base`` is the snapshot of ``main`` that said it stands at ``span.after``. The session must be
    this thread's own. With no rows in ``found`` only the position moves. With ``redrive`` the rows
    are letters of the table's, and the position stays.
    """
    work = _Work(session, context, target, span, found, redrive)
    return work.onto(branch) if branch is not None else work.published(base)


class _Work:
    """One table's batch, from the log to a branch, and to ``main``."""

    def __init__(
        self,
        session: SparkSession,
        context: ApplyContext,
        target: LakeTarget,
        span: LogRange,
        found: Survey,
        redrive: Redrive | None,
    ) -> None:
        self.began = time.monotonic()
        self.session = session
        self.context = context
        self.target = target
        self.span = span
        self.found = found
        self.redrive = redrive
        self.batch_id = uuid.uuid4().hex
        """What this batch does to letters counts while a snapshot with this id is in main."""
        ready = evolved(
            session,
            context.catalog,
            context.history,
            target,
            found,
            span=span,
            check=context.check,
        )
        self.table, self.schemas = ready.table, ready.schemas
        self.fills = () if redrive is not None else ready.fills

    def onto(self, branch: str) -> Outcome:
        """Onto a branch of the caller's; what cannot be applied is an error."""
        if self.fills:
            raise rows_of_two_ages(self.target)
        start = commits.head_id(self.table, branch)
        adjusted: dict[str, int] = {}
        if self.schemas:
            mixed = self.span.held is None  # else its rows are those of one snapshot
            batch = self._batch(branch, start, self._log(), self._stamp(), mixed=mixed)
            write(batch)
            adjusted = batch.adjusted
        else:
            self._stamp_only(branch, self._stamp())
        return self._written(branch, start, self._stamp(), adjusted, 0)

    def published(self, base: int | None) -> Outcome:
        """Onto a branch of our own, then ``main``."""
        drop_leftovers(self.session, self.table, self.target)
        letters = self._letters()
        fence = Fence(
            self.session,
            self.context.catalog,
            self.target,
            apply_branch(self.context.token),
            base,
        )
        fence.open()
        try:
            outcome = self._fenced(fence, letters)
        except TidegateError:
            fence.drop()  # a held table must not keep it for long
            raise
        except (PySparkException, Py4JJavaError) as error:
            # Whoever took over drops our branch, and the statement fails in any number of ways.
            if fence.overtaken:
                raise fence.moved() from error
            raise
        return outcome

    def _fenced(self, fence: Fence, letters: Sequence[Letter]) -> Outcome:
        if not self.schemas:
            stamp = self._stamp()
            self._fill(fence.branch, stamp)
            self._stamp_only(fence.branch, stamp)
            outcome = self._written(fence.branch, fence.base, stamp, {}, 0)
        else:
            written = self._attempts(fence, letters)
            if written is None:
                fence.drop()
                return self._nothing(fence.base)
            outcome, stamp = written
        self.context.check()  # I4
        fence.publish()
        faults.point("apply.after_publish")
        table = self._reload()
        verify_stamp(table, None, stamp)  # I1
        if LETTERS_PROPERTY in stamp:
            self.context.letters.settle(self.target.source, table, self.context.run)
        return outcome

    def _attempts(
        self, fence: Fence, letters: Sequence[Letter]
    ) -> tuple[Outcome, dict[str, str]] | None:
        """Write what can be applied; the rest is durable as letters afterwards (I7). None if
        letters were tried again and none of them can."""
        moot = superseded_by_truncate(self.target, self.found, letters)
        log = self._log()
        if self.found.truncates and self.target.forgets:
            log = log.where(F.col("position") >= self.found.truncates[-1][0])
        parking = Parking(
            session=self.session,
            target=self.target,
            shape=self.shape,
            schemas=self.schemas,
            log=log,
            found=self.found,
            epoch=self.span.until.epoch,
            limits=self.context.limits,
            letters=() if moot else letters,
        )
        parking.wait_for_letters()
        while not self._in_vain(parking):
            touched = moot or bool(parking.parked) or self.redrive is not None
            stamp = self._stamp(letters=touched)
            self._fill(fence.branch, stamp)
            batch = self._batch(fence.branch, fence.base, parking.rest, stamp)
            try:
                write(batch)
                break
            except Unfit as unfit:
                parking.set_aside(batch, unfit)
                fence.reopen()  # pieces of the batch may have been written
        else:
            self._note(parking)
            return None
        outcome = self._written(
            fence.branch, fence.base, stamp, batch.adjusted, len(parking.parked)
        )
        if moot:
            self.context.letters.supersede(self.target.source, self.batch_id, self.context.run)
        self._note(parking)
        faults.point("apply.after_letters")
        return outcome, stamp

    def _in_vain(self, parking: Parking) -> bool:
        return self.redrive is not None and len(parking.parked) == len(self.redrive.letters)

    def _nothing(self, base: int | None) -> Outcome:
        """A redrive in which everything failed again: nothing is committed."""
        assert self.redrive is not None and base is not None
        seconds, parked = time.monotonic() - self.began, len(self.redrive.letters)
        return Outcome(base, 0, 0, 0, truncated=False, seconds=seconds, parked=parked)

    def _note(self, parking: Parking) -> None:
        """Who waits now, and who no longer does. Counts once the batch is published."""
        source, run, letters = self.target.source, self.context.run, self.context.letters
        parked = parking.collect()
        if self.redrive is None:
            letters.route(source, self.batch_id, run, parked)
            return
        again = {one.event_id for one in parked}
        letters.tried(source, run, again)
        tried = (letter.event_id for letter in self.redrive.letters)
        letters.resolve(source, self.batch_id, run, [one for one in tried if one not in again])

    def _letters(self) -> Sequence[Letter]:
        """Letters that stand in the way; those that are tried again do not."""
        self.context.letters.settle(self.target.source, self.table, self.context.run)
        if self.redrive is not None:
            return ()
        return self.context.letters.waiting(self.target.source, self.table)

    @cached_property
    def shape(self) -> LakeShape:
        return lake_shape(self.session, self.target, self.schemas[-1][0])

    def _log(self) -> DataFrame:
        if self.redrive is not None:
            return self.redrive.rows
        rows = _narrow(self.session, self.context.pin, self.target, self.span)
        return rows.coalesce(1) if self.found.rows <= FEW_ROWS else rows

    def _batch(
        self,
        branch: str,
        start: int | None,
        log: DataFrame,
        stamp: dict[str, str],
        *,
        mixed: bool = False,
    ) -> Batch:
        return Batch(
            session=self.session,
            target=self.target,
            shape=self.shape,
            schemas=self.schemas,
            log=log,
            found=self.found,
            epoch=self.span.until.epoch,
            branch=branch,
            stamp=stamp,
            before_write=self._before_write,
            ceiling=partial(key_ceiling, self.table, start),
            mixed=mixed,
        )

    def _fill(self, branch: str, stamp: dict[str, str]) -> None:
        """Older rows have the defaults of columns that came, which were never sent."""
        if not self.fills or (self.found.truncates and self.target.forgets):
            return
        self.context.check()  # I4
        fill(self.session, self.target, branch, self.fills, partial_stamp(stamp))
        faults.point("apply.after_fill")

    def _before_write(self) -> None:
        faults.point("apply.before_commit")
        self.context.check()  # I4

    def _stamp(self, *, letters: bool = False) -> dict[str, str]:
        stamp = {
            POSITION_PROPERTY: str(self.span.until),
            RUN_PROPERTY: self.context.run,
            STEP_PROPERTY: STEP,
        }
        return stamp | {LETTERS_PROPERTY: self.batch_id} if letters else stamp

    def _stamp_only(self, branch: str, stamp: dict[str, str]) -> None:
        self._before_write()
        publish.stamp(self.session, self.target, branch=branch, properties=stamp)

    def _written(
        self,
        branch: str,
        start: int | None,
        stamp: dict[str, str],
        adjusted: dict[str, int],
        parked: int,
    ) -> Outcome:
        """What stands on the branch now."""
        table = self._reload()
        verify_stamp(table, branch, stamp)
        rows = counts(table, branch, start)
        snapshot = table.metadata.snapshot_by_name(branch)
        if snapshot is None:
            raise FatalError("lake.snapshot_missing", "no snapshot", hint="sweep the table again")
        faults.point("apply.after_commit")
        return Outcome(
            snapshot_id=snapshot.snapshot_id,
            inserted=rows["inserted"],
            updated=rows["updated"],
            deleted=rows["deleted"],
            truncated=bool(self.found.truncates),
            seconds=time.monotonic() - self.began,
            adjusted=adjusted,
            parked=parked,
        )

    def _reload(self) -> Table:
        return reload(self.context.catalog, self.target)


def lake_shape(session: SparkSession, target: LakeTarget, schema: TableSchema) -> LakeShape:
    """The table's columns as Spark types them, and its key."""
    fields = [
        field
        for field in session.table(qualified(target)).schema.fields
        if not field.name.startswith(CDC_PREFIX)
    ]
    names = tuple(field.name for field in fields)
    key = tuple(names.index(column.name) for column in schema.key_columns)
    return LakeShape(names, tuple(field.dataType for field in fields), key)


def _narrow(session: SparkSession, pin: LogPin, target: LakeTarget, span: LogRange) -> DataFrame:
    """The table's rows of the range; the log is sorted by both, so few files are read."""
    rows = read_log(session, pin).where(
        (F.col("table") == target.source)
        & (F.col("epoch") == span.until.epoch)
        & (F.col("position") > span.after.place)
        & (F.col("position") <= span.until.place)
        & (F.col("op") != "m")
    )
    return missing(rows, span.held)
