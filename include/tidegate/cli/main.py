"""``tidegate``: the command tree and its entry point.

Commands import what they need when they run: ``--help`` starts neither Spark nor PyIceberg.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from typing import NoReturn

import typer

from tidegate import __version__
from tidegate.cli import lean
from tidegate.cli.commands import (
    audit,
    completion,
    conformance,
    consume,
    dead_letters,
    gate,
    guard,
    health,
    init,
    lakehouse,
    offsets,
    pipelines,
    recover,
    reload,
    run,
    schema,
    serve,
    setup,
    watch,
    work,
)
from tidegate.errors import ConfigError, ExitCode

app = typer.Typer(
    name="tidegate",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
)
init.register(app)
pipelines.register(app)
setup.register(app)
work.register(app)
reload.register(app)
run.register(app)
watch.register(app)
audit.register(app)
guard.register(app)
recover.register(app)
schema.register(app)
health.register(app)
consume.register(app)
conformance.register(app)
serve.register(app)
completion.register(app)
app.add_typer(gate.app, name="gate")
app.add_typer(offsets.app, name="offsets")
app.add_typer(dead_letters.app, name="dead-letters")
app.add_typer(lakehouse.app, name="lakehouse")


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"tidegate {__version__}")
        raise typer.Exit()


@app.callback()
def _root(
    version: bool = typer.Option(
        False, "--version", callback=_version, is_eager=True, help="Print the version."
    ),
) -> None:
    """Change data capture into Apache Iceberg: exact, resumable, one gate per table.

    Exit codes: 0 done, 1 failed while running, 2 wrong configuration or arguments, 3 the machine
    lacks something.
    """


def main(argv: Sequence[str] | None = None) -> NoReturn:
    """The console script."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    if argv is None:
        lean.prepare(arguments)
    if completion.VARIABLE in os.environ:
        completion.prepare()
    try:
        status = app(arguments, prog_name="tidegate", standalone_mode=False)
    except typer.TyperException as error:
        _usage(error, as_json="--json" in arguments)
        status = ExitCode.VALIDATION
    except typer.Abort:
        status = ExitCode.RUNTIME
    sys.exit(int(status or 0))


def _usage(error: typer.TyperException, *, as_json: bool) -> None:
    message = error.format_message()
    if not message:
        return  # help was printed
    known = ConfigError("cli.usage", message, hint="`tidegate COMMAND --help` lists the arguments")
    if as_json:
        typer.echo(json.dumps({"ok": False, "command": None, "error": known.to_dict()}))
        return
    typer.echo(f"error  {known.message}  [{known.code}]\ndo     {known.hint}", err=True)
