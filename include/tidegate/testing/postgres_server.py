"""A real PostgreSQL on loopback for tests, the demo and benchmarks, without Docker.

The binaries come from :mod:`postgres_binaries`; whom it runs as, from :mod:`server_user`.
"""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import psycopg

from tidegate.testing.postgres_binaries import binaries
from tidegate.testing.server_process import ServerProcess, temporary
from tidegate.testing.server_user import give, make

SUPERUSER: Final = "postgres"
PASSWORD: Final = "tidegate-test"  # a loopback server that lives for one run

CHEAP_SCRAM: Final = 16
"""The first version in which ``scram_iterations`` can be set."""

_CONFIG: Final[Mapping[str, str]] = {
    "listen_addresses": "127.0.0.1",
    "unix_socket_directories": "",  # a socket's path may be 107 bytes long, a checkout's any
    "wal_level": "logical",
    "max_replication_slots": "20",
    "max_wal_senders": "20",
    "fsync": "off",  # throw-away data
    "synchronous_commit": "on",  # a commit is decodable at once (STACK.md)
    "shared_buffers": "128MB",
    "max_wal_size": "2GB",
    "log_min_messages": "warning",
}


class PostgresServer(ServerProcess):
    """One server. SIGINT is PostgreSQL's fast shutdown, SIGQUIT a crash, SIGTERM waits for clients.

    ``contrib``: with the extensions of PostgreSQL's own distribution, ICU and libxml.
    """

    ending = signal.SIGINT
    starting = psycopg.OperationalError

    def __init__(
        self,
        data_dir: Path,
        *,
        version: int = 16,
        port: int | None = None,
        config: Mapping[str, str] | None = None,
        contrib: bool = False,
    ) -> None:
        super().__init__(data_dir, port)
        self.version = version
        self.config = {**_CONFIG, **(config or {})}
        self.bin = binaries(version, contrib=contrib)

    def __str__(self) -> str:
        return f"PostgreSQL {self.version}"

    def dsn(self, database: str = "postgres", user: str = SUPERUSER) -> str:
        """A libpq connection string."""
        return f"host=127.0.0.1 port={self.port} dbname={database} user={user} password={PASSWORD}"

    def connect(self, database: str = "postgres", **options: Any) -> Any:
        """An autocommit psycopg connection."""
        return psycopg.connect(self.dsn(database), autocommit=True, **options)

    def create_database(self, name: str) -> str:
        with self.connect() as connection:
            connection.execute(f'CREATE DATABASE "{name}"')
        return name

    def _is_installed(self) -> bool:
        return (self.data_dir / "PG_VERSION").exists()

    def _command(self) -> list[str]:
        command = [str(self.bin / "postgres"), "-D", str(self.data_dir), "-p", str(self.port)]
        for name, value in self.config.items():
            command += ["-c", f"{name}={value}"]
        return command

    def _login(self) -> list[str]:
        """Logins that cost nothing: every task of Spark's opens connections, and deriving SCRAM's
        key in 4,096 rounds took half of a cold JVM's time in tests (*measured*)."""
        if self.version < CHEAP_SCRAM:
            return ["-A", "md5"]
        return ["-A", "scram-sha-256", "--set", "scram_iterations=1"]

    def _install(self) -> None:
        make(self.data_dir)
        password = self.data_dir.with_name(self.data_dir.name + ".pw")
        password.touch(mode=0o600)
        password.write_text(PASSWORD)
        give(password)
        command = [str(self.bin / "initdb"), "-D", str(self.data_dir), "-U", SUPERUSER, "--no-sync"]
        command += [*self._login(), f"--pwfile={password}", "-E", "UTF8", "--locale=C"]
        try:
            self._initialise(command, "check the directory's permissions and free disk space")
        finally:
            password.unlink()


@contextlib.contextmanager
def running(version: int = 16, **options: Any) -> Iterator[PostgresServer]:
    """A server in a temporary directory, gone afterwards."""
    with temporary(PostgresServer, "tidegate-pg-", version=version, **options) as server:
        yield server
