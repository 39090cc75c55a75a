"""Which upkeep of a lake table is due, from metadata alone (no data file is opened)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Final

from pyiceberg.manifest import DataFileContent
from pyiceberg.table import Table
from pyiceberg.table.snapshots import Operation

from tidegate.config.sinks import MaintenanceConfig
from tidegate.lake.reports import Report, Reports

COMPACT: Final = "compact"
MANIFESTS: Final = "rewrite_manifests"
EXPIRE: Final = "expire"
ORPHANS: Final = "remove_orphans"
STEPS: Final = (COMPACT, MANIFESTS, EXPIRE, ORPHANS)

SMALL_FRACTION: Final = 0.75
"""Below this part of the target size a file is small; the same as Iceberg's own rewrite takes."""
_TARGET_BYTES: Final = 512 * 1024 * 1024  # Iceberg's default of write.target-file-size-bytes


@dataclass(frozen=True, slots=True)
class UpkeepPlan:
    """What is due, and why (or why not)."""

    compact: bool = False
    rewrite_manifests: bool = False
    expire: bool = False
    remove_orphans: bool = False
    reasons: dict[str, str] = field(default_factory=dict)

    @property
    def due(self) -> tuple[str, ...]:
        return tuple(step for step in STEPS if getattr(self, step))


@dataclass(frozen=True, slots=True)
class FileCounts:
    """What the current snapshot is made of."""

    small_in_one_partition: int  # the most in any
    delete_files: int
    manifests: int


def last_done(reports: Reports, table: str) -> dict[str, datetime]:
    """When each step was last done to ``table``, by the reports of kind ``maintain``."""
    return done_by(reports.recent("maintain", limit=1000), table)


def done_by(reports: Iterable[Report], table: str) -> dict[str, datetime]:
    """The same of ``reports``, newest first. The body of one of kind ``maintain`` has ``done``:
    source table → steps done."""
    found: dict[str, datetime] = {}
    for report in reports:
        if report.kind != "maintain":
            continue
        for step in report.body.get("done", {}).get(table, ()):
            found.setdefault(step, report.at)
    return found


def plan(
    table: Table,
    settings: MaintenanceConfig,
    now: datetime,
    last: Mapping[str, datetime] | None = None,
) -> UpkeepPlan:
    """What is due by the thresholds; ``last`` says when steps were last done."""
    if not settings.enabled:
        return UpkeepPlan(reasons=dict.fromkeys(STEPS, "maintenance is switched off"))
    if table.current_snapshot() is None:
        return UpkeepPlan(reasons=dict.fromkeys(STEPS, "the table has no snapshot"))
    known = {**_from_snapshots(table), **(last or {})}
    counts = count_files(table)
    verdicts = {
        COMPACT: _compact(counts, settings, known.get(COMPACT), now),
        MANIFESTS: _reaches("manifests", counts.manifests, settings.manifest_threshold),
        EXPIRE: _expire(table, settings, known.get(EXPIRE), now),
        ORPHANS: _orphans(table, settings, known.get(ORPHANS), now),
    }
    return UpkeepPlan(
        compact=verdicts[COMPACT][0],
        rewrite_manifests=verdicts[MANIFESTS][0],
        expire=verdicts[EXPIRE][0],
        remove_orphans=verdicts[ORPHANS][0],
        reasons={step: why for step, (_, why) in verdicts.items()},
    )


def count_files(table: Table) -> FileCounts:
    """Count from the manifests of the current snapshot."""
    snapshot = table.current_snapshot()
    if snapshot is None:
        return FileCounts(0, 0, 0)
    target = int(table.properties.get("write.target-file-size-bytes", _TARGET_BYTES))
    small: Counter[tuple[int, object]] = Counter()
    deletes = 0
    manifests = snapshot.manifests(table.io)
    for manifest in manifests:
        for entry in manifest.fetch_manifest_entry(table.io, discard_deleted=True):
            file = entry.data_file
            if file.content is not DataFileContent.DATA:
                deletes += 1
            elif file.file_size_in_bytes < target * SMALL_FRACTION:
                small[(manifest.partition_spec_id, file.partition)] += 1
    return FileCounts(max(small.values(), default=0), deletes, len(manifests))


def expirable(table: Table, settings: MaintenanceConfig, now: datetime) -> int:
    """Snapshots past their age that no branch or tag heads and ``retain_last`` does not keep."""
    limit = (now - timedelta(seconds=settings.expire_snapshots_older_than_seconds)).timestamp()
    snapshots = sorted(table.metadata.snapshots, key=lambda s: s.timestamp_ms)
    heads = {ref.snapshot_id for ref in table.metadata.refs.values()}
    return sum(
        1
        for snapshot in snapshots[: -settings.retain_last]
        if snapshot.timestamp_ms < limit * 1000 and snapshot.snapshot_id not in heads
    )


Verdict = tuple[bool, str]


def _compact(
    counts: FileCounts, settings: MaintenanceConfig, last: datetime | None, now: datetime
) -> Verdict:
    small, why = _reaches(
        "small files in one partition",
        counts.small_in_one_partition,
        settings.compaction_file_threshold,
    )
    deletes, why_deletes = _reaches(
        "delete files", counts.delete_files, settings.delete_file_threshold
    )
    if not small and not deletes:
        return False, f"{why}, {why_deletes}"
    waited, when = _waited(last, settings.compaction_interval_seconds, now)
    return waited, f"{why if small else why_deletes}, {when}"


def _expire(
    table: Table, settings: MaintenanceConfig, last: datetime | None, now: datetime
) -> Verdict:
    old = expirable(table, settings, now)
    if not old:
        return False, "no snapshot is old enough"
    waited, when = _waited(last, settings.expire_snapshots_interval_seconds, now)
    return waited, f"{old} snapshots are old enough, {when}"


def _orphans(
    table: Table, settings: MaintenanceConfig, last: datetime | None, now: datetime
) -> Verdict:
    # Never done: count from the table's oldest trace, so that a new table is left alone.
    oldest = min(
        [entry.timestamp_ms for entry in table.metadata.snapshot_log]
        or [table.metadata.last_updated_ms]
    )
    since = last or datetime.fromtimestamp(oldest / 1000, UTC)
    return _waited(since, settings.orphan_files_interval_seconds, now)


def _reaches(what: str, found: int, threshold: int) -> Verdict:
    return found >= threshold, f"{found} {what} (due from {threshold})"


def _waited(last: datetime | None, interval: float, now: datetime) -> Verdict:
    if last is None:
        return True, "never done before"
    passed = (now - last).total_seconds()
    return passed >= interval, f"last done {passed:.0f} s ago (due after {interval:.0f} s)"


def _from_snapshots(table: Table) -> dict[str, datetime]:
    """Compaction leaves ``replace`` snapshots behind; the other steps leave no trace."""
    times = [
        snapshot.timestamp_ms
        for snapshot in table.metadata.snapshots
        if snapshot.summary is not None and snapshot.summary.operation is Operation.REPLACE
    ]
    return {COMPACT: datetime.fromtimestamp(max(times) / 1000, UTC)} if times else {}
