"""PostgreSQL as the suite's source."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import unquote, urlsplit

from tidegate.names import TableId, quote_sql
from tidegate.schema.types import LogicalType
from tidegate.testing.conformance.canonical import Row
from tidegate.testing.conformance.cases import Case
from tidegate.testing.conformance.packing import setups
from tidegate.testing.conformance.postgres_text import source_rows
from tidegate.testing.conformance.server import Dialect, refused, unreachable
from tidegate.testing.postgres_server import PASSWORD, SUPERUSER, running

SCHEMA: Final = "conf"
_SEARCH: Final = f"-c search_path=public,{SCHEMA}"


@dataclass(frozen=True, slots=True)
class PostgresServer:
    """The user must be allowed to create databases and slots."""

    url: str

    @property
    def facts(self) -> dict[str, Any]:
        parts = urlsplit(self.url)
        return {
            "host": parts.hostname or "127.0.0.1",
            "port": parts.port or 5432,
            "username": unquote(parts.username or "postgres"),
            "password": unquote(parts.password or ""),
        }

    def connect(self, database: str = "postgres") -> Any:
        import psycopg

        facts = self.facts
        try:
            return psycopg.connect(
                host=facts["host"],
                port=facts["port"],
                user=facts["username"],
                password=facts["password"],
                dbname=database,
                autocommit=True,
                prepare_threshold=None,  # every statement as it was written
                options=_SEARCH,
            )
        except psycopg.OperationalError as error:
            raise unreachable(facts, error) from error

    @property
    def version(self) -> int:
        with self.connect() as connection:
            return int(connection.info.server_version) // 10000

    @property
    def label(self) -> str:
        return f"PostgreSQL {self.version}"

    def dialect(self, database: str) -> Dialect:
        return Dialect(SCHEMA, quote_sql)

    def lacking(self, cases: Iterable[Case]) -> dict[str, str]:
        with self.connect() as connection:
            rows = connection.execute("SELECT name FROM pg_available_extensions").fetchall()
        there = {name for (name,) in rows}
        return {
            case.name: f"the server has no extension {case.extension}"
            for case in cases
            if case.extension and case.extension not in there
        }

    @contextmanager
    def database(self, name: str) -> Iterator[str]:
        with self.connect() as connection:
            connection.execute(
                f"CREATE DATABASE {quote_sql(name)} ENCODING 'UTF8' TEMPLATE template0"
            )
        try:
            yield name
        finally:
            with self.connect() as connection:
                connection.execute(f"DROP DATABASE {quote_sql(name)} WITH (FORCE)")

    def preparation(self, cases: Sequence[Case]) -> list[str]:
        return [f"CREATE SCHEMA {SCHEMA}", *setups(cases)]

    def execute(self, database: str, name: str, statements: Iterable[str]) -> None:
        import psycopg

        texts = list(statements)
        if not texts:
            return
        with self.connect(database) as connection:
            for statement in texts:
                try:
                    connection.execute(statement.encode())
                except psycopg.Error as error:
                    raise refused(name, statement, error) from error
                connection.execute("DISCARD ALL")  # each statement in a session of its own

    def rows(
        self, database: str, table: TableId, columns: Sequence[tuple[str, LogicalType]]
    ) -> list[Row]:
        with self.connect(database) as connection:
            kind = connection.execute(
                "SELECT relkind::text FROM pg_catalog.pg_class WHERE oid = %s::regclass",
                (table.sql,),
            ).fetchone()
            return source_rows(connection, table, columns, only=kind[0] == "r")


@contextmanager
def started_server(version: int) -> Iterator[PostgresServer]:
    """A server of our own, with its extensions, gone afterwards."""
    config = {"max_prepared_transactions": "10"}
    with running(version, contrib=True, config=config) as server:
        yield PostgresServer(f"postgresql://{SUPERUSER}:{PASSWORD}@127.0.0.1:{server.port}")
