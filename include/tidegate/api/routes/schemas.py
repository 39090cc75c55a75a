"""Schemas: every one a table had, one that waits, and letting it through."""

from __future__ import annotations

from fastapi import APIRouter

from tidegate.api.access import Role, needs
from tidegate.api.models.actions import Approved, ApproveRequest
from tidegate.api.models.tables import Column, HeldSchema, SchemaRow, TableSchema
from tidegate.api.pages import DEFAULT_LIMIT, Cursor, Limit, Page, page
from tidegate.api.routes.subject import ONE, TABLE, About, Actor, TableOf
from tidegate.control import schemas
from tidegate.control.schema_approval import Answer, approve
from tidegate.observability.caller import acting_as

router = APIRouter(tags=["schemas"])


@router.get(f"{ONE}/schemas")
@needs(Role.READ)
def list_schemas(
    about: About, limit: Limit = DEFAULT_LIMIT, cursor: Cursor = None
) -> Page[SchemaRow]:
    """Every schema ever seen, table by table, in log order."""
    found = schemas.schemas(about.pipeline, about.platform)
    rows = page(found, lambda row: f"{row.table}:{row.number}", limit, cursor)
    items = [SchemaRow.model_validate(row) for row in rows.items]
    return Page(items=items, next=rows.next, total=rows.total)


@router.get(f"{TABLE}/schema")
@needs(Role.READ)
def get_schema(about: About, table: TableOf) -> TableSchema:
    """A table's schemas with what changed from one to the next, and one that waits side by side
    with the lake's."""
    rows = schemas.schemas(about.pipeline, about.platform, [table])
    held = schemas.held(about.pipeline, about.platform, [table])
    shown = schemas.schema(about.pipeline, about.platform, table) if rows else None
    return TableSchema(
        table=table,
        history=[SchemaRow.model_validate(row) for row in rows],
        columns=[Column.model_validate(column) for column in shown.columns] if shown else [],
        held=HeldSchema.model_validate(held[0]) if held else None,
    )


@router.post(f"{TABLE}/schema/approve")
@needs(Role.EDIT)
def approve_schema(about: About, table: TableOf, body: ApproveRequest, actor: Actor) -> Approved:
    """Let the next held schema of a table through, and open its gate."""
    with acting_as(actor):
        found = approve(
            about.pipeline,
            about.platform,
            table,
            Answer(body.renames, body.casts, body.reason),
            actor=str(actor),
            dry_run=body.dry_run,
        )
    return Approved.model_validate(found)
