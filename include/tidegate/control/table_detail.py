"""One table, looked at closely: its status, its files, and which upkeep is (not) due and why."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from pyiceberg.table import Table

from tidegate.config.pipeline import PipelineConfig
from tidegate.config.platform import PlatformConfig
from tidegate.control.records import TableStatus
from tidegate.control.schemas import HeldSchema, held
from tidegate.control.status import status_of
from tidegate.control.status_cache import Look, StatusCache
from tidegate.control.tables import one_table
from tidegate.lake import positions, upkeep
from tidegate.names import TableId

DATA_FILES: Final = "total-data-files"
DELETE_FILES: Final = "total-delete-files"
FILE_BYTES: Final = "total-files-size"


@dataclass(frozen=True, slots=True)
class TableFiles:
    """What the current snapshot is made of, by its own summary."""

    data_files: int
    delete_files: int
    bytes: int
    snapshots: int


@dataclass(frozen=True, slots=True)
class UpkeepStep:
    """One step of upkeep: whether it is due, and why."""

    step: str
    due: bool
    why: str


@dataclass(frozen=True, slots=True)
class TableDetail:
    """Everything about one table that needs no data file."""

    status: TableStatus
    files: TableFiles | None  # None: there is no lake table yet
    upkeep: tuple[UpkeepStep, ...]
    held: HeldSchema | None


def only(pipeline: PipelineConfig, table: str) -> PipelineConfig:
    """The pipeline as if it had one table: what is asked of it costs no more than that."""
    source = pipeline.source.model_copy(update={"tables": (table,)})
    return pipeline.model_copy(update={"source": source})


def table_detail(
    pipeline: PipelineConfig, platform: PlatformConfig, table: str, lake: Look | None = None
) -> TableDetail:
    """A close look at ``table``. Reads metadata and manifests; ``lake``: what is read already."""
    name = one_table(pipeline, table)
    narrow = only(pipeline, name)
    lake = lake or StatusCache(narrow, platform).look()
    target = pipeline.target(TableId.parse(name))
    loaded = lake.tables[name]
    waiting = held(narrow, platform)
    return TableDetail(
        status=status_of(lake, narrow, platform, ask_source=False).tables[0],
        files=None if loaded is None else table_files(loaded),
        upkeep=()
        if loaded is None
        else _steps(
            upkeep.plan(
                loaded,
                target.maintenance,
                datetime.now(UTC),
                upkeep.done_by(lake.reports, name),
            )
        ),
        held=waiting[0] if waiting else None,
    )


def table_files(table: Table) -> TableFiles:
    """From the current snapshot's summary."""
    current = table.current_snapshot()
    facts = positions.summary(current) if current else {}
    return TableFiles(
        data_files=int(facts.get(DATA_FILES, 0)),
        delete_files=int(facts.get(DELETE_FILES, 0)),
        bytes=int(facts.get(FILE_BYTES, 0)),
        snapshots=len(table.metadata.snapshots),
    )


def _steps(plan: upkeep.UpkeepPlan) -> tuple[UpkeepStep, ...]:
    return tuple(
        UpkeepStep(step, step in plan.due, plan.reasons.get(step, "")) for step in upkeep.STEPS
    )
