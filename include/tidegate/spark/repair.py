"""Repair: rows of given keys read again from the source, on a branch.

The rows of the keys are deleted on the branch and taken again at the cut that the table was brought
to, so that no log need be drained; every other row stays as ``main`` has it. Keys may be of any
type and any number of columns: both sides find them by joins, and the source is asked by the places
of keys (``schema.keyspace``), so that no statement holds a value (I9).
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass

from pyiceberg.table import Table
from pyspark.sql import DataFrame

from tidegate import faults
from tidegate.config.pipeline import LakeTarget
from tidegate.config.sinks import WriteMode
from tidegate.errors import HeldError
from tidegate.names import (
    POSITION_PROPERTY,
    RUN_PROPERTY,
    STEP_PROPERTY,
    STEP_REPAIR,
    quote_spark,
    sweep_branch,
)
from tidegate.spark import publish
from tidegate.spark.modes import PARTIAL_STEP
from tidegate.spark.selection import keys_predicate
from tidegate.spark.sides import Sides
from tidegate.spark.stamp import stamped
from tidegate.spark.sweep_read import check_exact
from tidegate.spark.sweep_state import sweep_branches


def keyless(target: LakeTarget) -> HeldError:
    """Why rows of a table without a key are not read again one by one."""
    return HeldError(
        "repair.needs_sweep",
        f"{target.source}: it has no key by which single rows could be read again",
        hint=f"sweep the whole table: `tidegate sweep --table {target.source}`",
    )


@dataclass(frozen=True, slots=True)
class Repair:
    """One table's repair. The caller holds its lease, and has applied the log up to the cut."""

    sides: Sides
    table: Table
    run: str

    @property
    def target(self) -> LakeTarget:
        return self.sides.target

    @property
    def branch(self) -> str:
        return sweep_branch(self.run)

    def check(self) -> None:
        """Refuse tables whose rows cannot be replaced one by one."""
        if self.target.write_mode is not WriteMode.UPSERT or self.target.soft_delete:
            raise HeldError(
                "repair.needs_sweep",
                f"{self.target.source}: only plain upsert tables can be mended by key",
                hint=f"sweep the whole table: `tidegate sweep --table {self.target.source}`",
            )
        if not self.sides.schema.key_columns:
            raise keyless(self.target)

    def build(self, keys: DataFrame) -> int:
        """The branch with the rows of ``keys`` as the source has them; its snapshot."""
        session = self.sides.session
        # Branches of earlier runs on this table can never be published any more.
        for stale in sweep_branches(self.table):
            publish.drop_branch(session, self.target, stale)
        publish.create_branch(
            session,
            self.target,
            self.branch,
            retain_seconds=self.sides.settings.branch_max_age_seconds,
        )
        faults.point("repair.after_branch")
        self._delete(keys)
        faults.point("repair.after_delete")
        # The source may send neighbours too, whose values are no matter of this repair.
        read = self.sides.read(keys_predicate(self.sides, keys), keys=keys)
        rows = self.sides.as_lake(read.frame)
        written = publish.append(rows, self.target, branch=self.branch, properties=self._part())
        check_exact(self.target.source, read.seen())
        faults.point("repair.after_rows")
        return written.snapshot_id

    def publish(self) -> int:
        """Make the branch ``main``, at the same position; the new snapshot (I1, I5)."""
        session = self.sides.session
        properties = {
            POSITION_PROPERTY: str(self.sides.cut.position),
            RUN_PROPERTY: self.run,
            STEP_PROPERTY: STEP_REPAIR,
        }
        publish.stamp(session, self.target, branch=self.branch, properties=properties)
        snapshot = publish.fast_forward(session, self.target, self.branch)
        faults.point("repair.after_publish")
        return snapshot

    def drop(self) -> None:
        """Forget the branch, which nobody wants any more."""
        publish.drop_branch(self.sides.session, self.target, self.branch)

    def _delete(self, keys: DataFrame) -> None:
        view = f"tidegate_keys_{uuid.uuid4().hex}"
        names = [quote_spark(column.name) for column in self.sides.schema.key_columns]
        on = " AND ".join(f"t.{name} = s.{name}" for name in names)
        session = self.sides.session
        keys.createOrReplaceTempView(view)
        try:
            with stamped(session, self._part()):
                session.sql(
                    f"MERGE INTO {publish.spark_name(self.target, self.branch)} t"
                    f" USING {view} s ON {on} WHEN MATCHED THEN DELETE"
                )
        finally:
            session.catalog.dropTempView(view)

    def _part(self) -> dict[str, str]:
        return {RUN_PROPERTY: self.run, STEP_PROPERTY: PARTIAL_STEP}
