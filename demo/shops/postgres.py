"""The shop on PostgreSQL: roles, tables and rows."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

from demo.shops import CAPTURE_USER, DATABASE, OWNER, TABLES, Say
from tidegate.testing.postgres_server import PASSWORD, PostgresServer


class PostgresShop:
    """Implements ``Shop``."""

    kind = "postgres"
    schema = "public"
    made = "publication, slot, control tables"

    def __init__(self, server: PostgresServer) -> None:
        self._server = server

    @property
    def port(self) -> int:
        return self._server.port

    @property
    def client(self) -> str:
        where = f"-h 127.0.0.1 -p {self.port} -U {OWNER} {DATABASE}"
        return f"PGPASSWORD={PASSWORD} {self._server.bin / 'psql'} {where}"

    @property
    def environment(self) -> dict[str, str]:
        return {"SHOP_DSN": self._server.dsn(DATABASE)}

    def start(self) -> int:
        if self._server.pid is None:
            self._server.start()
        assert self._server.pid is not None
        return self._server.pid

    def system(self) -> str:
        return f"PostgreSQL {self._server.version}"

    def create(self) -> dict[str, int]:
        with self._server.connect() as admin:
            known = "SELECT 1 FROM pg_database WHERE datname = %s"
            if admin.execute(known, (DATABASE,)).fetchone():
                return self.count()
            for role, options in ((OWNER, "LOGIN"), (CAPTURE_USER, "LOGIN REPLICATION")):
                admin.execute(f"CREATE ROLE {role} {options} PASSWORD '{PASSWORD}'")
            # Publishing a table takes its owner: the capture user is a member of that role.
            admin.execute(f"GRANT {OWNER} TO {CAPTURE_USER}")
            admin.execute(f"CREATE DATABASE {DATABASE} OWNER {OWNER}")
        statements = Path(__file__).with_suffix(".sql").read_text()
        with self._server.connect(DATABASE) as connection:
            connection.execute(f"SET ROLE {OWNER}")
            connection.execute(statements)
        return self.count()

    def count(self) -> dict[str, int]:
        with self._server.connect(DATABASE) as connection:
            return {
                table: connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0]
                for table in TABLES
            }

    @contextlib.contextmanager
    def holding_back(self, say: Say) -> Iterator[None]:
        """A transaction of the shop is left open, and a sweep's exact cut has to wait for it."""
        with self._server.connect(DATABASE) as connection:
            connection.execute("BEGIN")
            connection.execute("UPDATE customers SET is_active = is_active WHERE id = 1")
            say("a transaction of the shop stays open: the sweep's cut waits for it")
            yield
            connection.execute("COMMIT")
        say("the transaction has ended: the sweep goes on")

    def lag(self, behind: int, kept: int) -> str:
        return (
            f"the log is {behind:,} bytes of WAL behind the source (Airflow's own database is on"
            f" the same server); the slot keeps {kept:,} bytes"
        )
