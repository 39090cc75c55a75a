"""``consume``: changes as they stand in the change log."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable, Iterator
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tidegate.cli.invocation import Invocation, invocation
from tidegate.cli.options import AsJson, Debug, PipelineFile, PlatformFile, Tables
from tidegate.cli.stopping import StopSignals

if TYPE_CHECKING:
    from rich.console import Console

    from tidegate.control.consume import ChangeRecord
    from tidegate.envelope.change import Change

DEFAULT_LIMIT = 100
WIDEST = 60
"""Characters of a value that a table shows."""


class Form(StrEnum):
    TABLE = "table"
    JSON = "json"  # one object a line
    DEBEZIUM = "debezium"  # one envelope a line


def register(app: typer.Typer) -> None:
    """Add the verb to the command tree."""
    app.command()(consume)


def consume(
    pipeline: PipelineFile,
    platform_config: PlatformFile = None,
    table: Tables = None,
    op: Annotated[
        list[str] | None,
        typer.Option("--op", metavar="c|u|d|t|r|m", help="Only this operation; may be repeated."),
    ] = None,
    key: Annotated[
        str | None,
        typer.Option("--key", help="Only this key, old or new (several columns: a JSON list)."),
    ] = None,
    after: Annotated[
        str | None,
        typer.Option(
            "--from",
            metavar="PLACE",
            help="After this position or LSN, from the `beginning` (default) or from `now`"
            " (default with --follow).",
            show_default=False,
        ),
    ] = None,
    since: Annotated[
        str | None,
        typer.Option("--since", metavar="TIME", help="Only what was committed since (ISO, UTC)."),
    ] = None,
    limit: Annotated[
        int,
        typer.Option("--limit", min=0, help="Changes at most; 0: all. --follow has no limit."),
    ] = DEFAULT_LIMIT,
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Wait for more, until SIGINT or SIGTERM.")
    ] = False,
    form: Annotated[
        Form, typer.Option("--format", help="A table, JSON lines, or Debezium's envelopes.")
    ] = Form.TABLE,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Changes of the change log, in order: readable, filtered, from any position. Needs no Spark.

    Row values are shown. --json prints one document, with --follow one line for each change.
    """
    with (
        invocation("consume", pipeline, platform_config, as_json, debug, source=False) as call,
        StopSignals() as stopping,
    ):
        from tidegate.control import consume as control
        from tidegate.jobs.moments import moment

        wanted = control.wanted(
            call.pipeline,
            tables=table,
            ops=op,
            key=_key(key),
            since=None if since is None else moment(since),
        )
        start = after or (control.NOW if follow else control.BEGINNING)
        found = control.changes(
            call.pipeline,
            call.platform,
            after=start,
            choice=wanted,
            follow=stopping.event if follow else None,
        )
        if not follow and limit:
            found = itertools.islice(found, limit)
        if as_json and not follow:
            call.finish(_document(call, found, form), lambda console, result: None)
            return
        _write(call, found, Form.JSON if as_json and form is Form.TABLE else form)


def _write(call: Invocation, found: Iterable[Change], form: Form) -> None:
    """As they come; nothing is collected."""
    if form is Form.TABLE:
        _table(call.output.out, found)
        return
    out = call.output.out.file
    for shown in _shown(call, found, form):
        out.write(json.dumps(shown, ensure_ascii=False) + "\n")
        out.flush()


def _shown(call: Invocation, found: Iterable[Change], form: Form) -> Iterator[Any]:
    from tidegate.codecs.debezium import Envelopes
    from tidegate.control.consume import record
    from tidegate.jobs.result import plain

    if form is not Form.DEBEZIUM:
        yield from (plain(record(change)) for change in found)
        return
    source = call.pipeline.source
    made = Envelopes(source.source_type, database=source.database, name=call.pipeline.topic_prefix)
    for change in found:
        yield from made.events(change)


def _document(call: Invocation, found: Iterable[Change], form: Form) -> dict[str, Any]:
    last: str | None = None

    def noted() -> Iterator[Change]:
        nonlocal last
        for change in found:
            last = str(change.position)
            yield change

    return {"changes": list(_shown(call, noted(), form)), "last_position": last}


def _table(console: Console, found: Iterable[Change]) -> None:
    """One line a change, in columns of fixed width: a stream has no widest cell."""
    from rich.text import Text

    from tidegate.control.consume import record

    styles = {"c": "green", "u": "cyan", "d": "red", "t": "bold red"}
    for change in found:
        shown = record(change)
        at = f"{shown.committed_at:%Y-%m-%d %H:%M:%S}" if shown.committed_at else ""
        line = Text.assemble((f"{at:<19}  ", "dim"), (shown.op, styles.get(shown.op, "")))
        line.append(f"  {shown.table}  ", style="bold")
        line.append(_row(shown.key))
        line.append(f"  {_difference(shown)}")
        line.append(f"  {shown.position}", style="dim")
        console.print(line, soft_wrap=True)
        console.file.flush()


def _difference(shown: ChangeRecord) -> str:
    """The new row; of an update whose old row is known, what changed."""
    after = shown.after
    if after is None:
        return ""
    if shown.before is not None:
        after = {name: text for name, text in after.items() if shown.before.get(name) != text}
    unsent = [f"{name} unchanged" for name in shown.unchanged]
    unsent += [f"{name} too large" for name in shown.left_out]
    return " ".join([_row(after), *unsent]).strip()


def _row(row: dict[str, str | None] | None) -> str:
    return " ".join(f"{name}={_short(text)}" for name, text in (row or {}).items())


def _short(text: str | None) -> str:
    shown = "null" if text is None else json.dumps(text, ensure_ascii=False)[1:-1]
    return shown if len(shown) <= WIDEST else f"{shown[: WIDEST - 1]}…"


def _key(text: str | None) -> list[str] | None:
    if text is None:
        return None
    if text.startswith("["):
        try:
            return [str(part) for part in json.loads(text)]
        except ValueError:
            return [text]
    return [text]
