"""``serve``, ``openapi``: the HTTP API."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from tidegate.cli.invocation import speaking
from tidegate.cli.options import Debug, PlatformFile

PipelinesFolder = Annotated[
    Path,
    typer.Option(
        "--pipelines",
        metavar="FOLDER",
        envvar="TIDEGATE_PIPELINES_DIR",
        help="The folder of pipeline files.",
    ),
]
DEFAULT_FOLDER = Path("include/config/pipelines")
DEFAULT_PORT = 8686  # api.server.PORT, which would import FastAPI for --help
DEFAULT_RUNS, DEFAULT_QUEUED = 2, 20  # api.processes.RunLimits


def register(app: typer.Typer) -> None:
    """Add the verbs to the command tree."""
    for verb in (serve, openapi):
        app.command()(verb)


def serve(
    pipelines: PipelinesFolder = DEFAULT_FOLDER,
    platform_config: PlatformFile = None,
    host: Annotated[str, typer.Option(help="Beside loopback addresses, only with TLS.")] = (
        "127.0.0.1"
    ),
    port: Annotated[int, typer.Option(min=1, max=65535)] = DEFAULT_PORT,
    token_file: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Callers, one per line: ROLE NAME TOKEN (read, edit, admin). Also"
            " TIDEGATE_API_TOKEN, an admin's. Without both, a token is made up and kept in"
            " the lake's home.",
            show_default=False,
        ),
    ] = None,
    tls_cert: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Certificate.", show_default=False)
    ] = None,
    tls_key: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Its key.", show_default=False)
    ] = None,
    client_ca: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Callers need a certificate of this authority; a token is then not needed.",
            show_default=False,
        ),
    ] = None,
    client_role: Annotated[
        str, typer.Option(help="What certificates without a token may do: read, edit or admin.")
    ] = "read",
    allowed_host: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="A name beside its own that the server answers to: a proxy's public name;"
            " repeatable.",
            show_default=False,
        ),
    ] = None,
    max_runs: Annotated[
        int, typer.Option(min=1, help="Runs at work at once; most are a JVM each.")
    ] = DEFAULT_RUNS,
    max_queued: Annotated[
        int, typer.Option(min=0, help="Runs that wait; more are refused (429).")
    ] = DEFAULT_QUEUED,
    debug: Debug = False,
) -> None:
    """Serve the HTTP API until stopped; on loopback, with a token, by default."""
    with speaking("serve", False, debug) as output:
        from tidegate.api.access import Role
        from tidegate.api.pipelines import Pipelines
        from tidegate.api.processes import RunLimits
        from tidegate.api.server import ServerSettings, standalone
        from tidegate.config.loader import load_platform, platform_file
        from tidegate.errors import ConfigError

        if client_role not in {Role.READ, Role.EDIT, Role.ADMIN}:
            raise ConfigError("serve.role", f"{client_role} is no role", hint="read, edit or admin")
        settings = ServerSettings(
            host,
            port,
            tls_cert,
            tls_key,
            client_ca,
            Role(client_role),
            token_file,
            tuple(allowed_host or ()),
            RunLimits(max_runs, max_queued),
        )
        known = Pipelines(pipelines, load_platform(platform_config), platform_file(platform_config))
        server = standalone(known, settings)
        output.note(f"serving {pipelines} at {server.url}/api/v1/cdc/connectors")
        if server.token_file is not None:
            output.note(f"the token is the last word of {server.token_file}")
        server.run()


def openapi() -> None:
    """Print the HTTP API's OpenAPI 3.1 document."""
    from tidegate.api.reference import openapi_document

    typer.echo(json.dumps(openapi_document(), indent=2, ensure_ascii=False))
