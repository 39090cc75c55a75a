"""PyIceberg's SQL catalog, which reads every metadata file once.

A table is looked up several times for every commit to it (by us, and by PyIceberg before it
writes), and each time its whole metadata was read and parsed: a quarter of Python's time in a sweep
of hundreds of tables (py-spy). A metadata file never changes and its name is never used again, so
what was read from it, or written to it, stays true. Where a table stands is still asked each time.
"""

from __future__ import annotations

import logging
import threading
from collections import OrderedDict
from collections.abc import Collection, Iterator
from typing import Any, Final

from pyiceberg.catalog import (
    MANIFEST,
    MANIFEST_LIST,
    METADATA,
    PREVIOUS_METADATA,
    Catalog,
    delete_data_files,
    delete_files,
)
from pyiceberg.catalog.sql import IcebergTables, SqlCatalog
from pyiceberg.table import CommitTableResponse, Table
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.typedef import Identifier
from sqlalchemy import select
from sqlalchemy.orm import Session

from tidegate.lake.catalog_waits import told_of

# It announces every catalog of another class that is opened, several times a command.
logging.getLogger("pyiceberg.catalog").setLevel(logging.WARNING)

IMPLEMENTATION: Final = f"{__name__}.CachingSqlCatalog"
"""For PyIceberg's ``py-catalog-impl``."""
SNAPSHOTS: Final = 20_000
"""Snapshots whose tables' newest metadata is kept, in a process: metadata is as large as its
snapshots are many (some 3 KB each). Hundreds of tables fit; a bound by tables would either read
them all again at each look, or not bound the memory."""


class Newest:
    """The newest metadata read of each table, by the folder of its metadata. Thread-safe."""

    def __init__(self, snapshots: int = SNAPSHOTS) -> None:
        self._most = snapshots
        self._weight = 0
        self._lock = threading.Lock()
        self._known: OrderedDict[str, tuple[str, TableMetadata]] = OrderedDict()

    def get(self, location: str) -> TableMetadata | None:
        folder = _folder(location)
        with self._lock:
            found = self._known.get(folder)
            if found is None or found[0] != location:
                return None
            self._known.move_to_end(folder)
            return found[1]

    def put(self, location: str, metadata: TableMetadata) -> None:
        folder = _folder(location)
        with self._lock:
            before = self._known.pop(folder, None)
            self._weight += _weight(metadata) - (_weight(before[1]) if before else 0)
            self._known[folder] = (location, metadata)
            while self._weight > self._most and len(self._known) > 1:
                _, (_, oldest) = self._known.popitem(last=False)
                self._weight -= _weight(oldest)


NAMES_AT_ONCE: Final = 500
"""Names in one query: databases bound its parameters (an old SQLite at 999)."""
NEWEST: Final = Newest()
"""Of the process: every job opens a catalog of its own."""


class CachingSqlCatalog(SqlCatalog):
    """Same tables, same commits; a lock that lasts is said."""

    def _init_catalog(self) -> None:
        told_of(self.engine)  # before the first statement, which may wait already
        super()._init_catalog()

    def _convert_orm_to_iceberg(self, orm_table: IcebergTables) -> Table:
        location = orm_table.metadata_location
        metadata = NEWEST.get(location) if location else None
        if location is None or metadata is None:
            table = super()._convert_orm_to_iceberg(orm_table)
            NEWEST.put(table.metadata_location, table.metadata)
            return table
        return Table(
            identifier=(
                *Catalog.identifier_to_tuple(orm_table.table_namespace),
                orm_table.table_name,
            ),
            metadata=metadata,
            metadata_location=location,
            io=self._load_file_io(metadata.properties, location),
            catalog=self,
        )

    def load_tables(self, namespace: str, names: Collection[str]) -> dict[str, Table]:
        """Those of ``names`` that exist, by name. One query asks where all of them stand."""
        found: dict[str, Table] = {}
        with Session(self.engine) as session:
            for some in batched(names, NAMES_AT_ONCE):
                wanted = select(IcebergTables).where(
                    IcebergTables.catalog_name == self.name,
                    IcebergTables.table_namespace == namespace,
                    IcebergTables.table_name.in_(some),
                )
                for row in session.scalars(wanted):
                    found[row.table_name] = self._convert_orm_to_iceberg(row)
        return found

    def purge_table(self, identifier: str | Identifier) -> None:
        """Every manifest is read once, not once for each snapshot that has it."""
        table = self.load_table(identifier)
        self.drop_table(identifier)
        known = table.metadata
        manifests = {
            manifest.manifest_path: manifest
            for snapshot in known.snapshots
            for manifest in snapshot.manifests(table.io)
        }
        delete_data_files(table.io, list(manifests.values()))
        delete_files(table.io, set(manifests), MANIFEST)
        lists = {snapshot.manifest_list for snapshot in known.snapshots}
        delete_files(table.io, lists, MANIFEST_LIST)
        delete_files(
            table.io, {entry.metadata_file for entry in known.metadata_log}, PREVIOUS_METADATA
        )
        delete_files(table.io, {table.metadata_location}, METADATA)

    def commit_table(self, *arguments: Any, **named: Any) -> CommitTableResponse:
        response = super().commit_table(*arguments, **named)
        NEWEST.put(response.metadata_location, response.metadata)
        return response


def batched(names: Collection[str], size: int) -> Iterator[list[str]]:
    """``names`` in lists of at most ``size``."""
    known = list(names)
    return (known[first : first + size] for first in range(0, len(known), size))


def _weight(metadata: TableMetadata) -> int:
    return 1 + len(metadata.snapshots)


def _folder(location: str) -> str:
    return location.rpartition("/")[0]
