"""``capture``, ``apply``, ``sweep``, ``maintain``, ``verify``: one step of a pipeline, by hand."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Annotated

import typer

from tidegate.cli import proofs, render
from tidegate.cli.fail_on import FailOn, named
from tidegate.cli.invocation import actor, invocation, run_id
from tidegate.cli.options import (
    AsJson,
    Debug,
    DryRun,
    PipelineFile,
    PlatformFile,
    Reason,
    Tables,
    Verbose,
)
from tidegate.cli.progress import ProgressView


def register(app: typer.Typer) -> None:
    """Add the verbs to the command tree."""
    for verb in (capture, apply, sweep, maintain, verify):
        app.command()(verb)
    app.command("snapshot", help="The same as `sweep`: re-read tables in full.")(sweep)


def capture(
    pipeline: PipelineFile,
    platform_config: PlatformFile = None,
    follow: Annotated[
        bool, typer.Option("--follow", help="Go on until SIGINT or SIGTERM.")
    ] = False,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Read the source's log into the change log, up to now. Needs no Spark.

    With --follow, /healthz and /readyz are served on health_port meanwhile.
    """
    with invocation("capture", pipeline, platform_config, as_json, debug) as call:
        from tidegate.cli.health_port import health_port
        from tidegate.cli.stopping import StopSignals
        from tidegate.jobs.capture import run_capture

        with (
            StopSignals() as stopping,
            health_port(call, stopping.event) if follow else nullcontext(),
            ProgressView(call.output) as progress,
        ):
            result = run_capture(
                call.pipeline,
                call.platform,
                until=None if follow else "now",
                stop=stopping.event,
                progress=progress,
            )
        call.finish(result, render.facts)


def apply(
    pipeline: PipelineFile,
    platform_config: PlatformFile = None,
    table: Tables = None,
    fail_on: FailOn = None,
    verbose: Verbose = False,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Merge captured changes into the lake tables whose gate is open."""
    with invocation("apply", pipeline, platform_config, as_json, debug) as call:
        troubles = named(fail_on)
        tables = call.tables(table)
        call.refuse_stopped()
        from tidegate.cli.spark import spark

        with ProgressView(call.output) as progress, spark(call, "apply") as session:
            from tidegate.jobs.apply import run_apply

            result = run_apply(
                session,
                call.pipeline,
                call.platform,
                tables=tables,
                run=run_id("apply"),
                progress=progress,
            )
        call.finish(
            result, render.work(verbose), failed=render.any_failed(result), fail_on=troubles
        )


def sweep(
    pipeline: PipelineFile,
    platform_config: PlatformFile = None,
    table: Tables = None,
    where: Annotated[
        str | None,
        typer.Option(
            "--where",
            metavar="KEY RANGE",
            help="Only these keys, as `id >= 100 and id < 200`; one table with one key column.",
            show_default=False,
        ),
    ] = None,
    fresh: Annotated[
        bool, typer.Option("--fresh", help="Do not resume what a killed sweep has left.")
    ] = False,
    dry_run: DryRun = False,
    reason: Reason = "swept by hand",
    fail_on: FailOn = None,
    verbose: Verbose = False,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Re-read tables in full into a branch, audit it, publish it."""
    with invocation("sweep", pipeline, platform_config, as_json, debug) as call:
        troubles = named(fail_on)
        tables = call.tables(table) or call.pipeline.source.tables
        call.refuse_stopped(unless=dry_run)
        from tidegate.cli.spark import spark

        with ProgressView(call.output) as progress, spark(call, "sweep") as session:
            from tidegate.jobs.sweep import run_sweep

            result = run_sweep(
                session,
                call.pipeline,
                call.platform,
                tables=tables,
                where=where,
                run=run_id("sweep"),
                dry_run=dry_run,
                resume=not fresh,
                actor=actor(),
                reason=reason,
                progress=progress,
            )
        call.finish(
            result, render.work(verbose), failed=render.any_failed(result), fail_on=troubles
        )


def maintain(
    pipeline: PipelineFile,
    platform_config: PlatformFile = None,
    table: Tables = None,
    force: Annotated[
        bool, typer.Option("--force", help="Whether due or not; ages are still respected.")
    ] = False,
    dry_run: DryRun = False,
    verbose: Verbose = False,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Compact, rewrite manifests, expire snapshots, remove orphan files: what is due."""
    with invocation("maintain", pipeline, platform_config, as_json, debug, source=False) as call:
        tables = call.tables(table)
        from tidegate.cli.spark import spark

        with ProgressView(call.output) as progress, spark(call, "maintain") as session:
            from tidegate.jobs.maintain import run_maintain

            result = run_maintain(
                session,
                call.pipeline,
                call.platform,
                tables=tables,
                force=force,
                dry_run=dry_run,
                progress=progress,
            )
        call.finish(result, render.work(verbose), failed=render.any_failed(result))


def verify(
    pipeline: PipelineFile,
    platform_config: PlatformFile = None,
    table: Tables = None,
    sample: Annotated[
        str | None,
        typer.Option(
            "--sample",
            metavar="PERCENT|changed",
            help="Only a share of the keys, as `5%`: those whose proof is the oldest, so that 20"
            " runs of 5% cover everything. `changed`: only what changed since every row was found"
            " equal. By default the pipeline's verify.sample.",
            show_default=False,
        ),
    ] = None,
    repair: Annotated[
        bool,
        typer.Option("--repair", help="Read the keys that differ again, through a branch."),
    ] = False,
    dry_run: DryRun = False,
    fail_on: FailOn = None,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Compare source and lake, row by row, at one stated position; mend what differs if asked to.

    A comparison changes nothing but brings the tables to that position; --dry-run says what
    --repair would read again.
    """
    with invocation("verify", pipeline, platform_config, as_json, debug) as call:
        troubles = named(fail_on)
        tables = call.tables(table)
        call.refuse_stopped()
        from tidegate.cli.spark import spark
        from tidegate.config.verify import extent

        wanted = extent(sample) if sample is not None else call.pipeline.verify.extent
        with ProgressView(call.output) as progress, spark(call, "verify") as session:
            from tidegate.jobs.verify import run_verify

            result = run_verify(
                session,
                call.pipeline,
                call.platform,
                tables=tables,
                extent=wanted,
                repair=repair,
                dry_run=dry_run,
                progress=progress,
            )
        call.finish(result, proofs.verdicts, failed=not result.equal, fail_on=troubles)
