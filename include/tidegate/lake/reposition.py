"""Moving a table's position by hand: what it would mean, and whether it is allowed.

Back means replay: the next apply takes those changes again. That gives the same rows only where the
last change of every key wins (plain ``upsert`` of a table with a key), only since the table was
last read from its source (what a sweep or a repair brought may be newer than any change in the
log), and only over changes whose unsent values the lake still has under their key
(:mod:`tidegate.lake.replay`). Forward means that changes are never applied; only a sweep makes the
table right again.

The caller holds the table's lease, so the floor below which the log may be trimmed cannot rise
between the look and the commit.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Final

from pyiceberg.catalog import Catalog
from pyiceberg.table import Table

from tidegate.config.pipeline import LakeTarget, PipelineConfig
from tidegate.config.platform import GateConfig
from tidegate.envelope.position import Position, boundary
from tidegate.errors import ConfigError, DataError, HeldError, TidegateError
from tidegate.lake import commits, positions
from tidegate.lake.catalog import load
from tidegate.lake.change_log import ChangeLog, LogHead
from tidegate.lake.gate import Gate
from tidegate.lake.lineage import read_lineage
from tidegate.lake.log_reader import Span, Tally, tally
from tidegate.lake.replay import last_unrepeatable
from tidegate.lake.retention import floors
from tidegate.lake.schema_history import SchemaHistory
from tidegate.names import STEP_REPAIR, STEP_SWEEP

_READ_FROM_SOURCE: Final = frozenset({STEP_SWEEP, STEP_REPAIR})


class Direction(StrEnum):
    REPLAY = "replay"
    SKIP = "skip"
    NONE = "none"


@dataclass(frozen=True, slots=True)
class Move:
    """A table's position, where it would go, and the changes in between."""

    table: str
    direction: Direction
    from_position: Position
    to_position: Position
    snapshot_id: int | None  # what the table was when this was decided
    changes: int
    first_at: datetime | None
    last_at: datetime | None

    @property
    def words(self) -> str:
        """What happens, in one line."""
        if self.direction is Direction.NONE:
            return f"{self.table} stands there already"
        does = {Direction.REPLAY: "applied again to", Direction.SKIP: "never applied to"}
        when = f", committed {_span(self.first_at, self.last_at)}," if self.first_at else ""
        will = "is" if self.changes == 1 else "are"
        return f"{_count(self.changes)}{when} {will} {does[self.direction]} {self.table}"


def plan_move(
    catalog: Catalog,
    pipeline: PipelineConfig,
    settings: GateConfig,
    target: LakeTarget,
    wanted: Position,
    *,
    skip: bool = False,
) -> Move:
    """What setting ``target``'s position to ``wanted`` would do; refused where it would break the
    table (see the module's text). ``skip`` says that changes may be left out."""
    change_log = ChangeLog(catalog, pipeline)
    head = change_log.head()
    table, current = _standing(catalog, target)
    _check_place(wanted, current, head)
    if wanted == current:
        head_id = commits.head_id(table)
        return Move(target.source, Direction.NONE, current, wanted, head_id, 0, None, None)
    if wanted < current:
        floor = floors(catalog, pipeline, Gate(catalog, pipeline, settings))[target.source]
        _check_keyed(catalog, pipeline, target, current)
        _check_replay(table, target, wanted, _replay_floor(table, floor, current))
        low, high, direction = wanted, current, Direction.REPLAY
    else:
        low, high, direction = current, wanted, Direction.SKIP
    span = Span(low.epoch, low.place, high.place)
    if direction is Direction.REPLAY:
        history = SchemaHistory(catalog, pipeline)
        last = last_unrepeatable(change_log.table(), history, span, target.source)
        if last is not None:
            raise _unrepeatable(target, last)
    found = tally(change_log.table(), span, target.source)
    if direction is Direction.SKIP and found.changes and not skip:
        raise _needs_skip(target, found)
    return Move(
        target.source,
        direction,
        current,
        wanted,
        commits.head_id(table),
        found.changes,
        found.first_at,
        found.last_at,
    )


def refuse_moved(move: Move, expect: str) -> None:
    """``expect`` is where the table stood when someone was shown what would happen."""
    if str(move.from_position) != expect:
        raise HeldError(
            "offsets.moved",
            f"{move.table} stood at {expect} when this was asked for, now at {move.from_position}",
            hint="look again with `tidegate offsets` and decide again; nothing was done",
        )


def replayable_from(
    catalog: Catalog, pipeline: PipelineConfig, settings: GateConfig
) -> dict[str, Position | None]:
    """The lowest position each table may be set to; None: it cannot go back."""
    if not ChangeLog(catalog, pipeline).exists():
        return {target.source: None for target in pipeline.targets}
    low = floors(catalog, pipeline, Gate(catalog, pipeline, settings))
    history = SchemaHistory(catalog, pipeline)
    return {
        t.source: _lowest(load(catalog, t.identifier), t, low, history) for t in pipeline.targets
    }


def _lowest(
    table: Table | None, target: LakeTarget, low: dict[str, Position], history: SchemaHistory
) -> Position | None:
    if table is None or not target.forgets:
        return None
    try:
        current = positions.applied(table)
    except TidegateError:
        return None  # status says what is wrong with it
    floor = low[target.source]
    if current is None or floor.epoch != current.epoch:
        return None
    if not _is_keyed(history, target, current):
        return None
    read = [p for p in _read_from_source(table) if p.epoch == current.epoch]
    return min(max([_replay_floor(table, floor, current), *read]), current)


