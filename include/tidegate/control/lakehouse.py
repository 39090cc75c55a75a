"""Snapshots of lake tables, and reading them as of one: metadata and files, no Spark."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from pyiceberg.catalog import Catalog
from pyiceberg.table import Table

from tidegate.config.pipeline import PipelineConfig
from tidegate.config.platform import PlatformConfig
from tidegate.control.records import QueryResult, SnapshotRow
from tidegate.control.tables import known_tables, one_table
from tidegate.errors import ConfigError
from tidegate.lake import positions
from tidegate.lake import query as lake_query
from tidegate.lake.catalog import load, open_catalog
from tidegate.names import TableId

ROWS_PROPERTY: Final = "total-records"


@dataclass(frozen=True, slots=True)
class Query:
    """What to read of one table."""

    snapshot_id: int | None = None  # None: the current one
    as_of: datetime | None = None  # the newest snapshot of main at that time
    where: str | None = None  # PyIceberg's row filter: "id > 10 and status = 'new'"
    columns: Sequence[str] = ()
    limit: int = lake_query.DEFAULT_LIMIT


def snapshots(
    pipeline: PipelineConfig, platform: PlatformConfig, tables: Sequence[str] | None = None
) -> list[SnapshotRow]:
    """Retained snapshots of the pipeline's lake tables, oldest first, table by table."""
    catalog = open_catalog(platform, pipeline)
    rows: list[SnapshotRow] = []
    for name in known_tables(pipeline, tables) or pipeline.source.tables:
        table = load(catalog, pipeline.target(TableId.parse(name)).identifier)
        if table is not None:
            rows += _rows(name, table)
    return rows


def find_snapshot(
    pipeline: PipelineConfig, platform: PlatformConfig, table: str | None, snapshot_id: int
) -> str:
    """The table a snapshot belongs to; refused if it is not one of the pipeline's."""
    catalog = open_catalog(platform, pipeline)
    for name in known_tables(pipeline, [table] if table else None) or pipeline.source.tables:
        loaded = load(catalog, pipeline.target(TableId.parse(name)).identifier)
        if loaded is not None and loaded.metadata.snapshot_by_id(snapshot_id) is not None:
            return name
    raise ConfigError(
        "lakehouse.no_snapshot",
        f"{table or f'no table of {pipeline.pipeline_id}'} has"
        f" {'no ' if table else ''}snapshot {snapshot_id}",
        hint="`tidegate lakehouse snapshots` lists those that are retained",
    )


def query(
    pipeline: PipelineConfig, platform: PlatformConfig, table: str | None, wanted: Query
) -> QueryResult:
    """Rows of one table as of one snapshot."""
    if table is None and wanted.snapshot_id is not None:
        name = find_snapshot(pipeline, platform, None, wanted.snapshot_id)
    else:
        name = one_table(pipeline, table)
    found = lake_query.query(
        _existing(open_catalog(platform, pipeline), pipeline, name),
        snapshot_id=wanted.snapshot_id,
        as_of=wanted.as_of,
        columns=wanted.columns,
        where=wanted.where,
        limit=wanted.limit + 1,  # one more tells whether that was all
    )
    return QueryResult(
        table=name,
        snapshot_id=found.snapshot_id,
        position=found.position,
        columns=tuple(found.rows.column_names),
        rows=tuple(found.rows.slice(0, wanted.limit).to_pylist()),
        complete=found.rows.num_rows <= wanted.limit,
    )


def row_count(summary: dict[str, str]) -> int | None:
    """Rows by a snapshot's summary: exact without delete files, an upper bound with them."""
    text = summary.get(ROWS_PROPERTY)
    if text is None:
        return None
    return int(text) - int(summary.get("total-position-deletes", "0"))


def _existing(catalog: Catalog, pipeline: PipelineConfig, name: str) -> Table:
    table = load(catalog, pipeline.target(TableId.parse(name)).identifier)
    if table is None:
        raise ConfigError(
            "lakehouse.no_table",
            f"{name} has no lake table yet",
            hint="sweep it first: `tidegate sweep`, or `tidegate run --once`",
        )
    return table


def _rows(name: str, table: Table) -> list[SnapshotRow]:
    current = table.current_snapshot()
    return [
        SnapshotRow(
            table=name,
            snapshot_id=info.snapshot_id,
            parent_id=info.parent_id,
            committed_at=info.committed_at,
            operation=info.operation,
            step=info.step,
            run=info.run,
            position=str(info.position) if info.position else None,
            rows=row_count(dict(info.summary)),
            current=current is not None and current.snapshot_id == info.snapshot_id,
            on_main=info.on_main,
        )
        for info in positions.history(table)
    ]
