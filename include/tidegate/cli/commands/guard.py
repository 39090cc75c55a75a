"""``guard``: what the pipeline holds on its source, and whether that is too much."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from tidegate.cli import render_guard
from tidegate.cli.invocation import Invocation, invocation
from tidegate.cli.options import AsJson, Debug, PipelineFile, PlatformFile

if TYPE_CHECKING:
    from tidegate.transports.guard import Guard


def register(app: typer.Typer) -> None:
    """Add the verb to the command tree."""
    app.command()(guard)


def guard(
    pipeline: PipelineFile,
    platform_config: PlatformFile = None,
    act: Annotated[
        bool,
        typer.Option("--act", help="Where capturing helps against a finding: capture now."),
    ] = False,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """WAL retained, hours left, xmin, capture and apply ages: ok, warn or act, with a next step.

    Ends with 1 if someone must act. --act releases WAL by capturing; it drops neither rows nor the
    slot.
    """
    with invocation("guard", pipeline, platform_config, as_json, debug) as call:
        found, current = _read(call)
        if act and found.releasable and current is not None:
            call.output.note("capturing, to release WAL")
            from tidegate.envelope.position import Position
            from tidegate.jobs.capture import run_capture

            # To a named place: it is noted, and WAL released, even if no change of ours lies there.
            run_capture(call.pipeline, call.platform, until=Position.parse(current))
            found, _ = _read(call)
        call.finish(found, render_guard.whole, failed=found.verdict == "act")


def _read(call: Invocation) -> tuple[Guard, str | None]:
    """The judgement, and where the source's log stands."""
    from tidegate.control.status import status

    seen = status(call.pipeline, call.platform)
    assert seen.guard is not None and seen.source is not None  # the source was asked
    return seen.guard, seen.source.current
