"""Verify: source and lake, row by row, at one stated position; what was proven is kept.

A sample takes the buckets of keys whose proof is the oldest, so that as many runs as the sample
goes into the whole cover every key. Where keys begin with a whole number these are a few ranges of
it, and only they are read at the source; other keys are hashed, which looks at every row.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from tidegate.config.pipeline import LakeTarget, PipelineConfig
from tidegate.config.platform import PlatformConfig
from tidegate.connectors.cut import ExactCut
from tidegate.envelope.position import Position
from tidegate.jobs.audited import audited
from tidegate.jobs.comparing import Comparer, Task
from tidegate.jobs.sweep_plan import check_tables
from tidegate.jobs.verdict import TableVerdict, VerifyResult
from tidegate.lake.audit_trail import Action
from tidegate.lake.coverage import Coverage
from tidegate.lake.proofs import Proof, Proofs, standing
from tidegate.lake.reports import Reports
from tidegate.names import TableId
from tidegate.observability.progress import Progress, silent
from tidegate.schema.table import TableSchema
from tidegate.spark.selection import Buckets, striping
from tidegate.spark.verify import Comparison

if TYPE_CHECKING:
    from pyiceberg.table import Table
    from pyspark.sql import SparkSession

WHOLE = 1.0


def run_verify(
    spark: SparkSession,
    pipeline: PipelineConfig,
    platform: PlatformConfig,
    *,
    tables: Sequence[str | TableId] | None = None,
    sample: float = WHOLE,
    repair: bool = False,
    dry_run: bool = False,
    run: str | None = None,
    progress: Progress = silent,
) -> VerifyResult:
    """Compare ``tables`` (all by default), or ``sample`` (a share up to 1) of each one's keys.

    With ``repair`` the keys that differ are read again and compared again; ``dry_run`` only says
    which they are.
    """
    began = time.monotonic()
    run = run or f"verify_{uuid.uuid4().hex[:12]}"
    job = Comparer(spark, pipeline, platform, run, progress)
    proving = _Proving(Proofs(job.catalog, pipeline), run, sample, planning=repair and dry_run)
    task = Task("verify", proving.select, proving.settle, repair=repair and not dry_run)
    targets = check_tables(pipeline, tables)
    with audited(job.catalog, pipeline, Action.REPAIR, targets, run, when=task.repair):
        position, verdicts = job.compare(targets, task)
    proving.keep()
    result = VerifyResult(run, position, round(time.monotonic() - began, 3), verdicts)
    Reports(job.catalog, pipeline).add("verify", run, result.without_keys())
    return result


class _Proving:
    """Which keys of each table are compared, and what is known of them afterwards."""

    def __init__(self, proofs: Proofs, run: str, sample: float, *, planning: bool) -> None:
        self._proofs = proofs
        self._known = proofs.read()
        self._run = run
        self._sample = sample
        self._planning = planning
        self._compared: dict[str, tuple[Coverage, tuple[int, ...]]] = {}
        self._new: list[Proof] = []

    def select(
        self, target: LakeTarget, table: Table, cut: ExactCut, schema: TableSchema
    ) -> Buckets:
        known = standing(table, self._known.get(target.source, ())).coverage
        stripes = striping(cut, schema, known.width)
        before = known.under(stripes.width if stripes else None)
        buckets = before.next(self._sample)
        self._compared[target.source] = (before, buckets)
        return Buckets(buckets, stripes)

    def settle(
        self, target: LakeTarget, position: Position, found: Comparison, verdict: TableVerdict
    ) -> TableVerdict:
        before, buckets = self._compared[target.source]
        now = datetime.now(UTC)
        coverage = before.after(buckets, found.buckets, position, now, found.left_out)
        snapshot = verdict.snapshot_id or 0
        self._new.append(Proof(target.source, self._run, snapshot, coverage))
        reason = verdict.reason
        if self._planning and not found.equal:
            reason = reason or f"{found.count} keys would be read again"
        oldest = coverage.oldest
        return replace(
            verdict,
            verified_through=oldest.position if oldest else None,
            coverage=coverage.percent,
            reason=reason,
        )

    def keep(self) -> None:
        """One append for all tables. Proofs name their snapshots, so that a run killed before this
        has proven nothing, and one whose lease is gone proves nothing wrong."""
        self._proofs.add(self._new)
