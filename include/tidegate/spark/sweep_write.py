"""Writing chunks to a sweep's branch: one Spark job and one commit per group of chunks."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from pyspark.sql import DataFrame

from tidegate import faults
from tidegate.config.pipeline import LakeTarget
from tidegate.connectors.cut import Chunk
from tidegate.observability import log
from tidegate.observability.progress import Progress
from tidegate.spark import publish
from tidegate.spark.sweep_parking import SweepParking
from tidegate.spark.sweep_read import Reading, Seen, check_exact
from tidegate.spark.sweep_state import PLAN_PROPERTY, ChunkNote, ChunkPlan
from tidegate.spark.write_options import write_options

_LOG = log.get(__name__)

ROUNDS_PER_COMMIT: Final = 2
"""Chunks per connection in one commit: fewer commits read faster, more lose less when killed."""


class RowShape(Protocol):
    """From source rows to lake rows (adds ``_cdc_`` columns)."""

    def __call__(self, frame: DataFrame) -> DataFrame: ...


@dataclass(frozen=True, slots=True)
class BranchWrite:
    """Where and how a sweep writes."""

    reading: Reading
    target: LakeTarget
    branch: str
    run: str
    progress: Progress
    shape: RowShape
    replace: bool
    """Whether the first commit takes the place of everything the branch held."""
    parking: SweepParking | None
    """Takes the rows that the lake cannot; without it they are an error."""

    def write(self, plan: ChunkPlan, rows_before: int = 0) -> Seen:
        """Read and append every chunk of ``plan``; what was seen in total."""
        seen, rows = Seen(), 0
        began = time.monotonic()
        size = self.reading.settings.parallelism * ROUNDS_PER_COMMIT
        for note, group in plan.groups(size):
            first = note.done == len(group)
            extra = {PLAN_PROPERTY: plan.packed()} if first else {}
            own, added = self._commit(plan, note, group, extra, first=first)
            seen, rows = seen.plus(own), rows + added
            faults.point("sweep.after_chunk")
            if self.parking is not None:
                self.parking.park(group, own)
            else:
                check_exact(self.target.source, seen)
            self._report(note, rows_before + rows, rows, time.monotonic() - began)
        return seen

    def clear(self, properties: Mapping[str, str]) -> None:
        """The source's table is empty: so is the branch."""
        table = self.target.identifier
        empty = self.reading.session.table(publish.spark_name(table)).where("false")
        publish.replace(empty, table, branch=self.branch, properties=properties)

    def _commit(
        self,
        plan: ChunkPlan,
        note: ChunkNote,
        group: Sequence[Chunk],
        extra: Mapping[str, str],
        *,
        first: bool,
    ) -> tuple[Seen, int]:
        cut = self.reading.cut
        cut.check()
        read = self.reading.rows(group)
        put = publish.replace if first and self.replace else publish.append
        written = put(
            self.shape(read.good),
            self.target.identifier,
            branch=self.branch,
            properties={
                **note.properties(self.run, cut.position, self.reading.schema.schema_id),
                **extra,
            },
            # Chunks by key range are in key order between files; sorting each would cost a quarter.
            options=write_options(self.target, in_key_order=plan.by_key),
        )
        return read.seen(), written.rows

    def _report(self, note: ChunkNote, rows: int, own_rows: int, seconds: float) -> None:
        rate = own_rows / seconds if seconds > 0 else 0.0
        self.progress(
            f"sweep {self.target.source}",
            note.done,
            note.total,
            "chunks",
            rows=rows,
            rows_per_second=round(rate),
        )
        log.event(
            _LOG,
            "chunks written",
            table=self.target.source,
            run=self.run,
            chunk=f"{note.first}–{note.last}",
            done=note.done,
            total=note.total,
            rows=rows,
            rate=f"{rate:,.0f} rows/s",
        )
