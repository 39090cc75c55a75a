"""MySQL and MariaDB as the suite's source. A database is what PostgreSQL calls a schema."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import unquote, urlsplit

from tidegate.names import TableId
from tidegate.schema.types import LogicalType
from tidegate.testing.conformance.canonical import Row
from tidegate.testing.conformance.cases import Case
from tidegate.testing.conformance.mysql_text import source_rows
from tidegate.testing.conformance.packing import setups
from tidegate.testing.conformance.server import Dialect, refused, unreachable
from tidegate.testing.mariadb_server import PASSWORD, USER, Flavour, running

ZONE: Final = "Europe/Berlin"
"""The started server's own time zone, which has summer time: none of it may reach the lake."""


@dataclass(frozen=True, slots=True)
class MysqlServer:
    """The user must be allowed to create databases and to read the binary log."""

    url: str

    @property
    def facts(self) -> dict[str, Any]:
        parts = urlsplit(self.url)
        return {
            "source_type": "mysql",
            "host": parts.hostname or "127.0.0.1",
            "port": parts.port or 3306,
            "username": unquote(parts.username or "root"),
            "password": unquote(parts.password or ""),
        }

    def connect(self, database: str | None = None) -> Any:
        import pymysql
        from pymysql.constants import CLIENT

        facts = self.facts
        try:
            return pymysql.connect(
                host=facts["host"],
                port=facts["port"],
                user=facts["username"],
                password=facts["password"],
                database=database,
                charset="utf8mb4",
                client_flag=CLIENT.MULTI_STATEMENTS,
                # Zero dates and values out of range are cases too.
                init_command="SET sql_mode = ''",
            )
        except pymysql.err.OperationalError as error:
            raise unreachable(facts, error) from error

    @property
    def label(self) -> str:
        text = self._version()
        return f"{'MariaDB' if self.flavour == 'mariadb' else 'MySQL'} {text.partition('-')[0]}"

    @property
    def version(self) -> int:
        return int(self._version().partition(".")[0])

    @property
    def flavour(self) -> Flavour:
        return "mariadb" if "mariadb" in self._version().lower() else "mysql"

    def dialect(self, database: str) -> Dialect:
        return Dialect(database, quoted)

    def lacking(self, cases: Iterable[Case]) -> dict[str, str]:
        mine = self.flavour
        return {
            case.name: f"it is a case of {case.server} alone"
            for case in cases
            if case.server not in (None, mine)
        }

    @contextmanager
    def database(self, name: str) -> Iterator[str]:
        self._run(None, f"CREATE DATABASE {quoted(name)} CHARACTER SET utf8mb4")
        try:
            yield name
        finally:
            self._run(None, f"DROP DATABASE {quoted(name)}")

    def preparation(self, cases: Sequence[Case]) -> list[str]:
        return list(setups(cases))

    def execute(self, database: str, name: str, statements: Iterable[str]) -> None:
        import pymysql

        for statement in statements:
            try:
                self._run(database, statement)
            except pymysql.MySQLError as error:
                raise refused(name, statement, error) from error

    def rows(
        self, database: str, table: TableId, columns: Sequence[tuple[str, LogicalType]]
    ) -> list[Row]:
        with self.connect(database) as connection:
            return source_rows(connection, self.dialect(database).sql(table), columns)

    def _run(self, database: str | None, statement: str) -> None:
        """One session, one transaction, whatever number of statements."""
        with self.connect(database) as connection, connection.cursor() as cursor:
            cursor.execute(statement)
            while cursor.nextset():
                pass
            connection.commit()

    def _version(self) -> str:
        with self.connect() as connection, connection.cursor() as cursor:
            cursor.execute("SELECT version()")
            return str(cursor.fetchone()[0])


def quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


@contextmanager
def started_server(flavour: Flavour) -> Iterator[MysqlServer]:
    """A server of our own, gone afterwards."""
    with running(flavour, environment={"TZ": ZONE}) as server:
        yield MysqlServer(f"mysql://{USER}:{PASSWORD}@127.0.0.1:{server.port}")
