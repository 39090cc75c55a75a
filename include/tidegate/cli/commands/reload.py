"""``reload``: the rows of a time interval again."""

from __future__ import annotations

from typing import Annotated

import typer

from tidegate.cli import proofs
from tidegate.cli.invocation import invocation
from tidegate.cli.options import AsJson, Debug, DryRun, PipelineFile, PlatformFile, Tables
from tidegate.cli.progress import ProgressView


def register(app: typer.Typer) -> None:
    """Add the verb to the command tree."""
    app.command()(reload)


def reload(
    pipeline: PipelineFile,
    start: Annotated[
        str,
        typer.Option("--from", metavar="TIME", help="First moment; UTC without an offset."),
    ],
    end: Annotated[
        str, typer.Option("--to", metavar="TIME", help="First moment that is no longer part of it.")
    ],
    platform_config: PlatformFile = None,
    table: Tables = None,
    dry_run: DryRun = False,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Read the rows of a time interval again, by key, and mend those that differ.

    Rows belong to the interval by the table's reload.time_column, at the source or in the lake.
    """
    with invocation("reload", pipeline, platform_config, as_json, debug) as call:
        tables = call.tables(table)
        call.refuse_stopped()
        from tidegate.cli.spark import spark
        from tidegate.jobs.moments import moment

        first, after = moment(start), moment(end)
        with ProgressView(call.output) as progress, spark(call, "reload") as session:
            from tidegate.jobs.reload import run_reload

            result = run_reload(
                session,
                call.pipeline,
                call.platform,
                start=first,
                end=after,
                tables=tables,
                dry_run=dry_run,
                progress=progress,
            )
        call.finish(result, proofs.verdicts, failed=not result.equal)
