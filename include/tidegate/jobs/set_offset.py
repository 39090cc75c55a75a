"""Set a table's position: one empty commit that carries it, under lease and fence (I1, I4)."""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Final

from tidegate import faults
from tidegate.config.pipeline import LakeTarget, PipelineConfig
from tidegate.config.platform import PlatformConfig
from tidegate.envelope.position import Position, read_position
from tidegate.jobs.sweep_plan import check_tables
from tidegate.lake.audit_trail import Action, AuditTrail
from tidegate.lake.catalog import open_catalog
from tidegate.lake.change_log import ChangeLog
from tidegate.lake.gate import Gate, Lease
from tidegate.lake.reposition import Direction, Move, plan_move, refuse_moved
from tidegate.names import (
    EPOCH_PROPERTY,
    POSITION_PROPERTY,
    RUN_PROPERTY,
    STEP_OFFSET,
    STEP_PROPERTY,
    TableId,
    apply_branch,
)
from tidegate.spark import publish
from tidegate.spark.fence import Fence, drop_leftovers, reload
from tidegate.spark.stamp import verify_stamp

if TYPE_CHECKING:
    from pyiceberg.catalog import Catalog

    from tidegate.spark.session import SparkSession

PURPOSE: Final = "set offset"


@dataclass(frozen=True, slots=True)
class SetOffsetResult:
    """Where the table stood, where it stands, and what that means."""

    table: str
    status: str  # set | unchanged | planned
    direction: str  # replay | skip | none
    from_position: Position
    to_position: Position
    changes: int
    first_at: datetime | None
    last_at: datetime | None
    snapshot_id: int | None
    next: str


def run_set_offset(
    spark: SparkSession,
    pipeline: PipelineConfig,
    platform: PlatformConfig,
    table: str | TableId,
    position: str | Position,
    *,
    skip: bool = False,
    reason: str | None = None,
    expect: str | None = None,
    dry_run: bool = False,
    run: str | None = None,
) -> SetOffsetResult:
    """Set ``table`` to ``position``; refused as :func:`~tidegate.lake.reposition.plan_move` says.

    ``expect``: where the table stood when someone was shown what would happen; if it moved since,
    nothing is done (``offsets.moved``).
    """
    catalog = open_catalog(platform, pipeline)
    (target,) = check_tables(pipeline, [table])
    run = run or f"offset_{uuid.uuid4().hex[:12]}"
    wanted = position
    if isinstance(wanted, str):
        epoch = ChangeLog(catalog, pipeline).head().captured_through.epoch
        wanted = read_position(wanted, epoch)
    gate = Gate(catalog, pipeline, platform.gate)
    with gate.lease(run, [target.source], PURPOSE) as lease:
        move = plan_move(catalog, pipeline, platform.gate, target, wanted, skip=skip)
        if expect is not None:
            refuse_moved(move, expect)
        if dry_run:
            return _result(move, "planned", move.snapshot_id)
        if move.direction is Direction.NONE:
            return _result(move, "unchanged", move.snapshot_id)
        facts = {"direction": move.direction.value, "changes": move.changes, "reason": reason}
        places = {"from_position": str(move.from_position), "to_position": str(wanted)}
        trail = AuditTrail(catalog, pipeline)
        with trail.action(Action.SET_OFFSET, [target.source], run=run, **facts, **places):
            snapshot_id = _stamp(spark, catalog, target, move, lease, run)
    return _result(move, "set", snapshot_id)


def _stamp(
    spark: SparkSession, catalog: Catalog, target: LakeTarget, move: Move, lease: Lease, run: str
) -> int:
    """No row changes: the branch holds one empty commit on the very snapshot that was judged."""
    properties = {
        POSITION_PROPERTY: str(move.to_position),
        EPOCH_PROPERTY: move.to_position.epoch,
        RUN_PROPERTY: run,
        STEP_PROPERTY: STEP_OFFSET,
    }
    drop_leftovers(spark, reload(catalog, target), target)
    fence = Fence(spark, catalog, target, apply_branch(lease.token), move.snapshot_id)
    fence.open()
    try:
        snapshot_id = publish.stamp(spark, target, branch=fence.branch, properties=properties)
        faults.point("offset.after_stamp")
        lease.check()  # I4
        fence.publish()
        faults.point("offset.after_publish")
        verify_stamp(reload(catalog, target), None, properties)  # I1
    finally:
        fence.drop()
    return snapshot_id


def _result(move: Move, status: str, snapshot_id: int | None) -> SetOffsetResult:
    follows = {
        Direction.REPLAY: "the next apply takes the changes from there on again",
        Direction.SKIP: "the table differs from its source until it is swept",
        Direction.NONE: "nothing changes",
    }
    return SetOffsetResult(
        table=move.table,
        status=status,
        direction=move.direction.value,
        from_position=move.from_position,
        to_position=move.to_position,
        changes=move.changes,
        first_at=move.first_at,
        last_at=move.last_at,
        snapshot_id=snapshot_id,
        next=follows[move.direction],
    )
