"""Applying one table's range of the change log in one published snapshot.

Whatever the write mode, rows are written to a branch made from the exact snapshot whose position
was read, and published by ``fast_forward``: a compare-and-set on ``main`` that works on every
catalog. A stale writer, stopped anywhere and woken later, cannot publish (I4), and readers see
whole batches only (I5).
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Final

from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
from pyiceberg.catalog import Catalog
from pyiceberg.table import Table
from pyiceberg.table.snapshots import Operation
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from tidegate import faults
from tidegate.config.pipeline import LakeTarget
from tidegate.errors import FatalError, HeldError, TidegateError
from tidegate.lake import commits
from tidegate.lake.catalog import load
from tidegate.lake.evolution import SchemaConflict, evolve
from tidegate.lake.key_ceiling import key_ceiling
from tidegate.lake.lineage import Lineage, read_lineage
from tidegate.lake.positions import ancestors, summary
from tidegate.lake.schema_history import SchemaHistory, unknown_schema
from tidegate.lake.schema_hold import held_error
from tidegate.lake.tables import qualified
from tidegate.names import (
    CDC_PREFIX,
    POSITION_PROPERTY,
    RUN_PROPERTY,
    STEP_PROPERTY,
    apply_branch,
    quote_spark,
)
from tidegate.schema.table import TableSchema
from tidegate.spark import publish
from tidegate.spark.modes import Batch, write
from tidegate.spark.stamp import verify_stamp
from tidegate.spark.survey import LogPin, LogRange, SchemaShare, Survey, read_log
from tidegate.spark.typed import LakeShape

STEP: Final = "apply"
INCOMPATIBLE: Final = "apply.schema_incompatible"
_MERGED: Final = "spark.merge-into.num-target-rows-"
APPLY_PREFIX: Final = apply_branch("")


@dataclass(frozen=True, slots=True)
class ApplyContext:
    """What all tables of a run share."""

    catalog: Catalog
    history: SchemaHistory
    pin: LogPin
    run: str
    token: str
    check: Callable[[], None]
    """Raises if the lease on the tables is lost."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one application changed."""

    snapshot_id: int
    inserted: int
    updated: int
    deleted: int
    truncated: bool
    seconds: float
    adjusted: dict[str, int] = field(default_factory=dict)


def apply_range(
    session: SparkSession,
    context: ApplyContext,
    target: LakeTarget,
    span: LogRange,
    found: Survey,
    *,
    base: int | None = None,
    branch: str | None = None,
) -> Outcome:
    """Apply ``span`` (which ``found`` surveyed) on top of snapshot ``base`` and publish it, or
    onto ``branch``, which belongs to the caller, who publishes it.

    ``base`` is the snapshot of ``main`` that said it stands at ``span.after``. The session must be
    this thread's own. With no rows in ``found`` only the position moves.
    """
    began = time.monotonic()
    table, schemas = _evolve(session, context, target, span, found)
    work = branch or apply_branch(context.token)
    if branch is None:
        drop_leftovers(session, table, target)
        _open_branch(session, target, work, base)
    stamp = {
        POSITION_PROPERTY: str(span.until),
        RUN_PROPERTY: context.run,
        STEP_PROPERTY: STEP,
    }
    start = base if branch is None else commits.head_id(table, branch)

    def before_write() -> None:
        faults.point("apply.before_commit")
        context.check()  # I4

    try:
        if not schemas:
            before_write()
            publish.stamp(session, target, branch=work, properties=stamp)
            adjusted: dict[str, int] = {}
        else:
            batch = Batch(
                session=session,
                target=target,
                shape=lake_shape(session, target, schemas[-1][0]),
                schemas=schemas,
                log=_narrow(session, context.pin, target, span),
                found=found,
                epoch=span.until.epoch,
                branch=work,
                stamp=stamp,
                before_write=before_write,
                ceiling=partial(key_ceiling, table, start),
                mixed=branch is not None,
            )
            write(batch)
            adjusted = batch.adjusted
    except TidegateError:
        if branch is None:
            publish.drop_branch(session, target, work)  # a held table must not keep it for long
        raise
    except (PySparkException, Py4JJavaError) as error:
        # Whoever took over drops our branch, and the statement fails in any number of ways.
        if branch is None and _overtaken(context.catalog, target, base):
            raise _moved(target) from error
        raise
    table = _reload(context.catalog, target)
    verify_stamp(table, work, stamp)
    counts = _counts(table, work, start)
    faults.point("apply.after_commit")
    if branch is None:
        table = _publish(session, context, target, work, stamp)
    return _outcome(table, branch, counts, found, adjusted, began)


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


def drop_leftovers(session: SparkSession, table: Table, target: LakeTarget) -> None:
    """Forget branches of applies that died; the caller holds the lease, so none is in use."""
    for name in table.metadata.refs:
        if name.startswith(APPLY_PREFIX):
            publish.drop_branch(session, target, name)


