"""``create``, ``list``, ``describe``, ``delete``, ``start``, ``stop``: pipelines as a whole."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tidegate.cli import render, render_pipelines
from tidegate.cli.invocation import Invocation, invocation, speaking
from tidegate.cli.options import AsJson, Debug, DryRun, PipelineFile, PlatformFile, Yes

Why = Annotated[str, typer.Option("--reason", help="Why; it stands in the audit trail.")]


def register(app: typer.Typer) -> None:
    """Add the verbs to the command tree."""
    app.command()(create)
    app.command("list")(list_pipelines)
    for verb in (describe, start, stop, delete):
        app.command()(verb)


def create(
    pipeline: Annotated[
        Path, typer.Argument(metavar="FILE", help="The file to take.", show_default=False)
    ],
    platform_config: PlatformFile = None,
    offline: Annotated[
        bool, typer.Option("--offline", help="Only the files; do not ask the source.")
    ] = False,
    dry_run: DryRun = False,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Validate a file and put it into the pipelines folder: it has a name then, and Dags."""
    with invocation(
        "create", pipeline, platform_config, as_json, debug, source=not offline
    ) as call:
        from tidegate.control.pipelines import create as create_pipeline

        result = create_pipeline(
            call.file,
            call.platform,
            offline=offline,
            dry_run=dry_run,
            with_secrets=lambda _: call.pipeline,  # its connection was asked already
        )
        call.finish(result, render_pipelines.created)


def list_pipelines(
    platform_config: PlatformFile = None, as_json: AsJson = False, debug: Debug = False
) -> None:
    """Every pipeline of the folder: running, stopped or broken, deployed or not."""
    with speaking("list", as_json, debug) as output:
        from tidegate.config.folder import pipelines_dir
        from tidegate.config.loader import load_platform
        from tidegate.control.pipelines import list_pipelines as read

        found = read(load_platform(platform_config))
        output.finish({"folder": str(pipelines_dir()), "pipelines": found}, render_pipelines.listed)


def describe(
    pipeline: PipelineFile,
    platform_config: PlatformFile = None,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """What the file says and where the pipeline stands. Asks the lake only."""
    with invocation("describe", pipeline, platform_config, as_json, debug, source=False) as call:
        from tidegate.control.pipelines import describe as read

        call.finish(read(call.pipeline, call.platform, call.file), render_pipelines.described)


def start(
    pipeline: PipelineFile,
    platform_config: PlatformFile = None,
    reason: Why = "started by hand",
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Let a stopped pipeline go on from where it stands."""
    with invocation("start", pipeline, platform_config, as_json, debug, source=False) as call:
        from tidegate.control import running

        result = running.start(call.pipeline, call.platform, reason=reason)
        call.finish(result, render_pipelines.running)


def stop(
    pipeline: PipelineFile,
    platform_config: PlatformFile = None,
    reason: Why = "stopped by hand",
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Let nothing of the pipeline begin any more, here and in Airflow, until `start`.

    What is at work finishes. The replication slot stays: the source keeps its WAL meanwhile, and
    `tidegate guard` goes on warning of it.
    """
    with invocation("stop", pipeline, platform_config, as_json, debug, source=False) as call:
        from tidegate.control import running

        result = running.stop(call.pipeline, call.platform, reason=reason)
        call.finish(result, render_pipelines.running)


def delete(
    pipeline: PipelineFile,
    platform_config: PlatformFile = None,
    undeploy: Annotated[
        bool,
        typer.Option("--undeploy", help="Also remove slot, publication, change log, control."),
    ] = False,
    purge: Annotated[
        bool, typer.Option("--purge", help="With --undeploy: also drop the lake tables.")
    ] = False,
    dry_run: DryRun = False,
    yes: Yes = False,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Take a pipeline's file out of the folder. Refused while it is deployed, unless --undeploy."""
    with invocation("delete", pipeline, platform_config, as_json, debug, source=undeploy) as call:
        from tidegate.control.pipelines import delete as delete_pipeline

        if not dry_run:
            call.confirm(_question(call, undeploy, purge), yes=yes)
        if undeploy:
            from tidegate.jobs.deploy import undeploy as undeploy_pipeline

            gone = undeploy_pipeline(call.pipeline, call.platform, purge=purge, dry_run=dry_run)
            if dry_run:
                call.finish(gone, render.facts)
                return
            call.output.note(f"undeployed: {', '.join(gone.actions) or 'nothing was there'}")
        result = delete_pipeline(call.pipeline, call.platform, call.file, dry_run=dry_run)
        call.finish(result, render.facts)


def _question(call: Invocation, undeploy: bool, purge: bool) -> str:
    also = ", its slot, publication, change log and control tables" if undeploy else ""
    also += " and all its lake tables" if undeploy and purge else ""
    return f"Delete {call.file}{also}?"
