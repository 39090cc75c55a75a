"""How long change-log rows are needed, and dropping those that nobody needs (DESIGN §4).

A table's floor is the lowest position from which it may still be replayed: the positions of all
its retained snapshots (each may be rolled back to) and what was captured when its running sweep
began (the cut is later than that). Rows at or below every floor of their file may go.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

from pyiceberg.catalog import Catalog
from pyiceberg.manifest import DataFile
from pyiceberg.table import Table

from tidegate import faults
from tidegate.config.pipeline import PipelineConfig
from tidegate.config.source import SnapshotMode
from tidegate.envelope.position import Position, lsn_place
from tidegate.errors import FatalError, RetriableError
from tidegate.lake import commits, positions
from tidegate.lake.catalog import load
from tidegate.lake.change_log import ChangeLog
from tidegate.lake.expiry import Expired, expire
from tidegate.lake.gate import Gate, GateState
from tidegate.lake.log_files import span_of
from tidegate.lake.log_table import reached
from tidegate.names import CAPTURED_THROUGH, STEP_PROPERTY

READER_GRACE: Final = timedelta(hours=1)
"""Log snapshots this young stay: an apply that pinned one still reads its files."""

_ATTEMPTS: Final = 10


@dataclass(frozen=True, slots=True)
class TrimResult:
    """What a trim removed."""

    files: int = 0
    rows: int = 0
    bytes: int = 0
    expired_snapshots: int = 0
    deleted_files: int = 0


def floors(catalog: Catalog, pipeline: PipelineConfig, gate: Gate) -> dict[str, Position]:
    """Per table of the pipeline: rows after this position are needed."""
    # The head is read first: a sweep that begins after this has a floor at or above it.
    head = ChangeLog(catalog, pipeline).head().captured_through
    gates = gate.states(pipeline.source.tables)
    result: dict[str, Position] = {}
    for target in pipeline.targets:
        needed = _retained(load(catalog, target.identifier))
        state = gates[target.source]
        if state.state is GateState.SWEEPING and state.floor is not None:
            needed.append(state.floor)
        if needed:
            result[target.source] = _lowest(needed, head)
        elif pipeline.source.snapshot_mode is SnapshotMode.NEVER:
            result[target.source] = Position(head.epoch, lsn_place(0, 0))
        else:
            result[target.source] = head  # its first sweep's cut will be later than this
    return result


def trim(
    change_log: ChangeLog,
    floors: Mapping[str, Position],
    older_than: datetime,
    *,
    expire_before: datetime | None = None,
) -> TrimResult:
    """Drop log files that are older than ``older_than`` and wholly at or below their floors.

    Tables without a floor left the pipeline: their rows only have to be old enough. Whole files
    go, by metadata alone; a file with one needed row stays. ``captured_through`` is stamped on the
    trimming snapshot, so it survives the expiry that then removes the files for good (I1).
    """
    dropped: list[DataFile] = []
    for attempt in range(_ATTEMPTS):
        table = change_log.table()
        head = change_log.head_of(table)
        dropped = _droppable(table, floors, older_than, head.captured_through.epoch)
        try:
            _stamp_trim(table, dropped, head.snapshot_id, head.captured_through)
            break
        except RetriableError as error:
            if error.code != commits.MOVED or attempt == _ATTEMPTS - 1:
                raise
            time.sleep(0.05 * (attempt + 1))  # capture is committing
    faults.point("maintain.after_retention")
    expired = _expire(change_log, expire_before or datetime.now(UTC) - READER_GRACE)
    return TrimResult(
        files=len(dropped),
        rows=sum(int(file.record_count) for file in dropped),
        bytes=sum(int(file.file_size_in_bytes) for file in dropped),
        expired_snapshots=expired.snapshots,
        deleted_files=expired.files,
    )


def _retained(table: Table | None) -> list[Position]:
    """Positions of the retained snapshots that can be replayed from."""
    if table is None:
        return []
    try:
        now = positions.applied(table)
    except FatalError as error:
        if error.code != "lake.position_lost":
            raise
        return []  # it needs a sweep, whose cut will be later than anything captured so far
    stamps = [positions.stamp(snapshot) for snapshot in table.metadata.snapshots]
    known = [stamp for stamp in stamps if stamp is not None]
    # A snapshot of an older epoch cannot be replayed from: that log is gone.
    return known if now is None else [stamp for stamp in known if stamp.epoch == now.epoch]


def _lowest(needed: list[Position], head: Position) -> Position:
    """Of several epochs the older one is the lower: rows of it and after it are needed."""
    older = [position for position in needed if position.epoch != head.epoch]
    return min(older or needed, key=lambda position: position.place)


def _droppable(
    table: Table, floors: Mapping[str, Position], older_than: datetime, epoch: str
) -> list[DataFile]:
    limit = int(older_than.timestamp() * 1_000_000)
    files = (task.file for task in table.scan().plan_files())
    return [file for file in files if _may_go(file, floors, limit, epoch)]


def _may_go(file: DataFile, floors: Mapping[str, Position], limit: int, epoch: str) -> bool:
    span = span_of(file)
    if span is None or span.until >= limit:
        return False
    concerned = [floor for name, floor in floors.items() if span.covers(name)]
    return all(_below(span.epoch, span.last_place, floor, epoch) for floor in concerned)


def _below(file_epoch: str, place: str, floor: Position, current: str) -> bool:
    if file_epoch == floor.epoch:
        return place <= floor.place
    # Only a table that stands in the current epoch has no use for rows of another one.
    return floor.epoch == current


def _stamp_trim(table: Table, dropped: Iterable[DataFile], head: int, through: Position) -> None:
    files = list(dropped)
    facts = {
        **reached(through),
        STEP_PROPERTY: "trim",
    }
    if files:
        commits.replace_files(table, files, (), facts, head)
        return
    current = table.current_snapshot()
    if current is not None and CAPTURED_THROUGH not in positions.summary(current):
        # A rewrite is the newest snapshot; expiry may take the ancestor that says where we are.
        commits.append_files(table, (), facts, head)


def _expire(change_log: ChangeLog, before: datetime) -> Expired:
    try:
        return expire(change_log.table(), before=before)
    except RetriableError as error:
        if error.code != commits.MOVED:
            raise
        return Expired()  # capture is busy; the next trim expires
