"""``dead-letters list | show | redrive | discard``: changes that could not be applied."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from tidegate.cli import render_letters
from tidegate.cli.invocation import actor, invocation, run_id
from tidegate.cli.options import AsJson, Debug, DryRun, PipelineFile, PlatformFile, Tables, Yes
from tidegate.cli.progress import ProgressView

if TYPE_CHECKING:
    from tidegate.lake.dead_letter_choice import Choice

app = typer.Typer(
    help="Changes that could not be applied, and those that wait behind them.",
    no_args_is_help=True,
)

Events = Annotated[
    list[str] | None,
    typer.Option("--event-id", metavar="ID", help="Only this letter; may be repeated."),
]
Keys = Annotated[
    list[str] | None,
    typer.Option(
        "--key", help="Only rows with this key (several columns: a JSON list); may be repeated."
    ),
]
Codes = Annotated[
    list[str] | None,
    typer.Option("--code", help="Only letters with this error code; may be repeated."),
]
Since = Annotated[
    str | None, typer.Option("--since", metavar="TIME", help="Only those first seen since (ISO).")
]
Before = Annotated[
    str | None, typer.Option("--before", metavar="TIME", help="Only those first seen before (ISO).")
]


def _choice(event_id: Events, key: Keys, code: Codes, since: Since, before: Before) -> Choice:
    from tidegate.lake.dead_letter_choice import choose

    return choose(event_id or (), key or (), code or (), since, before)


@app.command("list")
def list_letters(
    pipeline: PipelineFile,
    platform_config: PlatformFile = None,
    table: Tables = None,
    event_id: Events = None,
    key: Keys = None,
    code: Codes = None,
    since: Since = None,
    before: Before = None,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """What waits: which rows, since when, why. Values are shown by `show` only."""
    with invocation(
        "dead-letters list", pipeline, platform_config, as_json, debug, source=False
    ) as call:
        from tidegate.control import dead_letters

        choice = _choice(event_id, key, code, since, before)
        found = dead_letters.find(call.pipeline, call.platform, call.tables(table), choice)
        call.finish(found, render_letters.letters)


@app.command()
def show(
    pipeline: PipelineFile,
    event_id: Annotated[str, typer.Option("--event-id", metavar="ID", help="As `list` prints it.")],
    platform_config: PlatformFile = None,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """One letter with the change it holds. Prints the row's values."""
    with invocation(
        "dead-letters show", pipeline, platform_config, as_json, debug, source=False
    ) as call:
        from tidegate.control import dead_letters

        found = dead_letters.show(call.pipeline, call.platform, event_id)
        call.finish(found, render_letters.letter)


@app.command()
def redrive(
    pipeline: PipelineFile,
    platform_config: PlatformFile = None,
    table: Tables = None,
    event_id: Events = None,
    key: Keys = None,
    code: Codes = None,
    since: Since = None,
    before: Before = None,
    dry_run: DryRun = False,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Apply letters once more, in order; all letters of a row go together."""
    with invocation(
        "dead-letters redrive", pipeline, platform_config, as_json, debug, source=False
    ) as call:
        tables = call.tables(table)
        call.refuse_stopped(unless=dry_run)
        from tidegate.cli import render
        from tidegate.cli.spark import spark

        choice = _choice(event_id, key, code, since, before)
        with ProgressView(call.output) as progress, spark(call, "redrive") as session:
            from tidegate.jobs.redrive import run_redrive

            result = run_redrive(
                session,
                call.pipeline,
                call.platform,
                tables=tables,
                choice=choice,
                run=run_id("redrive"),
                dry_run=dry_run,
                progress=progress,
            )
        call.finish(result, render.tables, failed=result.failed)


@app.command()
def discard(
    pipeline: PipelineFile,
    platform_config: PlatformFile = None,
    table: Tables = None,
    event_id: Events = None,
    key: Keys = None,
    code: Codes = None,
    since: Since = None,
    before: Before = None,
    dry_run: DryRun = False,
    yes: Yes = False,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Decide that letters are never applied. What waits behind them is applied by a redrive."""
    with invocation(
        "dead-letters discard", pipeline, platform_config, as_json, debug, source=False
    ) as call:
        tables = call.tables(table)
        from tidegate.control import dead_letters

        choice = _choice(event_id, key, code, since, before)
        found = dead_letters.find(call.pipeline, call.platform, tables, choice)
        if found.letters and not dry_run:
            count = len(found.letters)
            call.confirm(
                f"{count} change{'' if count == 1 else 's'} will never reach the lake. Go on?",
                yes=yes,
            )
        result = dead_letters.discard(
            call.pipeline, call.platform, tables, choice, actor=actor(), dry_run=dry_run
        )
        call.finish(result, render_letters.letters)
