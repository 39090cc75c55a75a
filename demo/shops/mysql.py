"""The shop on MariaDB: users, tables and rows."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

from demo import places
from demo.shops import CAPTURE_USER, DATABASE, OWNER, TABLES, Say
from tidegate.testing.mariadb_server import MariadbServer
from tidegate.testing.postgres_server import PASSWORD


class MysqlShop:
    """Implements ``Shop``."""

    kind = "mysql"
    schema = DATABASE
    made = "a place in the binary log, control tables"

    def __init__(self, port: int) -> None:
        self._server = MariadbServer(places.MYSQL_DATA, port=port)

    @property
    def port(self) -> int:
        return self._server.port

    @property
    def client(self) -> str:
        where = f"-h 127.0.0.1 -P {self.port} -u {OWNER} {DATABASE}"
        return f"MYSQL_PWD={PASSWORD} mariadb {where}"

    @property
    def environment(self) -> dict[str, str]:
        return {"SHOP_PORT": str(self.port), "SHOP_PASSWORD": PASSWORD}

    def start(self) -> int:
        self._server.start()
        assert self._server.pid is not None
        return self._server.pid

    def system(self) -> str:
        return f"MariaDB {self._server.execute('SELECT version()')[0][0]}"

    def create(self) -> dict[str, int]:
        if self._server.execute(f"SHOW DATABASES LIKE '{DATABASE}'"):
            return self.count()
        self._server.execute(
            f"CREATE DATABASE {DATABASE}",
            f"CREATE USER {OWNER}@'%' IDENTIFIED BY '{PASSWORD}'",
            f"GRANT ALL ON {DATABASE}.* TO {OWNER}@'%'",
            f"CREATE USER {CAPTURE_USER}@'%' IDENTIFIED BY '{PASSWORD}'",
            f"GRANT REPLICATION SLAVE, BINLOG MONITOR ON *.* TO {CAPTURE_USER}@'%'",
            f"GRANT SELECT ON {DATABASE}.* TO {CAPTURE_USER}@'%'",
        )
        statements = Path(__file__).with_suffix(".sql").read_text().split(";\n")
        self._server.execute(*filter(str.strip, statements), database=DATABASE)
        return self.count()

    def count(self) -> dict[str, int]:
        return {
            table: self._server.execute(f"SELECT count(*) FROM {table}", database=DATABASE)[0][0]
            for table in TABLES
        }

    @contextlib.contextmanager
    def holding_back(self, say: Say) -> Iterator[None]:
        """Nothing can: the cut waits for no transaction of the application."""
        say("MariaDB's cut waits for nobody: the sweep reads while the shop goes on")
        yield

    def lag(self, behind: int, kept: int) -> str:
        return f"the log is {behind:,} bytes behind the source's binary log"
