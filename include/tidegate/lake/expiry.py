"""Expiry of tables that PyIceberg writes (change log and control tables), files included.

PyIceberg's expiry only forgets snapshots; the files stay. Here the metadata commit comes first and
the files go after it, so a crash in between leaves orphans, never a snapshot without its files.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from pyiceberg.exceptions import CommitFailedException
from pyiceberg.io import FileIO
from pyiceberg.manifest import ManifestFile
from pyiceberg.table import Table
from pyiceberg.table.snapshots import Snapshot
from pyiceberg.table.update import AssertTableUUID, RemoveSnapshotsUpdate

from tidegate.lake.commits import moved


@dataclass(frozen=True, slots=True)
class Expired:
    """What an expiry removed."""

    snapshots: int = 0
    files: int = 0


def expire(table: Table, before: datetime, retain_last: int = 1) -> Expired:
    """Forget snapshots older than ``before`` and delete the files only they refer to.

    Heads of branches and tags stay, and so do the newest ``retain_last`` snapshots. ``table`` is
    refreshed in place. Raises ``lake.moved`` if another writer committed meanwhile.
    """
    leaving = _leaving(table, before, retain_last)
    if not leaving:
        return Expired()
    gone = [s for s in table.metadata.snapshots if s.snapshot_id in leaving]
    _forget(table, leaving)
    files = _unreferenced(table.io, gone, table.metadata.snapshots)
    for path in files:
        _delete(table.io, path)
    return Expired(len(gone), len(files))


def _leaving(table: Table, before: datetime, retain_last: int) -> set[int]:
    metadata = table.metadata
    kept = {ref.snapshot_id for ref in metadata.refs.values()}
    newest = sorted(metadata.snapshots, key=lambda s: s.sequence_number or 0, reverse=True)
    kept |= {snapshot.snapshot_id for snapshot in newest[:retain_last]}
    limit = before.timestamp() * 1000
    return {
        snapshot.snapshot_id
        for snapshot in metadata.snapshots
        if snapshot.timestamp_ms < limit and snapshot.snapshot_id not in kept
    }


def _forget(table: Table, leaving: set[int]) -> None:
    update = RemoveSnapshotsUpdate(snapshot_ids=sorted(leaving))
    requirement = AssertTableUUID(uuid=table.metadata.table_uuid)
    try:
        table._do_commit(updates=(update,), requirements=(requirement,))
    except CommitFailedException as error:
        raise moved(table) from error


def _unreferenced(io: FileIO, gone: Iterable[Snapshot], kept: Iterable[Snapshot]) -> set[str]:
    kept_manifests = _manifests(io, kept)
    gone_manifests = _manifests(io, gone)
    dead = {p: m for p, m in gone_manifests.items() if p not in kept_manifests}
    # A file the dead name, as added or as deleted, goes unless a kept snapshot still reads it.
    data = _data_files(io, dead.values(), live_only=False)
    if data:
        data -= _data_files(io, kept_manifests.values(), live_only=True)
    return data | set(dead) | {snapshot.manifest_list for snapshot in gone}


def _manifests(io: FileIO, snapshots: Iterable[Snapshot]) -> dict[str, ManifestFile]:
    return {m.manifest_path: m for snapshot in snapshots for m in snapshot.manifests(io)}


def _data_files(io: FileIO, manifests: Iterable[ManifestFile], *, live_only: bool) -> set[str]:
    return {
        entry.data_file.file_path
        for manifest in manifests
        for entry in manifest.fetch_manifest_entry(io, discard_deleted=live_only)
    }


def _delete(io: FileIO, path: str) -> None:
    try:
        io.delete(path)
    except FileNotFoundError:
        return  # an earlier expiry was killed in mid-delete
