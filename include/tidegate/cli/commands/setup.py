"""``validate``, ``deploy``, ``undeploy``: is it right, make it, take it away."""

from __future__ import annotations

from typing import Annotated

import typer

from tidegate.cli import render, render_pipelines
from tidegate.cli.invocation import invocation
from tidegate.cli.options import AsJson, Debug, DryRun, PipelineFile, PlatformFile, Yes
from tidegate.errors import ExitCode


def register(app: typer.Typer) -> None:
    """Add the verbs to the command tree."""
    for verb in (validate, deploy, undeploy):
        app.command()(verb)


def validate(
    pipeline: PipelineFile,
    platform_config: PlatformFile = None,
    offline: Annotated[
        bool, typer.Option("--offline", help="Only the files; do not ask the source.")
    ] = False,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Check the files and, unless --offline, the source; every problem at once, with its fix."""
    with invocation(
        "validate", pipeline, platform_config, as_json, debug, source=not offline
    ) as call:
        from tidegate.control.validation import validate_pipeline

        report = validate_pipeline(call.pipeline, call.platform, offline=offline)
        call.output.finish(report, render.validation, ok=report.ok)
        if not report.ok:
            raise typer.Exit(int(ExitCode.VALIDATION))


def deploy(
    pipeline: PipelineFile,
    platform_config: PlatformFile = None,
    new_epoch: Annotated[
        bool,
        typer.Option(
            "--new-epoch",
            help="The slot is lost for good: begin a new log; every table then needs a sweep.",
        ),
    ] = False,
    dry_run: DryRun = False,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Create publication, slot and change log; again after adding or removing tables.

    A table that the source is not ready for is held with its reasons, the others are deployed; the
    exit code is 2 then.
    """
    with invocation("deploy", pipeline, platform_config, as_json, debug) as call:
        from tidegate.jobs.deploy import deploy as deploy_pipeline

        result = deploy_pipeline(call.pipeline, call.platform, dry_run=dry_run, new_epoch=new_epoch)
        count = len(call.pipeline.source.tables)
        call.output.finish(result, render_pipelines.deployed(count), ok=not result.held)
        if result.held:
            raise typer.Exit(int(ExitCode.VALIDATION))


def undeploy(
    pipeline: PipelineFile,
    platform_config: PlatformFile = None,
    purge: Annotated[
        bool, typer.Option("--purge", help="Also drop the lake tables and their files.")
    ] = False,
    dry_run: DryRun = False,
    yes: Yes = False,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Remove what deploy made. Lake tables stay, unless --purge."""
    with invocation("undeploy", pipeline, platform_config, as_json, debug) as call:
        if not dry_run:
            also = " and all its lake tables" if purge else ""
            what = "slot, publication, change log and control tables"
            question = f"Remove {what} of {call.pipeline.pipeline_id}"
            call.confirm(f"{question}{also}?", yes=yes)
        from tidegate.jobs.deploy import undeploy as undeploy_pipeline

        result = undeploy_pipeline(call.pipeline, call.platform, purge=purge, dry_run=dry_run)
        call.finish(result, render.facts)
