"""``status`` and ``lag``: where a pipeline stands."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from tidegate.cli import render
from tidegate.cli.fail_on import FailOn, named
from tidegate.cli.invocation import invocation
from tidegate.cli.live import live
from tidegate.cli.options import AsJson, Debug, PipelineFile, PlatformFile
from tidegate.cli.stopping import StopSignals

if TYPE_CHECKING:
    from tidegate.control.records import PipelineStatus

WATCH_SECONDS = 2.0
"""One look at metadata and one query of the source."""

Offline = Annotated[bool, typer.Option("--offline", help="Only the lake; do not ask the source.")]


def register(app: typer.Typer) -> None:
    """Add the verbs to the command tree."""
    for verb in (status, lag):
        app.command()(verb)


def status(
    pipeline: PipelineFile,
    platform_config: PlatformFile = None,
    offline: Offline = False,
    watch: Annotated[
        bool, typer.Option("--watch", "-w", help="Again and again, until SIGINT or SIGTERM.")
    ] = False,
    every: Annotated[
        float, typer.Option("--every", min=0.2, metavar="SECONDS", help="With --watch: how often.")
    ] = WATCH_SECONDS,
    fail_on: FailOn = None,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Gates, positions, lag, snapshots and last runs of every table.

    --watch is a live view on a terminal; elsewhere a status follows another, with --json one
    document a line.
    """
    with invocation(
        "status", pipeline, platform_config, as_json, debug, source=not offline
    ) as call:
        from tidegate.control.status import status as pipeline_status

        troubles = named(fail_on)

        def look() -> PipelineStatus:
            return pipeline_status(call.pipeline, call.platform, ask_source=not offline)

        if watch:
            with StopSignals() as stopping:
                live(call.output, look, render.status, every, stopping.event)
            return
        call.finish(look(), render.status, fail_on=troubles)


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
