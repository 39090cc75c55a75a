"""``tidegate serve``: the application on its own, loopback and a token by default."""

from __future__ import annotations

import ipaddress
import ssl
import threading
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import uvicorn
from fastapi import FastAPI

from tidegate.api.access import Role
from tidegate.api.app import create_app
from tidegate.api.hosts import Hosts
from tidegate.api.pipelines import Pipelines
from tidegate.api.processes import ProcessRunner, RunLimits
from tidegate.api.tokens import Holder, TokenAuthorizer, holders
from tidegate.errors import ConfigError

LOOPBACK: Final = "127.0.0.1"
PORT: Final = 8686
RUNS_FOLDER: Final = "runs"
_GRACE_SECONDS: Final = 5


@dataclass(frozen=True, slots=True)
class ServerSettings:
    """Where the server listens, and how callers are known."""

    host: str = LOOPBACK
    port: int = PORT
    certificate: Path | None = None
    key: Path | None = None
    client_ca: Path | None = None
    client_role: Role = Role.READ
    token_file: Path | None = None
    allowed_hosts: tuple[str, ...] = ()
    """Names beside its own that it answers to: those of proxies in front of it."""
    runs: RunLimits = field(default_factory=RunLimits)


@dataclass(frozen=True, slots=True)
class Standalone:
    """An application that is ready to be served."""

    app: FastAPI
    runner: ProcessRunner
    settings: ServerSettings
    token_file: Path | None
    """Where the token is that was made up because none was given."""

    @property
    def url(self) -> str:
        scheme = "https" if self.settings.certificate else "http"
        host = f"[{self.settings.host}]" if ":" in self.settings.host else self.settings.host
        return f"{scheme}://{host}:{self.settings.port}"

    def run(self) -> None:
        """Serve until SIGINT or SIGTERM; what an earlier server left waiting goes on."""
        self.runner.resume()
        # The first who asks need not wait until every table's metadata was read once.
        threading.Thread(target=self.app.state.live.warm, daemon=True).start()
        uvicorn.Server(self.config()).run()

    def config(self) -> uvicorn.Config:
        settings = self.settings
        return uvicorn.Config(
            self.app,
            host=settings.host,
            port=settings.port,
            # Paths can hold a row's key (I9): requests are not logged.
            access_log=False,
            log_level="warning",
            server_header=False,
            proxy_headers=False,
            ws="websockets-sansio",
            timeout_graceful_shutdown=_GRACE_SECONDS,
            ssl_certfile=settings.certificate,
            ssl_keyfile=settings.key,
            ssl_ca_certs=str(settings.client_ca) if settings.client_ca else None,
            ssl_cert_reqs=ssl.CERT_REQUIRED if settings.client_ca else ssl.CERT_NONE,
        )


def standalone(pipelines: Pipelines, settings: ServerSettings) -> Standalone:
    """The application with its own callers and its own runner."""
    check(settings)
    home = Path(pipelines.platform.lake.home)
    callers: list[Holder] = []
    made = None
    if settings.client_ca is None or settings.token_file is not None:
        callers, made = holders(settings.token_file, home)
    authorizer = TokenAuthorizer(callers, settings.client_role if settings.client_ca else None)
    runner = ProcessRunner(pipelines, home / RUNS_FOLDER, settings.runs)
    hosts = Hosts.of(
        settings.host, loopback=is_loopback(settings.host), allowed=settings.allowed_hosts
    )
    return Standalone(create_app(pipelines, authorizer, runner, hosts), runner, settings, made)


def check(settings: ServerSettings) -> None:
    """Refuse what would show the server, or its tokens, to a network."""
    if (settings.certificate is None) != (settings.key is None):
        raise ConfigError(
            "serve.tls", "a certificate needs its key, and the other way round", hint="give both"
        )
    if settings.client_ca is not None and settings.certificate is None:
        raise ConfigError(
            "serve.tls", "client certificates need TLS", hint="give --tls-cert and --tls-key"
        )
    if settings.certificate is None and not is_loopback(settings.host):
        raise ConfigError(
            "serve.exposed",
            f"{settings.host} is not the loopback address, and there is no TLS",
            hint="give --tls-cert and --tls-key, or listen on 127.0.0.1 behind a proxy with TLS",
        )


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches ``host``."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
