"""``conformance``: every case of the suite against a server, the user's own or one started here."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from fnmatch import fnmatch
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from tidegate.cli.invocation import speaking
from tidegate.cli.options import AsJson, Debug
from tidegate.cli.stopping import ended_by_sigterm
from tidegate.errors import ConfigError, ExitCode

if TYPE_CHECKING:
    from rich.console import Console

    from tidegate.spark.session import SparkSession
    from tidegate.testing.conformance.cases import Case
    from tidegate.testing.conformance.readers import Reader
    from tidegate.testing.conformance.results import Report
    from tidegate.testing.conformance.server import Server

CASES: Final = Path(__file__).parents[4] / "tests" / "conformance" / "cases"
FOLDERS: Final = {"postgres": CASES, "mysql": CASES / "mysql"}
SERVERS: Final = {"postgres": ("15", "14", "16", "17", "18"), "mysql": ("mariadb", "mysql")}
"""What can be started here, the default first."""
PATHS: Final = ("sweep", "log", "both")
MODES: Final = {"postgres": ("upsert", "append", "history"), "mysql": ("upsert",)}
READERS: Final = ("pyiceberg", "duckdb", "spark")


def register(app: typer.Typer) -> None:
    """Add the verb to the command tree."""
    app.command()(conformance)


def conformance(
    source: Annotated[
        str, typer.Option("--source", help="Kind of source: postgres, or mysql (MariaDB too).")
    ] = "postgres",
    url: Annotated[
        str | None,
        typer.Option(
            "--url",
            envvar="TIDEGATE_CONFORMANCE_URL",
            metavar="URL",
            help="A server of yours, postgresql://user:password@host:port or mysql://…; the user"
            " creates (and drops) a database (PostgreSQL: and a slot) per path. Without it a server"
            " is started here.",
            show_default=False,
        ),
    ] = None,
    server: Annotated[
        list[str] | None,
        typer.Option(
            "--server",
            help="Server to start: PostgreSQL's version (14 to 18, default 15), or mariadb"
            " (default), mysql; may be repeated.",
        ),
    ] = None,
    case: Annotated[
        list[str] | None,
        typer.Option("--case", help="Only cases of this name (* and ? allowed); may be repeated."),
    ] = None,
    suite: Annotated[
        list[str] | None,
        typer.Option("--suite", help="Only cases of this file (events_*); may be repeated."),
    ] = None,
    path: Annotated[
        list[str] | None, typer.Option("--path", help="Only this path: sweep, log or both.")
    ] = None,
    mode: Annotated[
        list[str] | None,
        typer.Option("--mode", help="Write mode: upsert, append, history. Default upsert."),
    ] = None,
    reader: Annotated[
        list[str] | None,
        typer.Option("--reader", help="pyiceberg, duckdb, spark. Default the first two."),
    ] = None,
    cases: Annotated[
        Path | None,
        typer.Option("--cases", help="Folder of case files; by default those of this project."),
    ] = None,
    results: Annotated[
        Path | None,
        typer.Option(
            "--results",
            help="Folder that keeps the result of every server, mode and path as soon as it is"
            " there. What the same cases have passed already is not run again.",
        ),
    ] = None,
    page: Annotated[
        Path | None,
        typer.Option("--page", help="Also write the results as a page of Markdown to this file."),
    ] = None,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Prove on a real server that the lake holds what the source held."""
    with speaking("conformance", as_json, debug) as output, ExitStack() as stack:
        from tidegate.cli.progress import ProgressView
        from tidegate.cli.spark import started
        from tidegate.config.platform import LakeConfig, PlatformConfig, SparkConfig
        from tidegate.testing.conformance.cases import load_cases
        from tidegate.testing.conformance.matrix import Matrix
        from tidegate.testing.conformance.page import write_page

        _known("--source", [source], tuple(FOLDERS))
        paths = _known("--path", path, PATHS)
        modes = _known("--mode", mode, MODES[source]) if mode else ["upsert"]
        servers = _known("--server", server, SERVERS[source]) if server else SERVERS[source][:1]
        wanted = _chosen(load_cases(cases or FOLDERS[source]), case or ["*"], suite or ["*"])
        stack.enter_context(ended_by_sigterm())
        home = stack.enter_context(tempfile.TemporaryDirectory(prefix="tidegate-conformance-"))
        settings = PlatformConfig(
            lake=LakeConfig(home=home),
            spark=SparkConfig(conf={"spark.sql.shuffle.partitions": "2"}),
        )
        session = stack.enter_context(started(output, settings, None, "tidegate conformance"))
        names = _known("--reader", reader, READERS) if reader else list(READERS[:2])
        readers = {name: stack.enter_context(_reader(name, session)) for name in names}
        progress = stack.enter_context(ProgressView(output))
        matrix = Matrix(session, settings, wanted, readers, results, progress)
        reports = []
        for name in servers[:1] if url else servers:
            own = matrix.missing("own" if url else f"{source}-{name}", modes, paths)
            if own:
                with _server(source, url, name) as at:
                    reports.append(matrix.run(at, own))
        if page is not None:
            write_page(page, matrix.parts())
        failed = any(report.failures for report in reports)
        output.finish(reports, _render, ok=not failed)
        if failed:
            raise typer.Exit(int(ExitCode.RUNTIME))


def _known(option: str, given: Sequence[str] | None, allowed: Sequence[str]) -> list[str]:
    for value in given or ():
        if value not in allowed:
            raise ConfigError(
                "cli.usage", f"{option} {value}", hint=f"{option} is one of {', '.join(allowed)}"
            )
    return list(given or allowed)


def _chosen(cases: Sequence[Case], names: Sequence[str], suites: Sequence[str]) -> list[Case]:
    found = [
        case
        for case in cases
        if any(fnmatch(case.name, name) for name in names)
        and any(fnmatch(case.suite, suite) for suite in suites)
    ]
    if not found:
        raise ConfigError(
            "conformance.no_cases",
            f"no case is called {', '.join(names)} in {', '.join(suites)}",
            hint="names stand in the case files, suites are the files; * and ? are allowed",
        )
    return found


@contextmanager
def _reader(name: str, session: SparkSession) -> Iterator[Reader]:
    from tidegate.testing.conformance import readers

    match name:
        case "duckdb":
            with readers.duckdb_reader() as read:
                yield read
        case "spark":
            yield readers.spark_reader(session)
        case _:
            yield readers.pyiceberg_reader


@contextmanager
def _server(source: str, url: str | None, name: str) -> Iterator[Server]:
    from tidegate.testing.conformance import mysql, postgres

    if url:
        yield mysql.MysqlServer(url) if source == "mysql" else postgres.PostgresServer(url)
    elif source == "mysql":
        with mysql.started_server("mysql" if name == "mysql" else "mariadb") as started:
            yield started
    else:
        with postgres.started_server(int(name)) as started_postgres:
            yield started_postgres


def _render(console: Console, reports: Sequence[Report]) -> None:
    for report in reports:
        for failure in report.failures:
            where = f"{failure.path} {failure.mode} {failure.reader}"
            console.print(f"[red]failed[/]  {failure.case}  [dim]{where}[/]", highlight=False)
            console.print(f"        {failure.why}", markup=False, highlight=False)
        for name, why in report.not_run.items():
            console.print(f"not run  {name}: {why}", style="dim", markup=False, highlight=False)
        console.print(
            f"{report.server}: {len(report.cases)} cases, {report.checks} checks,"
            f" {len({failure.case for failure in report.failures})} cases failed,"
            f" {report.seconds:.0f} s",
            highlight=False,
        )
