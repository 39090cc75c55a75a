"""Verify: source and lake, row by row, at one stated position; what was proven is kept.

Where every row was found equal before, ``changed`` compares only what changed since, and proves the
whole table by it (``spark.continuing``). A sample takes the buckets of keys whose proof is the
oldest, so that as many runs as the sample goes into the whole cover every key. Where keys begin
with a whole number these are a few ranges of it, and only they are read at the source; other keys
are hashed, which looks at every row.
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
from tidegate.config.verify import WHOLE, Extent
from tidegate.connectors.cut import ExactCut
from tidegate.connectors.marking import MarkingCut
from tidegate.envelope.mark import Mark
from tidegate.envelope.position import Position
from tidegate.jobs.audited import audited
from tidegate.jobs.comparing import Comparer, Task
from tidegate.jobs.sweep_plan import check_tables
from tidegate.jobs.verdict import TableVerdict, VerifyResult
from tidegate.lake.audit_trail import Action
from tidegate.lake.coverage import Coverage
from tidegate.lake.proofs import Base, Proof, Proofs, standing
from tidegate.lake.reports import Reports
from tidegate.names import TableId
from tidegate.observability.progress import Progress, silent
from tidegate.schema.table import TableSchema
from tidegate.spark.selection import Buckets, striping
from tidegate.spark.verify import Comparison

if TYPE_CHECKING:
    from pyiceberg.table import Table

    from tidegate.spark.session import SparkSession


def run_verify(
    spark: SparkSession,
    pipeline: PipelineConfig,
    platform: PlatformConfig,
    *,
    tables: Sequence[str | TableId] | None = None,
    extent: Extent = WHOLE,
    repair: bool = False,
    dry_run: bool = False,
    run: str | None = None,
    progress: Progress = silent,
) -> VerifyResult:
    """Compare ``tables`` (all by default), or as much of each one as ``extent`` says.

    With ``repair`` the keys that differ are read again and compared again; ``dry_run`` only says
    which they are.
    """
    began = time.monotonic()
    run = run or f"verify_{uuid.uuid4().hex[:12]}"
    job = Comparer(spark, pipeline, platform, run, progress)
    proving = _Proving(Proofs(job.catalog, pipeline), run, extent, planning=repair and dry_run)
    task = Task(
        "verify",
        proving.select,
        proving.settle,
        repair=repair and not dry_run,
        base=proving.base if extent.changed else None,
    )
    targets = check_tables(pipeline, tables)
    with audited(job.catalog, pipeline, Action.REPAIR, targets, run, when=task.repair):
        position, verdicts = job.compare(targets, task)
    proving.keep()
    result = VerifyResult(run, position, round(time.monotonic() - began, 3), verdicts)
    Reports(job.catalog, pipeline).add("verify", run, result.without_keys())
    return result


class _Proving:
    """Which keys of each table are compared, and what is known of them afterwards."""

    def __init__(self, proofs: Proofs, run: str, extent: Extent, *, planning: bool) -> None:
        self._proofs = proofs
        self._known = proofs.read()
        self._run = run
        self._extent = extent
        self._planning = planning
        self._bases: dict[str, Base | None] = {}
        self._marks: dict[str, Mark | None] = {}
        self._compared: dict[str, tuple[Coverage, tuple[int, ...]]] = {}
        self._new: list[Proof] = []

    def select(
        self, target: LakeTarget, table: Table, cut: ExactCut, schema: TableSchema
    ) -> Buckets:
        proof = standing(table, self._known.get(target.source, ()))
        known = proof.coverage
        keyed = bool(schema.key_columns)
        stripes = striping(cut, schema, known.width) if keyed else None
        before = known.under(stripes.width if stripes else None)
        # Without a key there is nothing that parts of a table could be told by.
        buckets = before.next(self._extent.sample if keyed else WHOLE.sample)
        self._compared[target.source] = (before, buckets)
        self._bases[target.source] = proof.proof.base if proof.proof else None
        self._marks[target.source] = None
        if keyed and self._extent.sample == WHOLE.sample and isinstance(cut, MarkingCut):
            self._marks[target.source] = cut.mark(target.table, schema)
        return Buckets(buckets, stripes)

    def base(self, target: LakeTarget) -> Base | None:
        """What may be continued; known once the table's keys were selected."""
        return self._bases[target.source]

    def settle(
        self, target: LakeTarget, position: Position, found: Comparison, verdict: TableVerdict
    ) -> TableVerdict:
        before, buckets = self._compared[target.source]
        now = datetime.now(UTC)
        coverage = before.after(buckets, found.buckets, position, now, found.left_out)
        snapshot = verdict.snapshot_id or 0
        base = self._next_base(target, coverage, snapshot, found.lake_rows)
        self._new.append(Proof(target.source, self._run, snapshot, coverage, base))
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

    def _next_base(
        self, target: LakeTarget, coverage: Coverage, snapshot: int, rows: int
    ) -> Base | None:
        """This comparison if it was of every row; after a sample, the one before still holds."""
        if coverage.differing:
            return None
        if self._extent.sample < WHOLE.sample:
            return self._bases[target.source]
        mark = self._marks[target.source]
        return Base(snapshot, rows, mark) if mark and not coverage.left_out else None

    def keep(self) -> None:
        """One append for all tables. Proofs name their snapshots, so that a run killed before this
        has proven nothing, and one whose lease is gone proves nothing wrong."""
        self._proofs.add(self._new)
