"""``gate show | hold | open``: let increments of a table through, or hold them back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import typer

from tidegate.cli import render
from tidegate.cli.invocation import Invocation, actor, invocation
from tidegate.cli.options import AsJson, Debug, PipelineFile, PlatformFile, Reason, Tables

app = typer.Typer(help="Show, hold and open the gates of tables.", no_args_is_help=True)


@app.command()
def show(
    pipeline: PipelineFile,
    platform_config: PlatformFile = None,
    table: Tables = None,
    timeline: Annotated[
        int, typer.Option("--timeline", min=0, metavar="N", help="Also the last N events.")
    ] = 0,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """The state of each table's gate: who set it, why, since when."""
    with invocation("gate show", pipeline, platform_config, as_json, debug, source=False) as call:
        tables = call.tables(table)
        from tidegate.control import gates

        result = gates.show(call.pipeline, call.platform, tables, events=timeline)
        call.finish(result, render.gates)


@app.command()
def hold(
    pipeline: PipelineFile,
    platform_config: PlatformFile = None,
    table: Tables = None,
    reason: Reason = "held by hand",
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Keep a table's changes in the change log until it is opened again."""
    with invocation("gate hold", pipeline, platform_config, as_json, debug, source=False) as call:
        tables = call.tables(table)
        from tidegate.control import gates

        result = gates.hold(call.pipeline, call.platform, tables, reason=reason, actor=actor())
        call.finish(result, render.gates)


@app.command("open")
def open_gate(
    pipeline: PipelineFile,
    platform_config: PlatformFile = None,
    table: Tables = None,
    reason: Reason = "opened by hand",
    abandon: Annotated[
        bool,
        typer.Option("--abandon", help="Also give up a sweep in progress and drop its branch."),
    ] = False,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Let a table's changes through. A sweep in progress is not overruled, unless --abandon."""
    with invocation("gate open", pipeline, platform_config, as_json, debug, source=False) as call:
        tables = call.tables(table)
        from tidegate.control import gates

        result = gates.open_gates(
            call.pipeline, call.platform, tables, reason=reason, actor=actor(), abandon=abandon
        )
        if abandon:
            _drop_branches(call, tables)
        call.finish(result, render.gates)


def _drop_branches(call: Invocation, tables: Sequence[str] | None) -> None:
    """What given-up sweeps have written; Spark starts only if there is any."""
    from tidegate.jobs.abandon import drop_left_branches, left_branches

    left = left_branches(call.pipeline, call.platform, tables=tables)
    if not left:
        return
    names = ", ".join(f"{branch} of {table}" for table, own in left.items() for branch in own)
    call.output.note(f"the gate is open; dropping {names}")
    from tidegate.cli.spark import spark

    with spark(call, "abandon") as session:
        drop_left_branches(session, call.pipeline, call.platform, tables=list(left))
