"""Upkeep of one lake table, its lease in hand."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING

from tidegate import faults
from tidegate.config.pipeline import LakeTarget
from tidegate.config.platform import SweepConfig
from tidegate.envelope.position import Position
from tidegate.errors import FatalError
from tidegate.lake import commits, positions
from tidegate.lake.gate import Lease
from tidegate.lake.upkeep import UpkeepPlan
from tidegate.names import POSITION_PROPERTY, RUN_PROPERTY, STEP_PROPERTY
from tidegate.spark import publish
from tidegate.spark import upkeep as spark_upkeep
from tidegate.spark.fence import drop_leftovers
from tidegate.spark.sweep_state import sweep_branches
from tidegate.spark.upkeep import Compacted

if TYPE_CHECKING:
    from pyiceberg.catalog import Catalog
    from pyiceberg.table import Table

    from tidegate.spark.session import SparkSession


@dataclass(frozen=True, slots=True)
class TableWork:
    """What upkeep changed."""

    compacted: Compacted = field(default_factory=Compacted)
    delete_files_rewritten: int = 0
    manifests_rewritten: int = 0
    files_expired: int = 0
    orphans_removed: int = 0
    branches_dropped: tuple[str, ...] = ()


class TableKeeper:
    """Upkeep of one table. The caller planned it and holds the lease."""

    def __init__(
        self,
        session: SparkSession,
        catalog: Catalog,
        target: LakeTarget,
        sweep: SweepConfig,
        lease: Lease,
    ) -> None:
        self._session = session
        self._catalog = catalog
        self._target = target
        self._sweep = sweep
        self._lease = lease

    @staticmethod
    def leftovers(table: Table, sweep: SweepConfig) -> tuple[str, ...]:
        """Branches of sweeps that nobody goes on with and that were kept long enough."""
        oldest = (time.time() - sweep.branch_max_age_seconds) * 1000
        return tuple(name for name, at in sweep_branches(table).items() if at < oldest)

    def keep(self, plan: UpkeepPlan, before_expiry: Callable[[str, Table], None]) -> TableWork:
        """Do what ``plan`` says; the position is the same afterwards (I1).

        ``before_expiry`` saves what names snapshots that are about to go.
        """
        before = positions.applied(self._table())
        dropped = self._drop_branches()
        compacted, deletes, manifests = self._rewrite(plan)
        self._stamp(before)
        faults.point("maintain.after_stamp")
        if plan.expire:
            before_expiry(self._target.source, self._table())
        expired = self._expire() if plan.expire else 0
        orphans = self._orphans() if plan.remove_orphans else 0
        after = positions.applied(self._table())
        if after != before:
            raise FatalError(
                "maintain.position_changed",
                f"{self._target.source} stood at {before}, after maintenance at {after}",
                hint="another writer wrote to the table meanwhile; see `tidegate gate show`",
            )
        return TableWork(compacted, deletes, manifests, expired, orphans, dropped)

    def _rewrite(self, plan: UpkeepPlan) -> tuple[Compacted, int, int]:
        table, settings = self._target.identifier, self._target.maintenance
        compacted, deletes, manifests = Compacted(), 0, 0
        if plan.compact:
            self._lease.check()
            compacted = spark_upkeep.compact(
                self._session, table, rows_per_batch=settings.compaction_max_rows_per_batch
            )
            if self._target.format_version == 2:
                deletes = spark_upkeep.rewrite_deletes(self._session, table)
            faults.point("maintain.after_compact")
        if plan.rewrite_manifests:
            self._lease.check()
            manifests = spark_upkeep.rewrite_manifests(self._session, table)
        return compacted, deletes, manifests

    def _stamp(self, position: Position | None) -> None:
        """Rewrites carry no position: put it on the newest snapshot before its bearer expires."""
        table = self._table()
        state = positions.state(table)
        if position is None or state is None or state.snapshot_id == commits.head_id(table):
            return
        self._lease.check()
        publish.stamp(
            self._session,
            self._target,
            branch=None,
            properties={
                POSITION_PROPERTY: str(position),
                STEP_PROPERTY: "stamp",
                RUN_PROPERTY: self._lease.run,
            },
        )

    def _expire(self) -> int:
        settings = self._target.maintenance
        self._lease.check()
        files = spark_upkeep.expire(
            self._session,
            self._target.identifier,
            older_than=timedelta(seconds=settings.expire_snapshots_older_than_seconds),
            retain_last=settings.retain_last,
        )
        faults.point("maintain.after_expire")
        return files

    def _orphans(self) -> int:
        age = timedelta(seconds=self._target.maintenance.orphan_files_older_than_seconds)
        self._lease.check()
        return spark_upkeep.remove_orphans(self._session, self._target.identifier, older_than=age)

    def _drop_branches(self) -> tuple[str, ...]:
        # A table that is being swept lets no maintenance in, so none of these is in use.
        table = self._table()
        drop_leftovers(self._session, table, self._target)
        names = self.leftovers(table, self._sweep)
        for name in names:
            publish.drop_branch(self._session, self._target, name)
        return names

    def _table(self) -> Table:
        return self._catalog.load_table(self._target.identifier)
