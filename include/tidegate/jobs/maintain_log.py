"""Upkeep of what Tidegate keeps for itself: change log and gate journal."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final

from tidegate.config.pipeline import PipelineConfig
from tidegate.config.platform import PlatformConfig
from tidegate.lake import retention, upkeep
from tidegate.lake.change_log import ChangeLog
from tidegate.lake.gate import Gate
from tidegate.lake.reports import Reports
from tidegate.lake.retention import TrimResult
from tidegate.lake.upkeep import COMPACT
from tidegate.spark import upkeep as spark_upkeep
from tidegate.spark.upkeep import Compacted

if TYPE_CHECKING:
    from pyiceberg.catalog import Catalog
    from pyspark.sql import SparkSession

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
    """Trim what nobody needs, merge small files, fold the gate journal.

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
    compact = plan.compact or (force and settings.enabled)
    if dry_run:
        due = (COMPACT, TRIM) if compact else (TRIM,)
        return LogUpkeep(done=due, floors=said, reasons=plan.reasons)
    age = timedelta(seconds=platform.retention.change_log_seconds)
    # Trimmed first: what goes need not be rewritten. The stamp of the next trim covers the rewrite.
    trimmed = retention.trim(change_log, floors, datetime.now(UTC) - age)
    compacted = Compacted()
    if compact:
        compacted = spark_upkeep.compact(
            spark, change_log.identifier, rows_per_batch=settings.compaction_max_rows_per_batch
        )
        change_log.head()  # fatal if captured_through were lost (I1)
    gate.checkpoint()
    done = tuple(
        step
        for step, happened in ((TRIM, trimmed.files), (COMPACT, compacted.rewritten_files))
        if happened
    )
    return LogUpkeep(NAME, done, compacted, trimmed, said, plan.reasons)
