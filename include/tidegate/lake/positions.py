"""Positions of lake tables: the table is its own bookmark (I1).

The applied position is in the summary of the snapshot that holds the rows. Snapshots that change
no rows (compaction, ``replace``) do not carry one, so it is looked for through the ancestors.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final

from pyiceberg.table import Table
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.refs import MAIN_BRANCH
from pyiceberg.table.snapshots import Operation, Snapshot

from tidegate.envelope.position import Position
from tidegate.errors import FatalError
from tidegate.names import POSITION_PROPERTY, RUN_PROPERTY, STEP_PROPERTY

_CHANGES_ROWS: Final = frozenset({Operation.APPEND, Operation.OVERWRITE, Operation.DELETE})

_FILES: Final = (
    "added-data-files",
    "deleted-data-files",
    "added-delete-files",
    "removed-delete-files",
    "added-dvs",
    "removed-dvs",
)
"""What a snapshot's summary counts if it has touched rows."""


@dataclass(frozen=True, slots=True)
class SnapshotInfo:
    """One snapshot of a table, as ``lakehouse snapshots`` shows it."""

    snapshot_id: int
    parent_id: int | None
    committed_at: datetime
    operation: str
    position: Position | None
    """What the snapshot's rows stand at: its own stamp, or for a rewrite its ancestor's."""
    step: str | None
    run: str | None
    summary: Mapping[str, str]
    stamped: bool = False
    """Whether the position is in this snapshot's own summary."""
    foreign: bool = False
    """Whether someone else than Tidegate changed rows here."""
    on_main: bool = False


@dataclass(frozen=True, slots=True)
class Applied:
    """Where a ref stands, and who else wrote to it since."""

    position: Position
    snapshot_id: int  # the snapshot that carries the position
    foreign: tuple[int, ...] = field(default=())
    """Snapshots after it in which another writer changed rows, newest first."""


def applied(table: Table, ref: str = MAIN_BRANCH) -> Position | None:
    """The position ``ref`` stands at.

    None only if ``ref`` has no snapshot, or if no snapshot back to the table's first ever had a
    position. Ancestors that expired without a position being found are ``lake.position_lost``.
    """
    found = state(table, ref)
    return None if found is None else found.position


def state(table: Table, ref: str = MAIN_BRANCH) -> Applied | None:
    """Like :func:`applied`, with the snapshots another writer added on top."""
    foreign: list[int] = []
    for snapshot in ancestors(table.metadata, ref):
        position = stamp(snapshot)
        if position is not None:
            return Applied(position, snapshot.snapshot_id, tuple(foreign))
        if is_foreign(snapshot):
            foreign.append(snapshot.snapshot_id)
        if _had_ancestors(table.metadata, snapshot):
            raise _lost(table, ref)
    return None


def history(table: Table) -> list[SnapshotInfo]:
    """Every retained snapshot, oldest first, branches included."""
    metadata = table.metadata
    on_main = {snapshot.snapshot_id for snapshot in ancestors(metadata, MAIN_BRANCH)}
    return [
        _info(metadata, snapshot, snapshot.snapshot_id in on_main)
        for snapshot in sorted(metadata.snapshots, key=lambda s: s.sequence_number or 0)
    ]


def ancestors(metadata: TableMetadata, ref: str = MAIN_BRANCH) -> Iterator[Snapshot]:
    """From ``ref``'s snapshot back to the oldest one that is still retained."""
    snapshot = metadata.snapshot_by_name(ref)
    while snapshot is not None:
        yield snapshot
        parent = snapshot.parent_snapshot_id
        snapshot = None if parent is None else metadata.snapshot_by_id(parent)


def summary(snapshot: Snapshot) -> dict[str, str]:
    """A snapshot's summary as plain text pairs."""
    if snapshot.summary is None:
        return {}
    return dict(snapshot.summary.additional_properties)


def stamp(snapshot: Snapshot) -> Position | None:
    """The position in this snapshot's own summary."""
    text = summary(snapshot).get(POSITION_PROPERTY)
    return None if text is None else Position.parse(text)


def _info(metadata: TableMetadata, snapshot: Snapshot, on_main: bool) -> SnapshotInfo:
    facts = summary(snapshot)
    own = stamp(snapshot)
    return SnapshotInfo(
        snapshot_id=snapshot.snapshot_id,
        parent_id=snapshot.parent_snapshot_id,
        committed_at=datetime.fromtimestamp(snapshot.timestamp_ms / 1000, UTC),
        operation=_operation(snapshot).value,
        position=own or _inherited(metadata, snapshot),
        step=facts.get(STEP_PROPERTY),
        run=facts.get(RUN_PROPERTY),
        summary=facts,
        stamped=own is not None,
        foreign=own is None and is_foreign(snapshot),
        on_main=on_main,
    )


def _inherited(metadata: TableMetadata, snapshot: Snapshot) -> Position | None:
    """What the ancestors say; nothing for a step of ours that stands at no position yet."""
    current: Snapshot | None = snapshot
    while current is not None:
        own = stamp(current)
        if own is not None:
            return own
        if STEP_PROPERTY in summary(current):
            return None
        parent = current.parent_snapshot_id
        current = None if parent is None else metadata.snapshot_by_id(parent)
    return None


def _operation(snapshot: Snapshot) -> Operation:
    return Operation.APPEND if snapshot.summary is None else snapshot.summary.operation


def is_foreign(snapshot: Snapshot) -> bool:
    """Whether rows changed here and no step of ours says so."""
    # Spark's metadata-only DELETE drops snapshot properties, so a step of ours may look foreign
    # until the stamp that follows it; only what no later stamp covers is reported.
    return _operation(snapshot) in _CHANGES_ROWS and STEP_PROPERTY not in summary(snapshot)


def rows_changed_since(table: Table, snapshot_id: int) -> bool | None:
    """Whether any snapshot of ``main`` after ``snapshot_id`` changed rows; None if that one is no
    longer among its ancestors. Stamps and rewrites change none."""
    changed = False
    for snapshot in ancestors(table.metadata):
        if snapshot.snapshot_id == snapshot_id:
            return changed
        facts = summary(snapshot)
        files = any(int(facts.get(name, "0")) for name in _FILES)
        changed = changed or (files and _operation(snapshot) in _CHANGES_ROWS)
    return None


def _had_ancestors(metadata: TableMetadata, snapshot: Snapshot) -> bool:
    """Whether the chain ends here because something expired, not because it began here."""
    parent = snapshot.parent_snapshot_id
    if parent is not None:
        return metadata.snapshot_by_id(parent) is None
    # PyIceberg's expiry clears the parent of what it leaves. A rewrite never is a table's first
    # snapshot, and someone else's write is the first only with the first sequence number.
    if _operation(snapshot) is Operation.REPLACE:
        return True
    return is_foreign(snapshot) and (snapshot.sequence_number or 0) > 1


def _lost(table: Table, ref: str) -> FatalError:
    name = ".".join(table.name())
    return FatalError(
        "lake.position_lost",
        f"no retained snapshot of {name} (ref {ref}) says which position it stands at",
        hint="snapshots were expired by something else than Tidegate: sweep the table again",
    )
