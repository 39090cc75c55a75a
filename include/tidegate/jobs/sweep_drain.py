"""Bringing chunks that were read at different cuts to the last of them.

A resumed sweep has rows of several cuts on its branch. The log between the first and the last cut
is captured, if it is not yet, and applied onto the branch: whatever a row was read at, its last
change up to the last cut is there afterwards.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from tidegate.config.pipeline import PipelineConfig
from tidegate.config.platform import PlatformConfig
from tidegate.envelope.position import Position
from tidegate.errors import HeldError
from tidegate.jobs.capture import run_capture
from tidegate.lake.catalog import open_catalog
from tidegate.lake.change_log import ChangeLog
from tidegate.observability.progress import Progress
from tidegate.spark.sweep import Built
from tidegate.transports.embedded import SLOT_ACTIVE

if TYPE_CHECKING:
    from tidegate.spark.session import SparkSession


def capture_through(
    pipeline: PipelineConfig, platform: PlatformConfig, position: Position, progress: Progress
) -> None:
    """Have the change log hold everything up to ``position``, whoever captures it.

    A capture that is at work already may come there by itself, so it is waited for.
    """
    log = ChangeLog(open_catalog(platform, pipeline), pipeline)
    deadline = time.monotonic() + platform.gate.wait_seconds
    while log.head().captured_through < position:
        try:
            run_capture(pipeline, platform, until=position, progress=progress, part_of="drain")
        except HeldError as error:
            if error.code != SLOT_ACTIVE or time.monotonic() > deadline:
                raise


def drain(
    spark: SparkSession,
    pipeline: PipelineConfig,
    platform: PlatformConfig,
    built: Built,
) -> None:
    """Apply (first cut, last cut], which is captured already, onto the branch."""
    from tidegate.jobs.apply import apply_table

    apply_table(
        spark,
        pipeline,
        platform,
        built.mode.target.table,
        branch=built.mode.branch,
        after=built.first_cut,
        until=built.mode.cut,
    )
