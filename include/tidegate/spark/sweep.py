"""One table's sweep: prepare the lake table, build the branch, audit it, publish it.

The steps are separate because durable things happen between them (gate, leases, draining the log)
that belong to the job around it (``tidegate.jobs.sweep``).
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass, replace
from datetime import datetime
from threading import Lock
from typing import Any, Final

from pyiceberg.catalog import Catalog
from pyiceberg.table import Table
from pyspark.sql import SparkSession

from tidegate import faults
from tidegate.config.pipeline import LakeTarget, PipelineConfig
from tidegate.config.platform import DlqConfig, SweepConfig
from tidegate.connectors.cut import BesideCut, Cut, SharedCut, Survey
from tidegate.envelope.position import Position
from tidegate.errors import ConfigError, FatalError, HeldError
from tidegate.lake import commits, positions
from tidegate.lake.catalog import ensure_namespace, load
from tidegate.lake.dead_letters import DeadLetters
from tidegate.lake.evolution import Evolution, SchemaConflict, evolve
from tidegate.lake.lineage import read_lineage
from tidegate.lake.schema_history import SchemaHistory, unknown_schema
from tidegate.lake.schema_hold import held_error
from tidegate.lake.tables import create_sql, shape_sql
from tidegate.lake.variant_type import check_format
from tidegate.names import sweep_branch
from tidegate.observability.progress import Progress
from tidegate.schema.contract import contracted
from tidegate.schema.table import TableSchema
from tidegate.spark import publish
from tidegate.spark.audit import Audit, Wanted, audit
from tidegate.spark.sweep_modes import ModeSweep
from tidegate.spark.sweep_parking import SweepParking
from tidegate.spark.sweep_range import KeyRange
from tidegate.spark.sweep_read import Reading, Seen, key_names
from tidegate.spark.sweep_state import (
    BranchState,
    ChunkNote,
    ChunkPlan,
    branch_state,
    publish_properties,
    sweep_branches,
)
from tidegate.spark.sweep_write import BranchWrite

INCOMPATIBLE: Final = "schema.incompatible"


@dataclass(frozen=True, slots=True)
class Built:
    """A branch that holds every row, not yet audited."""

    mode: ModeSweep
    survey: Survey
    """What the source itself counted at the cut."""
    seen: Seen
    parking: SweepParking
    chunks: int
    first_cut: Position
    """The lowest cut of a chunk; the log must be drained onto the branch from here."""
    resumed: bool

    @property
    def needs_drain(self) -> bool:
        return self.first_cut != self.mode.cut


@dataclass(frozen=True, slots=True)
class Sweeper:
    """What every table of one sweep shares."""

    session: SparkSession
    catalog: Catalog
    pipeline: PipelineConfig
    settings: SweepConfig
    cut: Cut
    cut_time: datetime
    letters: DeadLetters
    limits: DlqConfig
    progress: Progress
    history: SchemaHistory
    """Knows the tables' schemas at the cut, with the source's own column numbers."""
    one_large: Lock
    """Held while a table of several chunks is read: it uses every connection it may (I11)."""

    def prepare(self, target: LakeTarget) -> tuple[Table, TableSchema]:
        """The lake table with every column the source has at the cut (I8)."""
        ensure_namespace(self.catalog, target.namespace)
        table = load(self.catalog, target.identifier)
        if table is None and not target.auto_create:
            raise _must_exist(target)
        if table is None:
            schema = contracted(self.cut.schema(target.table), target)
            statements = [create_sql(target, schema, self.pipeline.pipeline_id)]
            statements += shape_sql(target, schema)
        else:
            change, index = self._evolution(table, target)
            statements, schema = list(change.statements), _taken(change.schemas[index])
            check_format(table, [schema])
        for statement in statements:
            self.session.sql(statement)
        return self.loaded(target), schema

    def _evolution(self, table: Table, target: LakeTarget) -> tuple[Evolution, int]:
        """What brings the lake table to the schema of the cut, and that schema's version."""
        lineage = read_lineage(self.history, target)
        schema_id = self.cut.schema(target.table).schema_id
        index = lineage.index_of(schema_id, self.cut.position.place)
        if index is None:
            raise unknown_schema(schema_id)
        stands = positions.applied(table)
        # Nothing was ever written: nothing can be lost, so no policy is asked.
        base = index if stands is None else lineage.index_at(stands)
        try:
            return evolve(table.schema(), lineage, [index], base=base, sweeping=True), index
        except SchemaConflict as conflict:
            # What came and went in between was never in the lake, and a sweep does not read it.
            net, at = lineage.net(base, index)
            with suppress(SchemaConflict):
                return evolve(table.schema(), net, [at], base=base, sweeping=True), at
            raise held_error(INCOMPATIBLE, table.schema(), lineage, conflict) from None

    def build(self, target: LakeTarget, run: str, *, resume: bool) -> Built:
        """Bring every row of the source to the branch of ``run``."""
        keyed = bool(self.cut.schema(target.table).key_columns)
        if not isinstance(self.cut, SharedCut) and not (keyed and target.forgets):
            raise _needs_shared(target)
        table, schema = self.prepare(target)
        left = branch_state(table, run) if resume and not self._beside else None
        if left is not None and not self._resumable(left, target, schema, run):
            left = None
        if left is None:
            self._new_branch(table, target, run)
        faults.point("sweep.after_branch")
        mode = self._mode(target, schema, run, table)
        parking = self._parking(mode, run)
        if self._beside:
            parking.refuse_large()
        else:
            parking.park_large()
        if mode.diffs:
            return self._difference(mode, run, parking)
        return self._chunks(mode, run, left, parking)

    def build_range(self, target: LakeTarget, run: str, keys: KeyRange) -> Built:
        """Bring the rows of a key range to the branch; all others stay as ``main`` has them."""
        table = self.loaded(target)
        change, index = self._evolution(table, target)
        schema = _taken(change.schemas[index])
        key = keys.key(target, schema)
        stands = positions.applied(table)
        if stands is None or change.needed:
            raise HeldError(
                "sweep.range_needs_table",
                f"{target.source} was never swept, or its columns changed since",
                hint="sweep the whole table",
            )
        mode = self._mode(target, schema, run, table)
        parking = self._parking(mode, run)
        parking.refuse_large()
        self._new_branch(table, target, run)
        faults.point("sweep.after_branch")
        keys.delete(self.session, target, mode.branch, key)
        wanted = keys.source_sql(self.cut.ordered_sql(key))
        chunks = tuple(
            replace(chunk, predicate_sql=f"({chunk.predicate_sql}) AND {wanted}")
            for chunk in self._plan(mode).chunks
        )
        # Not resumable: a range is small next to its table. Nor does it make dead letters: the log
        # is drained onto the branch, which knows nothing of changes that wait.
        write = replace(self._write(mode, run, parking, replace_all=False), parking=None)
        with self._turn(len(chunks)):
            seen = write.write(ChunkPlan(chunks))
        mode, survey = self._settled(mode, parking)
        return Built(mode, survey, seen, parking, len(chunks), stands, False)

    def audit(self, built: Built) -> Audit:
        """Check the branch against the source's own numbers and the user's suite."""
        mode, survey = built.mode, built.parking.left(built.survey)
        wanted = Wanted(survey.rows, key_names(mode.schema), survey.keys)
        return audit(mode.swept(built.parking), wanted, mode.target.options.expectations)

    def publish(self, built: Built, run: str) -> int:
        """Stamp the cut on the branch and make it ``main``; the new snapshot's id (I1, I5)."""
        target, branch = built.mode.target, built.mode.branch
        properties = publish_properties(run, built.mode.cut, built.parking.batch)
        publish.stamp(self.session, target.identifier, branch=branch, properties=properties)
        return publish.fast_forward(self.session, target.identifier, branch)

    def loaded(self, target: LakeTarget) -> Table:
        table = load(self.catalog, target.identifier)
        if table is None:
            raise FatalError(
                "lake.table_missing",
                f"{target.namespace}.{target.name} is gone",
                hint="someone dropped it during the sweep; sweep again",
            )
        return table

    def _new_branch(self, table: Table, target: LakeTarget, run: str) -> None:
        # Branches of earlier sweeps of this table can never be published any more.
        for stale in sweep_branches(table):
            publish.drop_branch(self.session, target.identifier, stale)
        publish.create_branch(
            self.session,
            target.identifier,
            sweep_branch(run),
            retain_seconds=self.settings.branch_max_age_seconds,
        )

    def _chunks(
        self, mode: ModeSweep, run: str, left: BranchState | None, parking: SweepParking
    ) -> Built:
        plan = left.plan if left else self._whole(mode, parking.reading.survey)
        write = self._write(mode, run, parking, replace_all=mode.replaces)
        if self._beside or not isinstance(self.cut, SharedCut):
            write = replace(write, parking=None)  # the log is drained, as for a range
        with self._turn(plan.total):
            seen = write.write(plan, left.rows if left else 0)
        note = ChunkNote("finish", "finish", plan.total, plan.total)
        properties = note.properties(run, self.cut.position, mode.schema.schema_id)
        if not plan.total and mode.replaces and mode.base is not None:
            write.clear(properties)
        mode.finish(properties, parking)
        first = left.first_cut if left else self.cut.position
        mode, survey = self._settled(mode, parking)
        return Built(mode, survey, seen, parking, plan.total, first, left is not None)

    @property
    def _beside(self) -> bool:
        return isinstance(self.cut, BesideCut)

    def _settled(self, mode: ModeSweep, parking: SweepParking) -> tuple[ModeSweep, Survey]:
        """Where reads were at different positions, the one that draining brings them to."""
        if isinstance(self.cut, SharedCut):
            return mode, parking.reading.survey
        settled = self.cut.settle(mode.target.table, mode.schema)
        return replace(mode, cut=settled.position), settled.survey

    def _mode(self, target: LakeTarget, schema: TableSchema, run: str, table: Table) -> ModeSweep:
        return ModeSweep(
            self.session,
            target,
            schema,
            sweep_branch(run),
            self.cut.position,
            self.cut_time,
            commits.head_id(table),
        )

    def _parking(self, mode: ModeSweep, run: str) -> SweepParking:
        survey = self.cut.survey(mode.target.table, mode.schema)
        return SweepParking(
            reading=Reading(self.session, self.cut, mode.schema, survey, self.settings),
            source_schema=self.cut.schema(mode.target.table),
            target=mode.target,
            cut_time=self.cut_time,
            letters=self.letters,
            limits=self.limits,
            run=run,
        )

    def _write(
        self, mode: ModeSweep, run: str, parking: SweepParking, *, replace_all: bool
    ) -> BranchWrite:
        return BranchWrite(
            reading=parking.reading,
            target=mode.target,
            branch=mode.branch,
            run=run,
            progress=self.progress,
            shape=mode.shape,
            replace=replace_all,
            parking=parking,
        )

    def _turn(self, chunks: int) -> AbstractContextManager[Any]:
        return self.one_large if chunks > 1 else nullcontext()

    def _whole(self, mode: ModeSweep, survey: Survey) -> ChunkPlan:
        """All of the table; nothing where the source counted no row at this very cut: many tables
        of an application are empty, and need no Spark job to stay so."""
        if isinstance(self.cut, SharedCut) and not survey.rows:
            return ChunkPlan(())
        return self._plan(mode)

    def _plan(self, mode: ModeSweep) -> ChunkPlan:
        # No log leads from a cut beside running transactions to another: nothing to go on with.
        by_key = False if self._beside else None
        table, rows = mode.target.table, self.settings.chunk_rows
        return ChunkPlan(tuple(self.cut.chunks(table, mode.schema, rows, by_key=by_key)))

    def _difference(self, mode: ModeSweep, run: str, parking: SweepParking) -> Built:
        chunks = self._plan(mode).chunks
        note = ChunkNote("difference", "difference", len(chunks), len(chunks))
        properties = note.properties(run, self.cut.position, mode.schema.schema_id)
        with self._turn(len(chunks)):
            seen = mode.merge_difference(chunks, parking, properties)
        survey = parking.reading.survey
        return Built(mode, survey, seen, parking, len(chunks), self.cut.position, False)

    def _resumable(
        self, left: BranchState, target: LakeTarget, schema: TableSchema, run: str
    ) -> bool:
        """Only rows that a drained log can bring to a later cut: keyed, plain upsert, same columns,
        none set aside, and of the same epoch, for no log leads from one to another."""
        same = left.schema_id == schema.schema_id
        same = same and left.first_cut.epoch == self.cut.position.epoch
        whole = not self.letters.parked_by(target.source, run)
        keyed = bool(schema.key_columns)
        return target.forgets and keyed and left.plan.by_key and same and whole


def _needs_shared(target: LakeTarget) -> ConfigError:
    return ConfigError(
        "sweep.needs_shared_cut",
        f"{target.source}: this source's sweeps are completed from the log, which only a key and"
        " write_mode upsert without soft_delete allow",
        hint="give the table a primary key, and set write_mode: upsert for it",
    )


def _must_exist(target: LakeTarget) -> HeldError:
    return HeldError(
        "sweep.lake_table_missing",
        f"{target.namespace}.{target.name} does not exist, and auto_create_table is false",
        hint="create it with the source's columns (docs/reference/types.md), or set"
        " auto_create_table: true; then sweep it",
    )


def _taken(schema: TableSchema) -> TableSchema:
    """Only what the lake takes is read."""
    return replace(schema, columns=tuple(column for column in schema.columns if column.taken))
