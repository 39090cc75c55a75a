"""Arguments and options that several commands share, each declared once."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

PipelineFile = Annotated[
    Path, typer.Argument(metavar="PIPELINE.YAML", help="The pipeline's file.", show_default=False)
]
PlatformFile = Annotated[
    Path | None,
    typer.Option(
        "--platform-config",
        metavar="FILE",
        help="The platform's file; otherwise TIDEGATE_PLATFORM_FILE, ./platform.yaml,"
        " ./include/config/platform.yaml or the defaults.",
        show_default=False,
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON document, nothing else.")]
Debug = Annotated[bool, typer.Option("--debug", help="Show where an error came from.")]
Tables = Annotated[
    list[str] | None,
    typer.Option(
        "--table",
        "-t",
        metavar="SCHEMA.TABLE",
        help="Only this table; may be repeated. By default all tables of the pipeline.",
        show_default=False,
    ),
]
OneTable = Annotated[
    str | None,
    typer.Option(
        "--table",
        "-t",
        metavar="SCHEMA.TABLE",
        help="The source table. Not needed where the snapshot, or there being one, says which.",
        show_default=False,
    ),
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Say what would be done, do nothing.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]
Reason = Annotated[str, typer.Option("--reason", help="Why; it stands in the gate's timeline.")]
