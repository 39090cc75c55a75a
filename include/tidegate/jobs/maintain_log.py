"""Upkeep of what Tidegate keeps for itself: change log and gate journal."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final

from tidegate import faults
from tidegate.config.pipeline import PipelineConfig
from tidegate.config.platform import PlatformConfig
from tidegate.config.sinks import MaintenanceConfig
from tidegate.lake import retention, upkeep
from tidegate.lake.change_log import ChangeLog
from tidegate.lake.gate import Gate
from tidegate.lake.reports import Reports
from tidegate.lake.retention import TrimResult
from tidegate.lake.upkeep import COMPACT, ORPHANS
from tidegate.spark import upkeep as spark_upkeep
from tidegate.spark.upkeep import Compacted

if TYPE_CHECKING:
    from pyiceberg.catalog import Catalog

    from tidegate.spark.session import SparkSession

NAME: Final = "(change log)"
"""The change log's place in reports; no source table is spelt so."""
TRIM: Final = "trim"


@dataclass(frozen=True, slots=True)
class LogUpkeep:
    """What was done for the change log."""

    table: str = NAME
    done: tuple[str, ...] = ()
    compacted: Compacted = field(default_factory=Compacted)
    trimmed: TrimResult = field(default_factory=TrimResult)
    orphans_removed: int = 0
    floors: dict[str, str] = field(default_factory=dict)
    reasons: dict[str, str] = field(default_factory=dict)


def maintain_log(
    spark: SparkSession,
    catalog: Catalog,
    pipeline: PipelineConfig,
    platform: PlatformConfig,
    gate: Gate,
    *,
    force: bool,
    dry_run: bool,
) -> LogUpkeep:
    """Trim what nobody needs, merge small files, remove what killed captures left, fold the gate
    journal.

    Capture may go on meanwhile: its commits and these retry on top of each other.
    """
    change_log = ChangeLog(catalog, pipeline)
    if not change_log.exists():
        return LogUpkeep(reasons={TRIM: "the pipeline is not deployed"})
    floors = retention.floors(catalog, pipeline, gate)
    said = {name: str(floor) for name, floor in floors.items()}
    last = upkeep.last_done(Reports(catalog, pipeline), NAME)
    settings = pipeline.lake.maintenance
    plan = upkeep.plan(change_log.table(), settings, datetime.now(UTC), last)
    forced = force and settings.enabled
    compact, clean = plan.compact or forced, plan.remove_orphans or forced
    if dry_run:
        steps = ((COMPACT, compact), (TRIM, True), (ORPHANS, clean))
        due = tuple(step for step, wanted in steps if wanted)
        return LogUpkeep(done=due, floors=said, reasons=plan.reasons)
    age = timedelta(seconds=platform.retention.change_log_seconds)
    # Trimmed first: what goes need not be rewritten. The stamp of the next trim covers the rewrite.
    trimmed = retention.trim(change_log, floors, datetime.now(UTC) - age)
    compacted = Compacted()
    if compact:
        compacted = spark_upkeep.compact(
            spark, change_log.identifier, rows_per_batch=settings.compaction_max_rows_per_batch
        )
        faults.point("maintain.after_log_compact")
        change_log.head()  # fatal if captured_through were lost (I1)
    orphans = _remove_orphans(spark, change_log, settings) if clean else 0
    gate.checkpoint()
    happened = {TRIM: trimmed.files, COMPACT: compacted.rewritten_files, ORPHANS: clean}
    done = tuple(step for step, count in happened.items() if count)
    return LogUpkeep(NAME, done, compacted, trimmed, orphans, said, plan.reasons)


def _remove_orphans(spark: SparkSession, change_log: ChangeLog, settings: MaintenanceConfig) -> int:
    """Files that captures wrote and never committed, because they were killed."""
    age = timedelta(seconds=settings.orphan_files_older_than_seconds)
    return spark_upkeep.remove_orphans(spark, change_log.identifier, older_than=age)
