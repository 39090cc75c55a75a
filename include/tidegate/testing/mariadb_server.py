"""A real MariaDB on loopback for tests and benchmarks: Debian's ``mariadb-server``, without Docker.

``flavour="mysql"`` is a MySQL 8.0 instead (:mod:`mysql_binaries`).
"""

from __future__ import annotations

import contextlib
import shutil
import signal
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final, Literal

import pymysql

from tidegate.errors import SetupError
from tidegate.testing import mysql_binaries
from tidegate.testing.server_process import ServerProcess, temporary
from tidegate.testing.server_user import give, make

USER: Final = "tidegate"
PASSWORD: Final = "tidegate-test"  # a loopback server that lives for one run

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


class MariadbServer(ServerProcess):
    """One server of either flavour. SIGTERM is a clean shutdown, SIGKILL a crash."""

    ending = signal.SIGTERM
    starting = pymysql.err.OperationalError

    def __init__(
        self,
        data_dir: Path,
        *,
        flavour: Flavour = "mariadb",
        port: int | None = None,
        config: Mapping[str, str] | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(data_dir, port, environment)
        self.flavour = flavour
        self.config = {**_SHARED, **_OWN[flavour], **(config or {})}

    def __str__(self) -> str:
        return self.flavour

    def stop(self, how: signal.Signals | None = None) -> None:
        super().stop(how)
        Path(self._socket).unlink(missing_ok=True)

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

    def _is_installed(self) -> bool:
        return (self.data_dir / "mysql").exists()

    def _command(self) -> list[str]:
        command = [_program(self.flavour), "--no-defaults", f"--datadir={self.data_dir}"]
        command += [f"--port={self.port}", f"--socket={self._socket}", f"--init-file={self._sql}"]
        return command + [f"--{name}={value}" for name, value in self.config.items()]

    def _install(self) -> None:
        make(self.data_dir)
        if self.flavour == "mariadb":
            command = ["mariadb-install-db", "--no-defaults", f"--datadir={self.data_dir}"]
            command += ["--auth-root-authentication-method=normal", "--skip-test-db"]
        else:
            command = [_program("mysql"), "--no-defaults", "--initialize-insecure"]
            command += [f"--datadir={self.data_dir}"]
        self._initialise(
            command,
            "check the directory's permissions and free disk space; MariaDB needs"
            " mariadb-client-core beside mariadb-server-core, MySQL libaio1",
        )
        self._sql.write_text(
            # Of this server alone: a replica makes its own.
            "SET SESSION sql_log_bin = 0;\n"
            f"CREATE USER IF NOT EXISTS '{USER}'@'%' IDENTIFIED BY '{PASSWORD}';\n"
            f"GRANT ALL ON *.* TO '{USER}'@'%' WITH GRANT OPTION;\n"
        )
        give(self._sql)


def _program(flavour: Flavour) -> str:
    if flavour == "mysql":
        return str(mysql_binaries.mysqld())
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
    with temporary(MariadbServer, "tidegate-my-", flavour=flavour, **options) as server:
        yield server
