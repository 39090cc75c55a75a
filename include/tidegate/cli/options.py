"""Arguments and options that several commands share, each declared once."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer


def known_pipelines(incomplete: str) -> Iterator[str]:
    """For shells that complete: names of the folder, and files."""
    from tidegate.config.folder import SUFFIXES, declared_id, pipeline_files, pipelines_dir

    folder = pipelines_dir()
    files = pipeline_files(folder) if folder.is_dir() else []
    names = sorted({declared_id(file) or file.stem for file in files})
    yield from (name for name in names if name.startswith(incomplete))
    typed = Path(incomplete)
    parent = typed if incomplete.endswith("/") else typed.parent
    for found in sorted(parent.iterdir()) if parent.is_dir() else ():
        text = f"{found}/" if found.is_dir() else str(found)
        if text.startswith(incomplete) and (found.is_dir() or found.suffix in SUFFIXES):
            yield text


_NAMED = "The pipeline's name in the pipelines folder, or the path of its file."
PipelineFile = Annotated[
    Path,
    typer.Argument(
        metavar="PIPELINE", help=_NAMED, show_default=False, autocompletion=known_pipelines
    ),
]
AnyPipeline = Annotated[
    Path | None,
    typer.Argument(
        metavar="[PIPELINE]", help=_NAMED, show_default=False, autocompletion=known_pipelines
    ),
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
Verbose = Annotated[
    bool, typer.Option("--verbose", "-v", help="Also positions, snapshots, branches.")
]
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
