"""The highest key a lake table may hold, from the statistics of its files.

A key above it cannot be in the table, so a row under it is new for certain: it needs no merge, an
append will do. Most inserts of most applications are such rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from pyiceberg.manifest import ManifestContent
from pyiceberg.table import Table
from pyiceberg.types import IcebergType, IntegerType, LongType, StringType

MAX_FILES: Final = 2_000
"""Statistics of more files take longer to read than an append saves."""


@dataclass(frozen=True, slots=True)
class Ceiling:
    """No key of the table is above ``highest``; None: the table has no rows at all."""

    highest: int | str | None


def key_ceiling(table: Table, snapshot_id: int | None, column: str) -> Ceiling | None:
    """The ceiling of ``column`` as of a snapshot; None if it is not known."""
    field = table.schema().find_field(column)
    snapshot = None if snapshot_id is None else table.metadata.snapshot_by_id(snapshot_id)
    if snapshot is None or not isinstance(field.field_type, IntegerType | LongType | StringType):
        return None
    manifests = [
        manifest
        for manifest in snapshot.manifests(table.io)
        if manifest.content is ManifestContent.DATA
    ]
    files = sum((m.added_files_count or 0) + (m.existing_files_count or 0) for m in manifests)
    if files > MAX_FILES:
        return None
    highest: list[int | str] = []
    for manifest in manifests:
        for entry in manifest.fetch_manifest_entry(table.io, discard_deleted=True):
            bound = (entry.data_file.upper_bounds or {}).get(field.field_id)
            if bound is None:
                return None
            highest.append(_value(field.field_type, bound))
    return Ceiling(max(highest, default=None))


def _value(type_: IcebergType, bound: bytes) -> int | str:
    if isinstance(type_, StringType):
        return bound.decode("utf-8")
    # A file written before the column was widened has the narrower form.
    return int.from_bytes(bound, "little", signed=True)
