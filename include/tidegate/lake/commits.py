"""Commits that happen exactly on the snapshot they were made for, or not at all.

PyIceberg's own commit retries on top of whatever landed in between. For tables whose order is
their meaning (change log, gate journal) that would hide a second writer, so nothing here retries:
a moved head is ``lake.moved`` and the caller looks again before it decides (I4).
"""

from __future__ import annotations

import errno
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

import pyarrow as pa
from pyiceberg.exceptions import CommitFailedException, CommitStateUnknownException
from pyiceberg.io.pyarrow import _dataframe_to_data_files
from pyiceberg.manifest import DataFile
from pyiceberg.table import Table, Transaction
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.refs import MAIN_BRANCH
from pyiceberg.table.update import AssertTableUUID
from pyiceberg.table.update.snapshot import _SnapshotProducer

from tidegate.errors import RetriableError

MOVED: Final = "lake.moved"


class _Staging(Transaction):
    """A transaction that looks at the table as loaded until something is staged.

    PyIceberg copies the whole metadata at each of some fifteen looks per commit: half a second for
    a table with a few hundred snapshots (*measured*), growing with every snapshot.
    """

    @property
    def table_metadata(self) -> TableMetadata:
        return super().table_metadata if self._updates else self._table.metadata


def head_id(table: Table, ref: str = MAIN_BRANCH) -> int | None:
    """The snapshot ``ref`` points to, as far as this loaded table knows."""
    snapshot = table.metadata.snapshot_by_name(ref)
    return None if snapshot is None else snapshot.snapshot_id


def write_files(table: Table, rows: pa.Table) -> list[DataFile]:
    """Write ``rows`` as data files of ``table``; nothing refers to them until a commit does."""
    with storage_errors():
        return list(_dataframe_to_data_files(table.metadata, rows, table.io))


def append_files(
    table: Table,
    data_files: Iterable[DataFile],
    properties: Mapping[str, str],
    expected_head: int | None,
) -> int:
    """Append ``data_files`` (none is fine: a stamp) on exactly ``expected_head``.

    Returns the new snapshot's id. ``table`` is refreshed in place. Raises ``lake.moved`` if main
    no longer stands at ``expected_head``; then nothing has changed.
    """
    transaction = _Staging(table)
    producer = transaction._append_snapshot_producer(dict(properties), branch=MAIN_BRANCH)
    for data_file in data_files:
        producer.append_data_file(data_file)
    return _commit(table, transaction, producer, expected_head)


def replace_files(
    table: Table,
    remove: Iterable[DataFile],
    add: Iterable[DataFile],
    properties: Mapping[str, str],
    expected_head: int,
) -> int:
    """Drop and add whole data files in one snapshot on exactly ``expected_head``."""
    transaction = _Staging(table)
    producer = transaction.update_snapshot(snapshot_properties=dict(properties)).overwrite()
    for data_file in remove:
        producer.delete_data_file(data_file)
    for data_file in add:
        producer.append_data_file(data_file)
    return _commit(table, transaction, producer, expected_head)


def discard(table: Table, data_files: Iterable[DataFile]) -> None:
    """Delete data files that no commit refers to."""
    for data_file in data_files:
        table.io.delete(data_file.file_path)


def discard_after(error: RetriableError, table: Table, data_files: Iterable[DataFile]) -> None:
    """Delete the files of a failed commit, but only if it is certain that it did not land."""
    if error.code == MOVED:
        discard(table, data_files)


def _commit(
    table: Table,
    transaction: Transaction,
    producer: _SnapshotProducer[Any],
    expected_head: int | None,
) -> int:
    if head_id(table) != expected_head:
        raise moved(table)
    snapshot_id = producer.snapshot_id
    with storage_errors():
        producer.commit()  # writes manifests and stages the update; commits nothing yet
        requirements = (
            *transaction._requirements,
            AssertTableUUID(uuid=table.metadata.table_uuid),
        )
        try:
            # Not commit_transaction(), which would rebase on a newer head and try again.
            table._do_commit(updates=transaction._updates, requirements=requirements)
        except CommitFailedException as error:
            producer._clean_all_uncommitted()
            raise moved(table) from error
        except CommitStateUnknownException as error:
            # The catalog lost the answer; the snapshot id tells whether the commit landed.
            table.refresh()
            if table.metadata.snapshot_by_id(snapshot_id) is None:
                raise RetriableError(
                    "lake.commit_unknown",
                    f"the catalog did not say whether a commit to {_name(table)} landed",
                    hint="try again; a second landing is refused",
                ) from error
    return snapshot_id


def moved(table: Table) -> RetriableError:
    """Someone else committed first."""
    return RetriableError(
        MOVED,
        f"{_name(table)} was changed by another writer in the meantime",
        hint="read it again and decide again; nothing was written",
    )


@contextmanager
def storage_errors() -> Iterator[None]:
    """A full disk is a passing condition with a plain message."""
    try:
        yield
    except OSError as error:
        # EFBIG is what a limit on the size of files looks like.
        full = error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
        if not full and "No space left" not in str(error):
            raise
        raise storage_full() from error


def storage_full() -> RetriableError:
    return RetriableError(
        "lake.storage_full",
        "the warehouse has no space left",
        hint="free space or enlarge the volume; nothing was committed, the next run goes on",
    )


def _name(table: Table) -> str:
    return ".".join(table.name())
