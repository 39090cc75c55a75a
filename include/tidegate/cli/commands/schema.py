"""``schemas``, ``schema``, ``schema approve | leave | check | register``."""

from __future__ import annotations

from typing import Annotated

import typer

from tidegate.cli import render, render_registry, render_schema
from tidegate.cli.groups import ShowByDefault
from tidegate.cli.invocation import actor, invocation, run_id
from tidegate.cli.options import (
    AsJson,
    Debug,
    DryRun,
    OneTable,
    PipelineFile,
    PlatformFile,
    Reason,
    Tables,
)

app = typer.Typer(
    cls=ShowByDefault,
    help="Show a table's schema, approve a change that holds it, look at the live source.",
    no_args_is_help=True,
)

Renames = Annotated[
    list[str] | None,
    typer.Option(
        "--rename", metavar="OLD=NEW", help="The lake's column OLD is NEW now.", show_default=False
    ),
]
Casts = Annotated[
    list[str] | None,
    typer.Option(
        "--cast",
        metavar="COLUMN=TYPE",
        help="Keep the lake's column and cast new values to its type. Without it the old column is"
        " kept under another name and a new one begins.",
        show_default=False,
    ),
]


def register(root: typer.Typer) -> None:
    """Add the verbs to the command tree."""
    root.command()(schemas)
    root.add_typer(app, name="schema")


def schemas(
    pipeline: PipelineFile,
    platform_config: PlatformFile = None,
    table: Tables = None,
    registry: Annotated[
        bool,
        typer.Option("--registry", help="What the schema registry has of them, and says of them."),
    ] = False,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Every schema the source's tables ever had, where it begins, and what changed."""
    with invocation("schemas", pipeline, platform_config, as_json, debug, source=False) as call:
        if registry:
            from tidegate.control.registry import registrations

            known = registrations(call.pipeline, call.platform, table)
            call.finish({"registrations": known}, render_registry.registrations)
            return
        from tidegate.control import schemas as control

        rows = control.schemas(call.pipeline, call.platform, table)
        call.finish({"schemas": rows}, render_schema.schemas)


@app.command()
def show(
    pipeline: PipelineFile,
    platform_config: PlatformFile = None,
    table: OneTable = None,
    at: Annotated[
        str | None,
        typer.Option(
            "--at", metavar="POSITION", help="As of this position, or LSN.", show_default=False
        ),
    ] = None,
    held: Annotated[
        bool, typer.Option("--held", help="What holds tables: lake and source side by side.")
    ] = False,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """A table's newest schema, or the one in force at a position."""
    with invocation("schema", pipeline, platform_config, as_json, debug, source=False) as call:
        from tidegate.control import schemas as control

        if held:
            waiting = control.held(call.pipeline, call.platform, [table] if table else None)
            call.finish({"held": waiting}, render_schema.held)
            return
        call.finish(control.schema(call.pipeline, call.platform, table, at), render_schema.schema)


@app.command()
def approve(
    pipeline: PipelineFile,
    platform_config: PlatformFile = None,
    table: OneTable = None,
    rename: Renames = None,
    cast: Casts = None,
    reason: Reason = "approved by hand",
    dry_run: DryRun = False,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Let a schema change through that holds a table, from its position on; the gate opens."""
    with invocation(
        "schema approve", pipeline, platform_config, as_json, debug, source=False
    ) as call:
        from tidegate.control.schema_approval import Answer
        from tidegate.control.schema_approval import approve as give

        answer = Answer.written(rename, cast, reason)
        result = give(call.pipeline, call.platform, table, answer, actor=actor(), dry_run=dry_run)
        call.finish(result, render_schema.approved)


@app.command()
def leave(
    pipeline: PipelineFile,
    platform_config: PlatformFile = None,
    table: OneTable = None,
    reason: Reason = "left held by hand",
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Leave a held schema change as it is; the Dag asks nobody about it any more."""
    with invocation(
        "schema leave", pipeline, platform_config, as_json, debug, source=False
    ) as call:
        from tidegate.control.schema_approval import leave_held

        result = leave_held(call.pipeline, call.platform, table, reason=reason)
        call.finish(result, render_schema.left)


@app.command()
def check(
    pipeline: PipelineFile,
    platform_config: PlatformFile = None,
    table: Tables = None,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Compare the live source with the lake: what will be held, and what only a sweep brings."""
    with invocation("schema check", pipeline, platform_config, as_json, debug) as call:
        tables = call.tables(table)
        from tidegate.jobs.check_schema import run_check_schema

        result = run_check_schema(call.pipeline, call.platform, tables=tables, run=run_id("schema"))
        call.finish(result, render.tables, failed=result.failed)


@app.command(name="register")
def register_schemas(
    pipeline: PipelineFile,
    platform_config: PlatformFile = None,
    table: Tables = None,
    everything: Annotated[
        bool,
        typer.Option("--all", help="Also what it has by our records: it was emptied or restored."),
    ] = False,
    dry_run: DryRun = False,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Tell the schema registry the schemas it does not have; --dry-run asks what it would say."""
    with invocation(
        "schema register", pipeline, platform_config, as_json, debug, source=False
    ) as call:
        tables = call.tables(table)
        from tidegate.jobs.register_schemas import run_register

        result = run_register(
            call.pipeline, call.platform, tables=tables, everything=everything, dry_run=dry_run
        )
        call.finish(result, render_registry.registered, failed=result.failed)
