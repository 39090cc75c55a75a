"""Rollback: one lake table back to an earlier snapshot, its position with it (I1).

The next apply replays the change log from that position. So the snapshot must say where it
stands, and the log must still reach back to it; otherwise only a sweep could bring the table up to
date again, and that is refused unless forced.
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tidegate import faults
from tidegate.config.pipeline import LakeTarget, PipelineConfig
from tidegate.config.platform import PlatformConfig
from tidegate.envelope.position import Position
from tidegate.errors import ConfigError, DataError
from tidegate.jobs.result import plain
from tidegate.jobs.sweep_plan import check_tables
from tidegate.lake import commits, positions
from tidegate.lake.audit_trail import Action, AuditTrail
from tidegate.lake.catalog import load, open_catalog
from tidegate.lake.change_log import ChangeLog
from tidegate.lake.gate import Gate
from tidegate.lake.positions import SnapshotInfo
from tidegate.lake.reports import Reports
from tidegate.names import TableId
from tidegate.spark.rollback import rollback

if TYPE_CHECKING:
    from pyiceberg.catalog import Catalog
    from pyiceberg.table import Table

    from tidegate.spark.session import SparkSession

ACTOR = "rollback"


@dataclass(frozen=True, slots=True)
class RollbackResult:
    """Where the table stood and where it stands."""

    table: str
    status: str  # rolled back | planned | unchanged
    from_snapshot: int | None
    to_snapshot: int
    from_position: Position | None
    to_position: Position | None
    held: bool = False
    next: str = ""
    """What happens now."""


def run_rollback(
    spark: SparkSession,
    pipeline: PipelineConfig,
    platform: PlatformConfig,
    table: str | TableId,
    snapshot_id: int,
    *,
    force: bool = False,
    dry_run: bool = False,
    run: str | None = None,
) -> RollbackResult:
    """Take ``table`` back to ``snapshot_id``, an ancestor of what it is now.

    Refused (``rollback.cannot_replay``) if the log cannot bring it forward again; with ``force`` it
    is done, and the table is held until someone sweeps it.
    """
    catalog = open_catalog(platform, pipeline)
    (target,) = check_tables(pipeline, [table])
    gate = Gate(catalog, pipeline, platform.gate)
    run = run or f"rollback_{uuid.uuid4().hex[:12]}"
    with gate.lease(run, [target.source], ACTOR) as lease:
        loaded = _loaded(catalog, target)
        info = _ancestor(loaded, target, snapshot_id)
        obstacle = _obstacle(catalog, pipeline, info)
        if obstacle is not None and not force:
            raise DataError(
                "rollback.cannot_replay",
                f"{target.source}: {obstacle}",
                hint="choose another snapshot (`tidegate lakehouse snapshots`); forced, the table"
                " goes back and is held until it is swept",
            )
        planned = _planned(loaded, target, info, obstacle)
        if dry_run or planned.status == "unchanged":
            return planned
        trail = AuditTrail(catalog, pipeline)
        with trail.action(Action.ROLLBACK, [target.source], run=run, to_snapshot=snapshot_id):
            if obstacle is not None:
                # Held first: no apply may meet rows whose position cannot be replayed from.
                gate.hold([target.source], f"rolled back to {snapshot_id}: {obstacle}", ACTOR)
            lease.check()
            rollback(spark, target.identifier, snapshot_id)
            faults.point("rollback.after_commit")
    result = _done(planned)
    Reports(catalog, pipeline).add("rollback", run, plain(result))
    return result


def _loaded(catalog: Catalog, target: LakeTarget) -> Table:
    table = load(catalog, target.identifier)
    if table is None:
        raise ConfigError(
            "rollback.no_table",
            f"{target.namespace}.{target.name} does not exist",
            hint="sweep the table first",
        )
    return table


def _ancestor(table: Table, target: LakeTarget, snapshot_id: int) -> SnapshotInfo:
    known = {info.snapshot_id: info for info in positions.history(table)}
    info = known.get(snapshot_id)
    if info is None or not info.on_main:
        why = "does not exist" if info is None else "is not part of main's history"
        raise ConfigError(
            "rollback.no_snapshot",
            f"snapshot {snapshot_id} of {target.namespace}.{target.name} {why}",
            hint="list them with `tidegate lakehouse snapshots`; old ones expire",
        )
    return info


def _obstacle(catalog: Catalog, pipeline: PipelineConfig, info: SnapshotInfo) -> str | None:
    """Why the next apply could not go on from there."""
    if info.position is None or info.foreign:
        return (
            f"snapshot {info.snapshot_id} stands at no position: it is a step of a sweep, or"
            " another program wrote it"
        )
    # Retention keeps every row after the lowest position of a retained snapshot of this epoch
    # (lake/retention.py), so that the epoch alone decides.
    change_log = ChangeLog(catalog, pipeline)
    if not change_log.exists() or change_log.head().captured_through.epoch != info.position.epoch:
        return (
            f"the change log no longer reaches back to {info.position}, where snapshot"
            f" {info.snapshot_id} stands"
        )
    return None


def _planned(
    table: Table, target: LakeTarget, info: SnapshotInfo, obstacle: str | None
) -> RollbackResult:
    head = commits.head_id(table)
    follows = "the next apply replays the change log from there"
    if obstacle is not None:
        follows = f"{obstacle}; the table is held until it is swept"
    return RollbackResult(
        table=target.source,
        status="unchanged" if head == info.snapshot_id else "planned",
        from_snapshot=head,
        to_snapshot=info.snapshot_id,
        from_position=positions.applied(table),
        to_position=info.position,
        held=obstacle is not None,
        next=follows,
    )


def _done(planned: RollbackResult) -> RollbackResult:
    return RollbackResult(
        planned.table,
        "rolled back",
        planned.from_snapshot,
        planned.to_snapshot,
        planned.from_position,
        planned.to_position,
        planned.held,
        planned.next,
    )
