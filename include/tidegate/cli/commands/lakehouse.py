"""``lakehouse snapshots | query | rollback``: a lake table's past."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated

import typer

from tidegate.cli import render
from tidegate.cli.invocation import invocation
from tidegate.cli.options import (
    AsJson,
    Debug,
    DryRun,
    OneTable,
    PipelineFile,
    PlatformFile,
    Tables,
    Yes,
)
from tidegate.cli.progress import ProgressView

app = typer.Typer(help="Look at, query and go back to snapshots.", no_args_is_help=True)

DEFAULT_LIMIT = 20  # lake.query.DEFAULT_LIMIT, which would import PyIceberg for --help


@app.command()
def snapshots(
    pipeline: PipelineFile,
    platform_config: PlatformFile = None,
    table: Tables = None,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Retained snapshots of the lake tables, each with the position it stands at."""
    with invocation(
        "lakehouse snapshots", pipeline, platform_config, as_json, debug, source=False
    ) as call:
        from tidegate.control import lakehouse

        rows = lakehouse.snapshots(call.pipeline, call.platform, table)
        call.finish({"snapshots": rows}, render.snapshots)


@app.command()
def query(
    pipeline: PipelineFile,
    platform_config: PlatformFile = None,
    table: OneTable = None,
    snapshot_id: Annotated[
        int | None, typer.Option("--snapshot-id", help="As of this snapshot.", show_default=False)
    ] = None,
    as_of: Annotated[
        datetime | None,
        typer.Option("--as-of", help="As of this time, UTC.", show_default=False),
    ] = None,
    where: Annotated[
        str | None,
        typer.Option("--where", help="Row filter: \"id > 10 and status = 'new'\"."),
    ] = None,
    column: Annotated[
        list[str] | None, typer.Option("--column", "-c", help="Only this column; repeatable.")
    ] = None,
    limit: Annotated[int, typer.Option("--limit", min=1, help="Rows at most.")] = DEFAULT_LIMIT,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Rows of a lake table, now or as of a snapshot. Needs no Spark."""
    with invocation(
        "lakehouse query", pipeline, platform_config, as_json, debug, source=False
    ) as call:
        from tidegate.control import lakehouse

        at = as_of if as_of is None or as_of.tzinfo else as_of.replace(tzinfo=UTC)
        wanted = lakehouse.Query(snapshot_id, at, where, tuple(column or ()), limit)
        result = lakehouse.query(call.pipeline, call.platform, table, wanted)
        call.finish(result, render.rows)


@app.command()
def rollback(
    pipeline: PipelineFile,
    snapshot_id: Annotated[int, typer.Option("--snapshot-id", help="Go back to this snapshot.")],
    platform_config: PlatformFile = None,
    table: OneTable = None,
    force: Annotated[
        bool,
        typer.Option(
            "--force",
            help="Even if the change log cannot replay from there; the table is then held until"
            " it is swept.",
        ),
    ] = False,
    dry_run: DryRun = False,
    yes: Yes = False,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Take a table, and its position with it, back to a snapshot; the next apply replays."""
    with invocation(
        "lakehouse rollback", pipeline, platform_config, as_json, debug, source=False
    ) as call:
        from tidegate.control import lakehouse

        name = lakehouse.find_snapshot(call.pipeline, call.platform, table, snapshot_id)
        if not dry_run:
            call.confirm(f"Take {name} back to snapshot {snapshot_id}?", yes=yes)
        from tidegate.cli.spark import spark

        with ProgressView(call.output), spark(call, "rollback") as session:
            from tidegate.jobs.rollback import run_rollback

            result = run_rollback(
                session,
                call.pipeline,
                call.platform,
                name,
                snapshot_id,
                force=force,
                dry_run=dry_run,
            )
        call.finish(result, render.facts)
