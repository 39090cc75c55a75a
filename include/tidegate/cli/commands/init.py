"""``init``: a pipeline's file, from questions or from options."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tidegate.cli import figures
from tidegate.cli.invocation import speaking
from tidegate.cli.options import AsJson, Debug, PlatformFile
from tidegate.errors import ConfigError

if TYPE_CHECKING:
    from rich.console import Console

    from tidegate.cli.output import Output
    from tidegate.config.platform import PlatformConfig
    from tidegate.control.drafts import Draft, Offer

DEFAULT_HOST, DEFAULT_PORT, DEFAULT_USER = "localhost", 5432, "cdc_user"
DEFAULT_VARIABLE = "CDC_SOURCE_PASSWORD"


def register(app: typer.Typer) -> None:
    """Add the verb to the command tree."""
    app.command()(init)


def init(
    file: Annotated[
        Path | None,
        typer.Argument(
            metavar="[FILE]",
            help="Where to write; by default <pipeline-id>.yaml.",
            show_default=False,
        ),
    ] = None,
    platform_config: PlatformFile = None,
    pipeline_id: Annotated[
        str | None, typer.Option("--pipeline-id", metavar="NAME", help="The pipeline's name.")
    ] = None,
    host: Annotated[str | None, typer.Option("--host", help="Database host.")] = None,
    port: Annotated[int | None, typer.Option("--port", help="Database port.")] = None,
    database: Annotated[str | None, typer.Option("--database", help="Database name.")] = None,
    username: Annotated[str | None, typer.Option("--username", help="Database user.")] = None,
    password_variable: Annotated[
        str | None,
        typer.Option(
            "--password-variable",
            metavar="VAR",
            help="Environment variable that holds the password; the file names it, never the"
            " password.",
        ),
    ] = None,
    table: Annotated[
        list[str] | None,
        typer.Option("--table", "-t", metavar="SCHEMA.TABLE", help="Take this; repeatable."),
    ] = None,
    all_tables: Annotated[
        bool, typer.Option("--all-tables", help="Take every table that has a primary key.")
    ] = False,
    offline: Annotated[
        bool, typer.Option("--offline", help="Do not connect: no test, no list of tables.")
    ] = False,
    force: Annotated[bool, typer.Option("--force", help="Write over a file.")] = False,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Write a commented pipeline.yaml: asks for what no option says, tests the connection, lists
    tables."""
    with speaking("init", as_json, debug) as output:
        from tidegate.config.loader import load_platform
        from tidegate.control.drafts import Draft, text

        ask = _Asking(output)
        name = ask.text("Name of the pipeline", pipeline_id, None)
        draft = Draft(
            pipeline_id=name,
            host=ask.text("Database host", host, DEFAULT_HOST),
            port=int(ask.text("Port", None if port is None else str(port), str(DEFAULT_PORT))),
            database=ask.text("Database", database, None),
            username=ask.text("User", username, DEFAULT_USER),
            password_variable=ask.text(
                "Variable that holds the password", password_variable, DEFAULT_VARIABLE
            ),
            tables=tuple(table or ()),
        )
        target = file or Path(f"{name}.yaml")
        _refuse_existing(target, force)
        offer = None if offline else _connect(ask, draft, load_platform(platform_config))
        draft = _choose(ask, draft, offer, all_tables)
        target.write_text(text(draft, offer), encoding="utf-8")
        result = {"file": str(target), "pipeline_id": name, "tables": draft.tables}
        output.finish(result | {"system": offer.system if offer else None}, _render)


class _Asking:
    """Questions on a terminal; elsewhere an option must have said it."""

    def __init__(self, output: Output) -> None:
        self.output = output
        self.people = not output.as_json and output.err.is_terminal and os.isatty(0)

    def text(self, question: str, given: str | None, default: str | None) -> str:
        if given is not None:
            return given
        if self.people:
            return str(typer.prompt(question, default=default, err=True))
        if default is not None:
            return default
        option = {"Name of the pipeline": "--pipeline-id", "Database": "--database"}[question]
        raise ConfigError("init.not_asked", f"{question}: nobody was asked", hint=f"say {option}")

    def secret(self, variable: str) -> str:
        known = os.environ.get(variable)
        if known is not None:
            return known
        if self.people:
            return str(typer.prompt(f"Password ({variable} is not set)", hide_input=True, err=True))
        raise ConfigError(
            "init.no_password",
            f"the environment variable {variable} is not set",
            hint="set it, name another with --password-variable, or say --offline",
        )


def _connect(ask: _Asking, draft: Draft, platform: PlatformConfig) -> Offer:
    from tidegate.control.drafts import look

    offer = look(draft, ask.secret(draft.password_variable), platform)
    ask.output.note(f"connected to {offer.system}")
    return offer


def _choose(ask: _Asking, draft: Draft, offer: Offer | None, every: bool) -> Draft:
    from dataclasses import replace

    from tidegate.names import TableId

    if offer is None:
        return draft
    known = {table.table: table for table in offer.tables}
    wanted = tuple(str(TableId.parse(name)) for name in draft.tables)
    if every:
        wanted = tuple(name for name, table in known.items() if table.keyed)
    if not wanted and ask.people and known:
        _list(ask.output.err, offer)
        answer = typer.prompt("Tables (names or numbers, comma-separated; all)", err=True)
        wanted = _answered(str(answer), [*known], [n for n, t in known.items() if t.keyed])
    unknown = [name for name in wanted if name not in known]
    if unknown:
        raise ConfigError(
            "init.unknown_table",
            f"{draft.username} cannot read {', '.join(unknown)} in {draft.database}",
            hint=f"there are {', '.join(list(known)[:20]) or 'no tables'}; spell it as the source"
            " does, or GRANT SELECT",
        )
    return replace(draft, tables=wanted)


def _answered(answer: str, names: list[str], keyed: list[str]) -> tuple[str, ...]:
    from tidegate.names import TableId

    if answer.strip() == "all":
        return tuple(keyed)
    parts = [part.strip() for part in answer.split(",") if part.strip()]
    return tuple(
        names[int(part) - 1]
        if part.isdigit() and 0 < int(part) <= len(names)
        else str(TableId.parse(part))
        for part in parts
    )


def _list(console: Console, offer: Offer) -> None:
    grid = figures.grid("", "table", "rows (about)", "size", "")
    for number, table in enumerate(offer.tables, start=1):
        note = "" if table.keyed else "no primary key"
        size = figures.human_bytes(table.bytes)
        grid.add_row(str(number), table.table, figures.cell(table.rows_about), size, note)
    console.print(grid)


def _refuse_existing(target: Path, force: bool) -> None:
    if target.exists() and not force:
        raise ConfigError("init.exists", f"{target} exists", hint="name another file, or --force")
    if not target.parent.is_dir():
        raise ConfigError(
            "init.no_folder", f"there is no folder {target.parent}", hint="make it first"
        )


def _render(console: Console, result: dict[str, object]) -> None:
    tables = result["tables"]
    count = len(tables) if isinstance(tables, tuple) else 0
    console.print(f"written  {result['file']}  ({count} tables)", markup=False)
    console.print(f"next     tidegate validate {result['file']}", markup=False, style="dim")
