"""A real MariaDB on loopback for tests and benchmarks: Debian's ``mariadb-server``, without Docker.

``flavour="mysql"`` runs a MySQL 8.0 that someone unpacked (``TIDEGATE_MYSQL_HOME``) instead.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final, Literal

import pymysql

from tidegate.errors import SetupError
from tidegate.testing.server_user import demoted, free_port, give, make, placed

USER: Final = "tidegate"
PASSWORD: Final = "tidegate-test"  # a loopback server that lives for one run
START_SECONDS: Final = 60.0
MYSQL_HOME: Final = "TIDEGATE_MYSQL_HOME"

Flavour = Literal["mariadb", "mysql"]

_SHARED: Final[Mapping[str, str]] = {
    "bind-address": "127.0.0.1",
    "skip-name-resolve": "ON",
    "server-id": "11",
    "log-bin": "binlog",
    "binlog-format": "ROW",
    "binlog-row-image": "FULL",
    "binlog-row-metadata": "FULL",
    "sync-binlog": "0",  # throw-away data
    "innodb-flush-log-at-trx-commit": "0",
    "innodb-buffer-pool-size": "128M",
    "character-set-server": "utf8mb4",
}
_OWN: Final[Mapping[str, Mapping[str, str]]] = {
    "mariadb": {"gtid-strict-mode": "1"},
    "mysql": {"gtid-mode": "ON", "enforce-gtid-consistency": "ON", "mysqlx": "OFF"},
}


class MariadbServer:
    """One server process: start, stop, restart, kill. The data directory outlives a stop."""

    def __init__(
        self,
        data_dir: Path,
        *,
        flavour: Flavour = "mariadb",
        port: int | None = None,
        config: Mapping[str, str] | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self.data_dir = placed(data_dir)
        self.flavour = flavour
        self.port = port or free_port()
        self.config = {**_SHARED, **_OWN[flavour], **(config or {})}
        self._environment = {**os.environ, **(environment or {})}
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> MariadbServer:
        """Initialise the data directory if it is new, then start and wait until it answers."""
        if not (self.data_dir / "mysql").exists():
            self._install()
        arguments = [_program(self.flavour), "--no-defaults", f"--datadir={self.data_dir}"]
        arguments += [f"--port={self.port}", f"--socket={self._socket}", f"--init-file={self._sql}"]
        arguments += [f"--{name}={value}" for name, value in self.config.items()]
        with (self.data_dir / "server.log").open("ab") as log:
            self._process = subprocess.Popen(
                arguments,
                stdout=log,
                stderr=log,
                start_new_session=True,
                env=self._environment,
                **demoted(),
            )
        self._wait()
        return self

    def stop(self, how: signal.Signals = signal.SIGTERM) -> None:
        """SIGTERM is a clean shutdown, SIGKILL a crash."""
        if self._process is None:
            return
        if self._process.poll() is None:
            self._process.send_signal(how)
            self._process.wait(timeout=START_SECONDS)
        self._process = None
        Path(self._socket).unlink(missing_ok=True)

    def restart(self, how: signal.Signals = signal.SIGTERM) -> None:
        self.stop(how)
        self.start()

    def connect(self, database: str | None = None, **options: Any) -> pymysql.Connection[Any]:
        """An autocommit connection of a user who may do everything."""
        return pymysql.connect(
            host="127.0.0.1",
            port=self.port,
            user=USER,
            password=PASSWORD,
            database=database,
            autocommit=True,
            **options,
        )

    def execute(self, *statements: str, database: str | None = None) -> list[tuple[Any, ...]]:
        """Run statements; the rows of the last one."""
        rows: Any = ()
        with self.connect(database) as connection, connection.cursor() as cursor:
            for statement in statements:
                cursor.execute(statement)
                rows = cursor.fetchall()
        return list(rows)

    @property
    def _socket(self) -> str:
        # A socket's path may be 107 bytes long, a data directory's any.
        return str(Path(tempfile.gettempdir()) / f"tidegate-{self.port}.sock")

    @property
    def _sql(self) -> Path:
        return self.data_dir / "tidegate-init.sql"

    def _install(self) -> None:
        make(self.data_dir)
        if self.flavour == "mariadb":
            command = ["mariadb-install-db", "--no-defaults", f"--datadir={self.data_dir}"]
            command += ["--auth-root-authentication-method=normal", "--skip-test-db"]
        else:
            command = [_program("mysql"), "--no-defaults", "--initialize-insecure"]
            command += [f"--datadir={self.data_dir}"]
        done = subprocess.run(command, capture_output=True, text=True, check=False, **demoted())
        if done.returncode != 0:
            said = (done.stdout + done.stderr).strip()[-400:]
            raise SetupError(
                "mariadb.install",
                f"no data directory in {self.data_dir}: {said}",
                hint="check the directory's permissions and free disk space; MariaDB needs"
                " mariadb-client-core beside mariadb-server-core",
            )
        self._sql.write_text(
            f"CREATE USER IF NOT EXISTS '{USER}'@'%' IDENTIFIED BY '{PASSWORD}';\n"
            f"GRANT ALL ON *.* TO '{USER}'@'%' WITH GRANT OPTION;\n"
        )
        give(self._sql)

    def _wait(self) -> None:
        deadline = time.monotonic() + START_SECONDS
        while True:
            try:
                self.connect().close()
                return
            except pymysql.err.OperationalError as error:
                process = self._process
                if process is None or process.poll() is not None or time.monotonic() > deadline:
                    log = (self.data_dir / "server.log").read_text(errors="replace")[-800:]
                    raise SetupError(
                        "mariadb.start",
                        f"{self.flavour} did not start: {log}",
                        hint=f"see {self.data_dir / 'server.log'}",
                    ) from error
                time.sleep(0.05)  # polling a server that is starting, not synchronising


def _program(flavour: Flavour) -> str:
    if flavour == "mysql":
        home = os.environ.get(MYSQL_HOME)
        if home and (Path(home) / "bin" / "mysqld").exists():
            return str(Path(home) / "bin" / "mysqld")
        raise SetupError(
            "mysql.binaries",
            "no MySQL server programs here",
            hint=f"unpack one and name its directory in {MYSQL_HOME}",
        )
    found = shutil.which("mariadbd") or shutil.which("mariadbd", path="/usr/sbin")
    if found is None:
        raise SetupError(
            "mariadb.binaries",
            "no MariaDB server programs here",
            hint="apt-get install -y mariadb-server-core mariadb-client-core (scripts/setup.sh does"
            " it as root)",
        )
    return found


@contextlib.contextmanager
def running(flavour: Flavour = "mariadb", **options: Any) -> Iterator[MariadbServer]:
    """A server in a temporary directory, gone afterwards."""
    root = Path(tempfile.mkdtemp(prefix="tidegate-my-"))
    server = MariadbServer(root / "data", flavour=flavour, **options)
    try:
        yield server.start()
    finally:
        server.stop()
        shutil.rmtree(root, ignore_errors=True)