def _replay_floor(table: Table, floor: Position, current: Position) -> Position:
    """The log's floor, and no lower than what main's unbroken line of snapshots stands at: behind a
    gap there may have been a sweep, while a tag or branch from before it keeps the log's rows."""
    line = [positions.stamp(snapshot) for snapshot in positions.ancestors(table.metadata)]
    known = [stamp for stamp in line if stamp is not None and stamp.epoch == current.epoch]
    lowest = min(known, default=current)
    return max(floor, lowest) if floor.epoch == lowest.epoch else floor


def _standing(catalog: Catalog, target: LakeTarget) -> tuple[Table, Position]:
    table = load(catalog, target.identifier)
    current = None if table is None else positions.applied(table)
    if table is None or current is None:
        raise ConfigError(
            "offsets.never_swept",
            f"{target.source} stands at no position",
            hint="sweep it first: a table begins at the cut of its sweep",
        )
    return table, current


def _check_place(wanted: Position, current: Position, head: LogHead) -> None:
    through = head.captured_through
    if not wanted.epoch == current.epoch == through.epoch:
        raise ConfigError(
            "offsets.other_epoch",
            f"{wanted} is of epoch {wanted.epoch}, the table of {current.epoch}, the change log of"
            f" {through.epoch}",
            hint="positions of another epoch cannot be gone to: sweep the table",
        )
    if not wanted.is_boundary:
        before, after = boundary(wanted.epoch, wanted.lsn), boundary(wanted.epoch, wanted.lsn + 1)
        raise ConfigError(
            "offsets.inside_transaction",
            f"{wanted} lies inside a transaction",
            hint=f"{before} is right before that transaction, {after} right after it",
        )
    if wanted > through:
        raise ConfigError(
            "offsets.not_captured",
            f"{wanted} is not captured yet: the change log ends at {through}",
            hint="capture first, or choose a position up to there",
        )


def _check_keyed(
    catalog: Catalog, pipeline: PipelineConfig, target: LakeTarget, current: Position
) -> None:
    """A row that came twice is two rows where there is no key."""
    if not _is_keyed(SchemaHistory(catalog, pipeline), target, current):
        raise DataError(
            "offsets.would_double",
            f"{target.source} has no key: rows that came again would stand in it twice",
            hint="`tidegate lakehouse rollback` takes rows and position back together",
        )


def _is_keyed(history: SchemaHistory, target: LakeTarget, current: Position) -> bool:
    """By the schema the table stands at."""
    lineage = read_lineage(history, target)
    if not lineage.versions:
        return True  # then no row ever came
    index = lineage.index_at(current)
    return bool(lineage.schema(-1 if index is None else index).key_columns)


def _check_replay(table: Table, target: LakeTarget, wanted: Position, floor: Position) -> None:
    if not target.forgets:
        raise DataError(
            "offsets.would_double",
            f"{target.source} is written in {target.write_mode} mode"
            f"{' with soft_delete' if target.soft_delete else ''}: changes that come again would"
            " stand in it twice",
            hint="`tidegate lakehouse rollback` takes rows and position back together",
        )
    if wanted.epoch != floor.epoch or wanted < floor:
        raise DataError(
            "offsets.not_held",
            f"the change log need not hold changes of {target.source} after {wanted} any more",
            hint=f"the lowest position is {floor}; sweep the table to read it anew",
        )
    read = [p for p in _read_from_source(table) if p.epoch == wanted.epoch and p > wanted]
    if read:
        raise DataError(
            "offsets.before_sweep",
            f"{target.source} was read from its source at {max(read)}; changes before that are"
            " older than its rows",
            hint=f"choose {max(read)} or later, or take the table back with"
            " `tidegate lakehouse rollback`",
        )


def _read_from_source(table: Table) -> list[Position]:
    """Positions at which retained snapshots of main brought rows from the source itself."""
    return [
        info.position
        for info in positions.history(table)
        if info.on_main and info.step in _READ_FROM_SOURCE and info.position is not None
    ]


def _unrepeatable(target: LakeTarget, last: Position) -> DataError:
    after = boundary(last.epoch, last.lsn + 1)
    return DataError(
        "offsets.unsent_values",
        f"the change of {target.source} at {last} left out values (unchanged TOAST) that only its"
        " row could supply, and that row has another key by now or is gone: applied again, it would"
        " take them from a wrong row or from none",
        hint=f"choose {after} or later, take rows and position back together with"
        " `tidegate lakehouse rollback`, or sweep the table",
    )


def _needs_skip(target: LakeTarget, found: Tally) -> DataError:
    when = _span(found.first_at, found.last_at)
    return DataError(
        "offsets.needs_skip",
        f"{_count(found.changes)} of {target.source}, committed {when}, would never be applied",
        hint="say --skip if that is meant; the table then differs from its source until it is"
        " swept",
    )


def _count(changes: int) -> str:
    return "1 change" if changes == 1 else f"{changes:,} changes"


def _span(first: datetime | None, last: datetime | None) -> str:
    if first is None or last is None:
        return "at unknown times"
    return f"{first:%Y-%m-%d %H:%M:%S} to {last:%Y-%m-%d %H:%M:%S} UTC"