def _evolve(
    session: SparkSession,
    context: ApplyContext,
    target: LakeTarget,
    span: LogRange,
    found: Survey,
) -> tuple[Table, list[tuple[TableSchema, SchemaShare]]]:
    """Make the lake's columns hold every schema of the batch, or hold the table (I8)."""
    table = _reload(context.catalog, target)
    if not found.shares:
        return table, []
    lineage = read_lineage(context.history, target)
    places = [_version(lineage, share) for share in found.shares]
    base = lineage.index_at(span.after)
    try:
        change = evolve(table.schema(), lineage, places, base=base)
        schemas = [change.schemas[place] for place in places]
        if len({tuple(column.name for column in schema.key_columns) for schema in schemas}) > 1:
            raise SchemaConflict(places[-1], ["the key changed within the batch"])
    except SchemaConflict as conflict:
        raise held_error(INCOMPATIBLE, table.schema(), lineage, conflict) from None
    if change.needed:
        context.check()  # I4
        for statement in change.statements:
            session.sql(statement)
            faults.point("apply.after_evolve")
        table = _reload(context.catalog, target)
    return table, list(zip(schemas, found.shares, strict=True))


def _version(lineage: Lineage, share: SchemaShare) -> int:
    index = lineage.index_of(share.schema_id, share.first)
    if index is None:
        raise unknown_schema(share.schema_id)
    return index


def _narrow(session: SparkSession, pin: LogPin, target: LakeTarget, span: LogRange) -> DataFrame:
    """The table's rows of the range; the log is sorted by both, so few files are read."""
    return read_log(session, pin).where(
        (F.col("table") == target.source)
        & (F.col("epoch") == span.until.epoch)
        & (F.col("position") > span.after.place)
        & (F.col("position") <= span.until.place)
        & (F.col("op") != "m")
    )


def _open_branch(session: SparkSession, target: LakeTarget, branch: str, base: int | None) -> None:
    if base is None:
        raise FatalError(
            "apply.no_snapshot",
            f"{target.namespace}.{target.name} has never been written",
            hint="sweep the table first",
        )
    # From the very snapshot whose position was read: if main moved since, publishing fails.
    session.sql(
        f"ALTER TABLE {qualified(target)} CREATE BRANCH {quote_spark(branch)} AS OF VERSION {base}"
    )


def _publish(
    session: SparkSession,
    context: ApplyContext,
    target: LakeTarget,
    branch: str,
    stamp: dict[str, str],
) -> Table:
    context.check()  # I4
    try:
        publish.fast_forward(session, target, branch)
    except HeldError as error:
        raise _moved(target) from error
    faults.point("apply.after_publish")
    table = _reload(context.catalog, target)
    verify_stamp(table, None, stamp)  # I1
    publish.drop_branch(session, target, branch)
    return table


def _overtaken(catalog: Catalog, target: LakeTarget, base: int | None) -> bool:
    current = _reload(catalog, target).current_snapshot()
    return current is None or current.snapshot_id != base


def _moved(target: LakeTarget) -> HeldError:
    return HeldError(
        "apply.main_moved",
        f"{target.namespace}.{target.name} was written by someone else meanwhile; this batch was"
        " not published",
        hint="the next run applies it again from where the table stands",
    )


def _reload(catalog: Catalog, target: LakeTarget) -> Table:
    table = load(catalog, target.identifier)
    if table is None:
        raise FatalError(
            "apply.table_missing",
            f"the lake has no table {target.namespace}.{target.name}",
            hint="sweep the table first",
        )
    return table


def _counts(table: Table, ref: str, start: int | None) -> Counter[str]:
    """Rows inserted, updated and deleted by the statements after ``start``."""
    total: Counter[str] = Counter()
    for snapshot in ancestors(table.metadata, ref):
        if snapshot.snapshot_id == start:
            break
        facts = summary(snapshot)
        merged = {key: int(value) for key, value in facts.items() if key.startswith(_MERGED)}
        total.update({key.removeprefix(_MERGED): count for key, count in merged.items()})
        if not merged and snapshot.summary and snapshot.summary.operation is Operation.APPEND:
            total["inserted"] += int(facts.get("added-records", 0))
    return total


def _outcome(
    table: Table,
    ref: str | None,
    counts: Counter[str],
    found: Survey,
    adjusted: dict[str, int],
    began: float,
) -> Outcome:
    snapshot = table.metadata.snapshot_by_name(ref or "main")
    if snapshot is None:
        raise FatalError("lake.snapshot_missing", "no snapshot", hint="sweep the table again")
    return Outcome(
        snapshot_id=snapshot.snapshot_id,
        inserted=counts["inserted"],
        updated=counts["updated"],
        deleted=counts["deleted"],
        truncated=bool(found.truncates),
        seconds=time.monotonic() - began,
        adjusted=adjusted,
    )
