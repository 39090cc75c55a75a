"""Tables of a pipeline: as they are, what happened to them, their rows' pasts."""

from __future__ import annotations

import json
from typing import Annotated

from fastapi import APIRouter, Path, Query

from tidegate.api.access import Role, needs
from tidegate.api.models.status import TableStatus
from tidegate.api.models.tables import (
    RowHistory,
    Series,
    Snapshot,
    TableDetail,
    TimelineEntry,
)
from tidegate.api.pages import DEFAULT_LIMIT, Cursor, Limit, Page, page
from tidegate.api.routes.subject import ONE, TABLE, About, Looks, TableOf
from tidegate.control import table_history
from tidegate.control.row_history import row_history
from tidegate.control.series import series
from tidegate.control.table_detail import table_detail
from tidegate.control.timeline import timeline

router = APIRouter(tags=["tables"])


@router.get(f"{ONE}/tables")
@needs(Role.READ)
def list_tables(
    looks: Looks, about: About, limit: Limit = DEFAULT_LIMIT, cursor: Cursor = None
) -> Page[TableStatus]:
    """Every table's status, in the order of the pipeline's file."""
    found = looks.status_of_lake(about.pipeline, about.platform)
    rows = page(found.tables, lambda row: row.table, limit, cursor)
    items = [TableStatus.model_validate(row) for row in rows.items]
    return Page(items=items, next=rows.next, total=rows.total)


@router.get(TABLE)
@needs(Role.READ)
def get_table(looks: Looks, about: About, table: TableOf) -> TableDetail:
    """Status, files and delete files, why compaction is (not) due, a held schema."""
    lake = looks.lake(about)
    return TableDetail.model_validate(table_detail(about.pipeline, about.platform, table, lake))


@router.get(f"{TABLE}/timeline")
@needs(Role.READ)
def get_timeline(
    looks: Looks,
    about: About,
    table: TableOf,
    limit: Limit = DEFAULT_LIMIT,
    cursor: Cursor = None,
) -> Page[TimelineEntry]:
    """Gate states, sweeps, applies, compactions and schema changes, newest first."""
    found = timeline(about.pipeline, about.platform, table, looks.lake(about).reports)
    rows = page(found, lambda row: row.id, limit, cursor)
    items = [TimelineEntry.model_validate(row) for row in rows.items]
    return Page(items=items, next=rows.next, total=rows.total)


@router.get(f"{TABLE}/snapshots")
@needs(Role.READ)
def get_snapshots(
    looks: Looks,
    about: About,
    table: TableOf,
    limit: Limit = DEFAULT_LIMIT,
    cursor: Cursor = None,
) -> Page[Snapshot]:
    """Retained snapshots, newest first, with the rows each one changed and its position."""
    reports = looks.lake(about).reports
    found = table_history.snapshots(about.pipeline, about.platform, table, reports)
    rows = page(found, lambda row: str(row.snapshot.snapshot_id), limit, cursor)
    items = [
        Snapshot.model_validate(row.snapshot).model_copy(
            update={
                "inserted": row.inserted,
                "updated": row.updated,
                "deleted": row.deleted,
            }
        )
        for row in rows.items
    ]
    return Page(items=items, next=rows.next, total=rows.total)


@router.get(f"{TABLE}/series")
@needs(Role.READ)
def get_series(
    looks: Looks,
    about: About,
    table: TableOf,
    limit: Annotated[int, Query(ge=1, le=2000)] = 500,
) -> Series:
    """Rows, throughput and lag over time, one point per snapshot, oldest first."""
    lake = looks.lake(about)
    return Series.model_validate(series(about.pipeline, about.platform, table, limit, lake))


@router.get(f"{TABLE}/rows/{{key}}/history")
@needs(Role.EDIT)
def get_row_history(
    about: About,
    table: TableOf,
    key: Annotated[
        str,
        Path(
            max_length=1000,
            examples=["17", '["17", "de"]'],
            description="The key's text; several columns: a JSON list of texts.",
        ),
    ],
) -> RowHistory:
    """Every change of a key that the change log still holds, newest first, each with the snapshot
    in which readers first saw it. Shows row values, so it needs more than a look."""
    found = row_history(about.pipeline, about.platform, table, key_parts(key))
    return RowHistory.model_validate(found)


def key_parts(text: str) -> list[str | None]:
    """The parts of a key as people write it."""
    if text.startswith("["):
        try:
            parts = json.loads(text)
        except ValueError:
            return [text]
        return [None if part is None else str(part) for part in parts]
    return [text]
