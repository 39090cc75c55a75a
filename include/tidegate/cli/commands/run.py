"""``run``: the whole pipeline in one process, without Airflow."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Annotated

import typer

from tidegate.cli import render
from tidegate.cli.fail_on import FailOn, named
from tidegate.cli.invocation import invocation
from tidegate.cli.options import AsJson, Debug, PipelineFile, PlatformFile, Verbose
from tidegate.cli.progress import ProgressView
from tidegate.errors import ConfigError

DEFAULT_INTERVAL_SECONDS = 30.0
"""Between rounds: fresh enough to watch, long enough that small commits do not pile up."""


def register(app: typer.Typer) -> None:
    """Add the verb to the command tree."""
    app.command()(run)


def run(
    pipeline: PipelineFile,
    platform_config: PlatformFile = None,
    once: Annotated[
        bool, typer.Option("--once", help="Take everything up to now, then end.")
    ] = False,
    interval: Annotated[
        float | None,
        typer.Option(
            "--interval",
            min=0.0,
            metavar="SECONDS",
            help=f"Pause between rounds (default {DEFAULT_INTERVAL_SECONDS:g}).",
            show_default=False,
        ),
    ] = None,
    fail_on: FailOn = None,
    verbose: Verbose = False,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Capture, first sweeps, apply and due upkeep in one Spark session, until stopped.

    SIGINT or SIGTERM ends it cleanly after the step in hand; a second one abandons that step, which
    is safe too: the next run goes on from what is durable. Meanwhile /healthz and /readyz are
    served on health_port (not with --once).
    """
    with invocation("run", pipeline, platform_config, as_json, debug) as call:
        troubles = named(fail_on)
        if once and interval is not None:
            raise ConfigError(
                "cli.once_or_interval",
                "--once and --interval exclude each other",
                hint="leave one out; without both, rounds follow every"
                f" {DEFAULT_INTERVAL_SECONDS:g} s",
            )
        call.refuse_stopped(unless=not once)  # a follower waits for the start
        from tidegate.cli.health_port import health_port
        from tidegate.cli.spark import spark
        from tidegate.cli.stopping import StopSignals
        from tidegate.jobs.run import Pulse, run_pipeline

        pulse = Pulse()
        pause = DEFAULT_INTERVAL_SECONDS if interval is None else interval
        with (
            StopSignals() as stopping,
            nullcontext() if once else health_port(call, stopping.event, lambda: pulse.problem),
            ProgressView(call.output) as progress,
            spark(call, "run") as session,
        ):
            stopping.arm()
            result = run_pipeline(
                session,
                call.pipeline,
                call.platform,
                interval=None if once else pause,
                stop=stopping.event,
                progress=progress,
                pulse=pulse,
            )
        call.finish(result, render.run(verbose), failed=result.failed, fail_on=troubles)
