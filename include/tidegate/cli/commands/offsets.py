"""``offsets``, ``offsets set``: where a pipeline stands, and moving one table."""

from __future__ import annotations

from typing import Annotated

import typer

from tidegate.cli import render, render_pipelines
from tidegate.cli.groups import ShowByDefault
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

app = typer.Typer(
    cls=ShowByDefault,
    help="Where capture and each table stand; set a table's position.",
    no_args_is_help=True,
)


@app.command()
def show(
    pipeline: PipelineFile,
    platform_config: PlatformFile = None,
    table: Tables = None,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Positions of the change log and of each table, and the lowest a table may be set to."""
    with invocation("offsets", pipeline, platform_config, as_json, debug, source=False) as call:
        from tidegate.control.offsets import offsets

        result = offsets(call.pipeline, call.platform, table)
        call.finish(result, render_pipelines.offsets)


@app.command("set")
def set_offset(
    pipeline: PipelineFile,
    position: Annotated[
        str,
        typer.Option(
            "--position", metavar="POSITION", help="A position as `offsets` prints it, or an LSN."
        ),
    ],
    platform_config: PlatformFile = None,
    table: OneTable = None,
    skip: Annotated[
        bool,
        typer.Option("--skip", help="Forward: changes in between may be left out for good."),
    ] = False,
    expect: Annotated[
        str | None,
        typer.Option(
            "--expect", metavar="POSITION", help="Where it stands now; if not, nothing is done."
        ),
    ] = None,
    reason: Annotated[
        str, typer.Option("--reason", help="Why; it stands in the audit trail.")
    ] = "set by hand",
    dry_run: DryRun = False,
    yes: Yes = False,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Take a table's position back (its changes are applied again) or forward (they are skipped).

    Says how many changes that concerns and when they were committed, and asks first. No row is
    touched: one empty commit carries the position. Back only in plain upsert mode and with a key,
    and not behind the last sweep; `lakehouse rollback` takes rows and position back together.
    """
    with invocation("offsets set", pipeline, platform_config, as_json, debug, source=False) as call:
        from tidegate.control.offsets import plan

        move = plan(call.pipeline, call.platform, table, position, skip=skip, expect=expect)
        if dry_run or move.direction == "none":
            call.finish({**_facts(move), "status": "planned"}, render.facts)
            return
        call.output.note(f"{move.from_position} → {move.to_position}")
        call.confirm(f"{move.words}. Set it?", yes=yes)
        from tidegate.cli.spark import spark

        with spark(call, "set offset") as session:
            from tidegate.jobs.set_offset import run_set_offset

            result = run_set_offset(
                session,
                call.pipeline,
                call.platform,
                move.table,
                move.to_position,
                skip=skip,
                reason=reason,
                expect=str(move.from_position),
            )
        call.finish(result, render.facts)


def _facts(move: object) -> dict[str, object]:
    from tidegate.jobs.result import plain

    return {**plain(move), "says": getattr(move, "words", "")}
