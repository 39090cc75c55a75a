"""Offsets: where capture and each table stand, and what setting one would do (I10).

Setting one is a job of its own (``jobs.set_offset``): lake tables are written by Spark alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from tidegate.config.pipeline import PipelineConfig
from tidegate.config.platform import PlatformConfig
from tidegate.control.status import status
from tidegate.control.tables import known_tables, one_table
from tidegate.envelope.position import Position, format_lsn, read_position
from tidegate.lake.catalog import open_catalog
from tidegate.lake.change_log import ChangeLog
from tidegate.lake.reposition import Move, plan_move, refuse_moved, replayable_from
from tidegate.names import TableId


@dataclass(frozen=True, slots=True)
class TableOffset:
    """Where one table stands."""

    table: str
    position: str | None  # None: never swept
    lsn: str | None
    lag_bytes: int | None
    lag_seconds: float | None
    gate: str
    lowest: str | None
    """The lowest position it may be set to; None: its write mode does not allow a replay."""
    needs: str | None


@dataclass(frozen=True, slots=True)
class Offsets:
    """Where a pipeline stands."""

    pipeline_id: str
    captured_through: str | None  # None: not deployed
    captured_lsn: str | None
    captured_at: datetime | None
    tables: tuple[TableOffset, ...]


def offsets(
    pipeline: PipelineConfig, platform: PlatformConfig, tables: Sequence[str] | None = None
) -> Offsets:
    """Positions of the change log and of each table. The source is not asked."""
    names = known_tables(pipeline, tables) or pipeline.source.tables
    now = status(pipeline, platform, ask_source=False)
    low = replayable_from(open_catalog(platform, pipeline), pipeline, platform.gate)
    return Offsets(
        pipeline_id=pipeline.pipeline_id,
        captured_through=now.captured_through,
        captured_lsn=_lsn(now.captured_through),
        captured_at=now.captured_at,
        tables=tuple(
            TableOffset(
                table=table.table,
                position=table.position,
                lsn=_lsn(table.position),
                lag_bytes=table.lag_bytes,
                lag_seconds=table.lag_seconds,
                gate=table.gate.state,
                lowest=None if (lowest := low.get(table.table)) is None else str(lowest),
                needs=table.needs,
            )
            for table in now.tables
            if table.table in names
        ),
    )


def plan(
    pipeline: PipelineConfig,
    platform: PlatformConfig,
    table: str | None,
    position: str,
    *,
    skip: bool = False,
    expect: str | None = None,
) -> Move:
    """What ``offsets set`` would replay or skip; reads only. Refused where it is not allowed, and
    where the table does not stand at ``expect`` any more."""
    name = one_table(pipeline, table)
    catalog = open_catalog(platform, pipeline)
    epoch = ChangeLog(catalog, pipeline).head().captured_through.epoch
    target = pipeline.target(TableId.parse(name))
    wanted = read_position(position, epoch)
    move = plan_move(catalog, pipeline, platform.gate, target, wanted, skip=skip)
    if expect is not None:
        refuse_moved(move, expect)
    return move


def _lsn(position: str | None) -> str | None:
    return None if position is None else format_lsn(Position.parse(position).lsn)
