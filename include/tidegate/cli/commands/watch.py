"""``status`` and ``lag``: where a pipeline stands."""

from __future__ import annotations

from typing import Annotated

import typer

from tidegate.cli import render
from tidegate.cli.invocation import invocation
from tidegate.cli.options import AsJson, Debug, PipelineFile, PlatformFile

Offline = Annotated[bool, typer.Option("--offline", help="Only the lake; do not ask the source.")]


def register(app: typer.Typer) -> None:
    """Add the verbs to the command tree."""
    for verb in (status, lag):
        app.command()(verb)


def status(
    pipeline: PipelineFile,
    platform_config: PlatformFile = None,
    offline: Offline = False,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Gates, positions, lag, snapshots and last runs of every table."""
    with invocation(
        "status", pipeline, platform_config, as_json, debug, source=not offline
    ) as call:
        from tidegate.control.status import status as pipeline_status

        result = pipeline_status(call.pipeline, call.platform, ask_source=not offline)
        call.finish(result, render.status)


def lag(
    pipeline: PipelineFile,
    platform_config: PlatformFile = None,
    offline: Offline = False,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """How far the change log is behind the source, and each table behind the change log."""
    with invocation("lag", pipeline, platform_config, as_json, debug, source=not offline) as call:
        from tidegate.control.status import lag as pipeline_lag

        result = pipeline_lag(call.pipeline, call.platform, ask_source=not offline)
        call.finish(result, render.lag)
