"""A real PostgreSQL on loopback for tests, the demo and benchmarks, without Docker.

The binaries come from :mod:`postgres_binaries`; whom it runs as, from :mod:`server_user`.
"""

from __future__ import annotations

import contextlib
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from tidegate.errors import SetupError
from tidegate.testing.postgres_binaries import binaries
from tidegate.testing.server_user import demoted, free_port, give, make, placed

SUPERUSER: Final = "postgres"
PASSWORD: Final = "tidegate-test"  # a loopback server that lives for one run
START_SECONDS: Final = 60.0

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


class PostgresServer:
    """One server process: start, stop, restart, kill. The data directory outlives a stop.

    ``contrib``: with the extensions of PostgreSQL's own distribution, ICU and libxml.
    ``data_dir`` is where the data really is: under root it may differ from what was asked for.
    """

    def __init__(
        self,
        data_dir: Path,
        *,
        version: int = 16,
        port: int | None = None,
        config: Mapping[str, str] | None = None,
        contrib: bool = False,
    ) -> None:
        self.data_dir = placed(data_dir)
        self.version = version
        self.port = port or free_port()
        self.config = {**_CONFIG, **(config or {})}
        self.bin = binaries(version, contrib=contrib)
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> PostgresServer:
        """Initialise the data directory if it is new, then start and wait until it answers."""
        if not (self.data_dir / "PG_VERSION").exists():
            self._initdb()
        arguments = [str(self.bin / "postgres"), "-D", str(self.data_dir), "-p", str(self.port)]
        for name, value in self.config.items():
            arguments += ["-c", f"{name}={value}"]
        with (self.data_dir / "server.log").open("ab") as log:
            self._process = subprocess.Popen(
                arguments, stdout=log, stderr=log, start_new_session=True, **demoted()
            )
        self._wait()
        return self

    def stop(self, how: signal.Signals = signal.SIGINT) -> None:
        """SIGINT is PostgreSQL's fast shutdown, SIGQUIT a crash, SIGTERM waits for clients."""
        if self._process is None:
            return
        if self._process.poll() is None:
            self._process.send_signal(how)
            self._process.wait(timeout=START_SECONDS)
        self._process = None

    def restart(self, how: signal.Signals = signal.SIGINT) -> None:
        self.stop(how)
        self.start()

    @property
    def pid(self) -> int | None:
        return self._process.pid if self._process else None

    def dsn(self, database: str = "postgres", user: str = SUPERUSER) -> str:
        """A libpq connection string."""
        return f"host=127.0.0.1 port={self.port} dbname={database} user={user} password={PASSWORD}"

    def connect(self, database: str = "postgres", **options: Any) -> Any:
        """An autocommit psycopg connection."""
        import psycopg

        return psycopg.connect(self.dsn(database), autocommit=True, **options)

    def create_database(self, name: str) -> str:
        with self.connect() as connection:
            connection.execute(f'CREATE DATABASE "{name}"')
        return name

    def _initdb(self) -> None:
        make(self.data_dir)
        password = self.data_dir.with_name(self.data_dir.name + ".pw")
        password.touch(mode=0o600)
        password.write_text(PASSWORD)
        give(password)
        command = [str(self.bin / "initdb"), "-D", str(self.data_dir), "-U", SUPERUSER]
        command += ["-A", "scram-sha-256", f"--pwfile={password}", "-E", "UTF8", "--locale=C"]
        done = subprocess.run(
            [*command, "--no-sync"], capture_output=True, text=True, check=False, **demoted()
        )
        password.unlink()
        if done.returncode != 0:
            raise SetupError(
                "postgres.initdb",
                f"initdb failed in {self.data_dir}: {done.stderr.strip()[-400:]}",
                hint="check the directory's permissions and free disk space",
            )

    def _wait(self) -> None:
        import psycopg

        deadline = time.monotonic() + START_SECONDS
        while True:
            try:
                self.connect().close()
                return
            except psycopg.OperationalError as error:
                process = self._process
                if process is None or process.poll() is not None or time.monotonic() > deadline:
                    log = (self.data_dir / "server.log").read_text(errors="replace")[-800:]
                    raise SetupError(
                        "postgres.start",
                        f"PostgreSQL {self.version} did not start: {log}",
                        hint=f"see {self.data_dir / 'server.log'}",
                    ) from error
                time.sleep(0.05)  # polling a server that is starting, not synchronising


@contextlib.contextmanager
def running(version: int = 16, **options: Any) -> Iterator[PostgresServer]:
    """A server in a temporary directory, gone afterwards."""
    root = Path(tempfile.mkdtemp(prefix="tidegate-pg-"))
    server = PostgresServer(root / "data", version=version, **options)
    try:
        yield server.start()
    finally:
        server.stop()
        shutil.rmtree(root, ignore_errors=True)
