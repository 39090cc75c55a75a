"""Upkeep of one Iceberg table by Spark: compaction, delete files, manifests, expiry, orphans.

None of it changes a row. Rewrites commit snapshots without our properties, so the position is
stamped again before expiry can take the snapshot that carries it (I1). The caller holds the
table's lease (I4) and decides what is due (``tidegate.lake.upkeep``).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

from pyspark.sql import Row, SparkSession

from tidegate.names import CATALOG
from tidegate.spark.publish import Identifier, literal, procedure_name, spark_name

DEFAULT_FILE_BYTES: Final = 512 * 1024 * 1024
"""Iceberg's own write.target-file-size-bytes."""
MIN_FILE_BYTES: Final = 8 * 1024 * 1024
"""Smaller targets than this cost more in opening files than they save."""
MIN_ORPHAN_AGE: Final = timedelta(hours=24, minutes=1)
"""Iceberg refuses to look at younger files: a writer may be about to commit them."""
MIN_INPUT_FILES: Final = 2
"""Compaction runs only when it is due, and then takes every group it can improve."""


@dataclass(frozen=True, slots=True)
class Compacted:
    """What a compaction rewrote."""

    rewritten_files: int = 0
    added_files: int = 0
    rewritten_bytes: int = 0
    removed_delete_files: int = 0


def compact(session: SparkSession, table: Identifier, *, rows_per_batch: int) -> Compacted:
    """Merge small files and fold deletes in, about ``rows_per_batch`` rows a commit."""
    size = _size(session, table)
    target = _file_bytes(session, table, size, rows_per_batch)
    options = {
        "target-file-size-bytes": str(target),
        "max-file-group-size-bytes": str(target),
        "min-input-files": str(MIN_INPUT_FILES),
        "delete-file-threshold": "1",
        "remove-dangling-deletes": "true",
        # Each group is its own commit, so that an interrupted compaction keeps what it did. With
        # fewer commits than groups Iceberg counts commits that it never meant to make as failed.
        "partial-progress.enabled": "true",
        "partial-progress.max-commits": str(max(1, size.files)),
        "partial-progress.max-failed-commits": "0",
    }
    strategy = "sort" if _sorted(session, table) else "binpack"
    row = _call(
        session,
        "rewrite_data_files",
        table,
        strategy=literal(strategy),
        options=_map(options),
    )
    return Compacted(
        row.rewritten_data_files_count,
        row.added_data_files_count,
        row.rewritten_bytes_count,
        row.removed_delete_files_count,
    )


def rewrite_deletes(session: SparkSession, table: Identifier) -> int:
    """Merge format-2 position delete files; returns how many were rewritten."""
    row = _call(session, "rewrite_position_delete_files", table)
    return int(row.rewritten_delete_files_count)


def rewrite_manifests(session: SparkSession, table: Identifier) -> int:
    row = _call(session, "rewrite_manifests", table, use_caching="false")
    return int(row.rewritten_manifests_count)


def expire(
    session: SparkSession, table: Identifier, *, older_than: timedelta, retain_last: int
) -> int:
    """Forget old snapshots with the files only they hold; returns the number of files deleted."""
    row = _call(
        session,
        "expire_snapshots",
        table,
        older_than=_before(older_than),
        retain_last=str(retain_last),
    )
    return sum(int(count or 0) for count in row)


def remove_orphans(session: SparkSession, table: Identifier, *, older_than: timedelta) -> int:
    """Delete files that no snapshot names; returns how many."""
    arguments = {"older_than": _before(max(older_than, MIN_ORPHAN_AGE))}
    return len(_rows(session, "remove_orphan_files", table, arguments))


def _call(session: SparkSession, procedure: str, table: Identifier, **arguments: str) -> Row:
    return _rows(session, procedure, table, arguments)[0]


def _rows(
    session: SparkSession, procedure: str, table: Identifier, arguments: Mapping[str, str]
) -> list[Row]:
    named = {"table": procedure_name(table), **arguments}
    listed = ", ".join(f"{name} => {value}" for name, value in named.items())
    return session.sql(f"CALL {CATALOG}.system.{procedure}({listed})").collect()


def _map(options: Mapping[str, str]) -> str:
    pairs = (f"{literal(key)}, {literal(value)}" for key, value in options.items())
    return f"map({', '.join(pairs)})"


def _before(age: timedelta) -> str:
    # Sessions run in UTC (spark/session.py), so the literal is read as UTC.
    moment = datetime.now(UTC) - age
    return f"TIMESTAMP '{moment:%Y-%m-%d %H:%M:%S.%f}'"


def _file_bytes(session: SparkSession, table: Identifier, size: Row, rows: int) -> int:
    """The size of a file of ``rows`` rows, never above what the table asks for."""
    wanted = int(
        _properties(session, table).get("write.target-file-size-bytes", DEFAULT_FILE_BYTES)
    )
    if not size.records:
        return wanted
    return min(wanted, max(MIN_FILE_BYTES, int(rows * size.bytes / size.records)))


def _size(session: SparkSession, table: Identifier) -> Row:
    return session.sql(
        "SELECT count(*) AS files, coalesce(sum(file_size_in_bytes), 0) AS bytes,"
        f" coalesce(sum(record_count), 0) AS records FROM {spark_name(table)}.data_files"
    ).collect()[0]


def _sorted(session: SparkSession, table: Identifier) -> bool:
    return "sort-order" in _properties(session, table)


def _properties(session: SparkSession, table: Identifier) -> dict[str, str]:
    rows = session.sql(f"SHOW TBLPROPERTIES {spark_name(table)}").collect()
    return {row.key: row.value for row in rows}
