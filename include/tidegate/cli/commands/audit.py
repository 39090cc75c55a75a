"""``audit``: who did what, when, through which surface."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from tidegate.cli import figures
from tidegate.cli.invocation import invocation
from tidegate.cli.options import AsJson, Debug, PipelineFile, PlatformFile, Tables

if TYPE_CHECKING:
    from rich.console import Console

    from tidegate.control.audit import Audit

DEFAULT_LIMIT = 20  # control.audit.DEFAULT_LIMIT, which would import PyIceberg for --help
NAMED_TABLES = 3
"""More tables than this are counted, not named."""
OPEN_END = "begun"


def register(app: typer.Typer) -> None:
    """Add the verb to the command tree."""
    app.command()(audit)


def audit(
    pipeline: PipelineFile,
    platform_config: PlatformFile = None,
    table: Tables = None,
    limit: Annotated[int, typer.Option("--limit", min=1, help="Actions at most.")] = DEFAULT_LIMIT,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Who did what, when, through which surface: newest first.

    An action that is still `begun` is at work, or its process was killed.
    """
    with invocation("audit", pipeline, platform_config, as_json, debug, source=False) as call:
        from tidegate.control.audit import audit as read

        call.finish(read(call.pipeline, call.platform, table, limit), render)


def render(console: Console, result: Audit) -> None:
    """One row per action."""
    from rich.text import Text

    grid = figures.grid("at (UTC)", "action", "outcome", "by", "through", "tables", "details")
    for entry in result.entries:
        outcome = Text(entry.outcome, _STYLES.get(entry.outcome, ""))
        details = ", ".join(f"{name} {_words(told)}" for name, told in entry.details.items())
        grid.add_row(
            f"{entry.at:%Y-%m-%d %H:%M:%S}",
            entry.action,
            outcome,
            Text(entry.actor),
            entry.surface,
            Text(_tables(entry.tables)),
            Text(details),
        )
    console.print(grid)


_STYLES = {"done": "green", "failed": "bold red", OPEN_END: "yellow"}


def _tables(names: tuple[str, ...]) -> str:
    return ", ".join(names) if len(names) <= NAMED_TABLES else f"{len(names)} tables"


def _words(value: Any) -> str:
    if isinstance(value, dict):
        return "; ".join(f"{name}: {told}" for name, told in value.items())
    # Ids are no quantities: no thousands separators.
    number = isinstance(value, int) and not isinstance(value, bool)
    return str(value) if number else figures.cell(value)
