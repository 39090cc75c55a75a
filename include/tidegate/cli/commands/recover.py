"""``recover``: history was lost; say which tables, then make them whole again."""

from __future__ import annotations

import typer

from tidegate.cli import render
from tidegate.cli.invocation import invocation, run_id
from tidegate.cli.options import AsJson, Debug, DryRun, PipelineFile, PlatformFile
from tidegate.cli.progress import ProgressView


def register(app: typer.Typer) -> None:
    """Add the verb to the command tree."""
    app.command()(recover)


def recover(
    pipeline: PipelineFile,
    platform_config: PlatformFile = None,
    dry_run: DryRun = False,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """After a lost slot or a new epoch: sweep the tables that lost changes, and only those.

    A lost slot is made anew first. Without a loss nothing is done, and Spark is not started.
    """
    with invocation("recover", pipeline, platform_config, as_json, debug) as call:
        from tidegate.jobs.recover import find_loss, planned

        loss = find_loss(call.pipeline, call.platform)
        if dry_run or not loss.any:
            call.finish(planned(loss), render.tables)
            return
        call.refuse_stopped()
        call.output.note(f"lost: {loss.log or 'the tables stand in an older epoch'}")
        from tidegate.cli.spark import spark

        with ProgressView(call.output) as progress, spark(call, "recover") as session:
            from tidegate.jobs.recover import run_recover

            result = run_recover(
                session, call.pipeline, call.platform, run=run_id("recover"), progress=progress
            )
        call.finish(result, render.tables, failed=result.failed)
