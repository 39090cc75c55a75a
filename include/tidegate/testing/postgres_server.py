"""A real PostgreSQL on loopback for tests, the demo and benchmarks, without Docker.

The binaries come from :mod:`postgres_binaries`. PostgreSQL refuses to run as root, so under root
the server runs as ``nobody``. Where that user cannot reach the data directory (a checkout under
/root), one in the temporary directory takes its place; the permissions of directories outside it
are never touched.
"""

from __future__ import annotations

import contextlib
import logging
import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from tidegate.errors import SetupError
from tidegate.testing.places import own_place, stable_place
from tidegate.testing.postgres_binaries import binaries

SUPERUSER: Final = "postgres"
PASSWORD: Final = "tidegate-test"  # a loopback server that lives for one run
START_SECONDS: Final = 60.0

log = logging.getLogger(__name__)

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


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


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
        self.data_dir = _placed(data_dir)
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
                arguments, stdout=log, stderr=log, start_new_session=True, **_demoted()
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
        _make(self.data_dir)
        password = self.data_dir.with_name(self.data_dir.name + ".pw")
        password.touch(mode=0o600)
        password.write_text(PASSWORD)
        _give(password)
        command = [str(self.bin / "initdb"), "-D", str(self.data_dir), "-U", SUPERUSER]
        command += ["-A", "scram-sha-256", f"--pwfile={password}", "-E", "UTF8", "--locale=C"]
        done = subprocess.run(
            [*command, "--no-sync"], capture_output=True, text=True, check=False, **_demoted()
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


def _nobody() -> pwd.struct_passwd:
    return pwd.getpwnam("nobody")


def _demoted() -> dict[str, Any]:
    if os.geteuid() != 0:
        return {"cwd": "/"}
    return {"user": _nobody().pw_uid, "group": _nobody().pw_gid, "extra_groups": [], "cwd": "/"}


def _placed(wanted: Path) -> Path:
    """``wanted``, or a stable stand-in where ``nobody`` could not walk to it."""
    wanted = wanted.absolute()
    if os.geteuid() != 0 or not [p for p in _closed(wanted) if not _temporary(p)]:
        return wanted
    target = own_place(stable_place("tidegate-data", str(wanted))) / wanted.name
    log.info("%s is out of reach for the server's user; the data is in %s", wanted, target)
    return target


def _make(directory: Path) -> None:
    """An empty directory of the server's user; closed temporary parents let it walk through."""
    for parent in reversed(directory.parents):
        if not parent.exists():
            parent.mkdir(exist_ok=True)
            parent.chmod(0o755)
    directory.mkdir(exist_ok=True)
    directory.chmod(0o700)
    _give(directory)
    if os.geteuid() == 0:
        for parent in _closed(directory):
            parent.chmod(parent.stat().st_mode | 0o011)


def _give(path: Path) -> None:
    if os.geteuid() == 0:
        os.chown(path, _nobody().pw_uid, _nobody().pw_gid)


def _closed(path: Path) -> list[Path]:
    """Existing parents others cannot walk through."""
    return [p for p in path.parents if p.exists() and not p.stat().st_mode & 0o001]


def _temporary(path: Path) -> bool:
    return Path(tempfile.gettempdir()).resolve() in path.resolve().parents
