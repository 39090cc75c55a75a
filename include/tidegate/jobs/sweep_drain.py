"""Bringing rows that were read to a position of the log: chunks of different cuts to the last of
them, and those of a cut that no position describes to the first that does.

A resumed sweep has rows of several cuts on its branch. The log between the first and the last cut
is captured, if it is not yet, and applied onto the branch: whatever a row was read at, its last
change up to the last cut is there afterwards.
"""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING

from tidegate.config.pipeline import PipelineConfig
from tidegate.config.platform import PlatformConfig
from tidegate.envelope.position import Position
from tidegate.envelope.visible import Visible
from tidegate.errors import HeldError
from tidegate.jobs.capture import run_capture
from tidegate.lake.catalog import open_catalog
from tidegate.lake.change_log import ChangeLog
from tidegate.lake.late_commits import unseen_from
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


def complete(
    spark: SparkSession,
    pipeline: PipelineConfig,
    platform: PlatformConfig,
    built: Built,
    visible: Visible,
) -> Built:
    """The branch of a cut that was made beside running transactions, at ``visible.through``: the
    changes it lacks are applied onto it. They are captured already."""
    log = ChangeLog(open_catalog(platform, pipeline), pipeline).table()
    mode = built.mode
    drain(
        spark,
        pipeline,
        platform,
        replace(built, first_cut=unseen_from(log, visible, mode.cut, mode.target.source)),
        visible,
    )
    return replace(built, mode=replace(mode, cut=visible.through))


def drain(
    spark: SparkSession,
    pipeline: PipelineConfig,
    platform: PlatformConfig,
    built: Built,
    held: Visible | None = None,
) -> None:
    """Apply (first cut, last cut], which is captured already, onto the branch; of a branch that is
    one snapshot, up to where all that it holds lies."""
    from tidegate.jobs.apply import apply_table

    apply_table(
        spark,
        pipeline,
        platform,
        built.mode.target.table,
        branch=built.mode.branch,
        after=built.first_cut,
        until=held.through if held is not None else built.mode.cut,
        held=held,
    )
