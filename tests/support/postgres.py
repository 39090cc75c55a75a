"""A real PostgreSQL, and a fresh database with a pipeline for every test."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from tidegate.config.pipeline import PipelineConfig
from tidegate.config.platform import PlatformConfig
from tidegate.connectors.postgres.settings import PostgresSettings
from tidegate.testing.postgres_server import PASSWORD, SUPERUSER, PostgresServer, running

_numbers = itertools.count(1)


@dataclass(frozen=True, slots=True)
class SourceDatabase:
    """A database of its own, with a pipeline id (and so a slot) of its own."""

    server: PostgresServer
    name: str

    def sql(self, *statements: str) -> None:
        with self.server.connect(self.name) as connection:
            for statement in statements:
                connection.execute(statement)

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        with self.server.connect(self.name) as connection:
            found: list[tuple[Any, ...]] = connection.execute(query).fetchall()
            return found

    def value(self, query: str) -> Any:
        return self.rows(query)[0][0]

    def connect(self) -> Any:
        """Its own autocommit connection, for open transactions."""
        return self.server.connect(self.name)

    def pipeline(self, *tables: str, sinks: Any = (), **source: Any) -> PipelineConfig:
        return PipelineConfig.model_validate(
            {
                "pipeline_id": self.name,
                "source": {
                    "host": "127.0.0.1",
                    "port": self.server.port,
                    "database": self.name,
                    "username": SUPERUSER,
                    "password": PASSWORD,
                    "tables": tables,
                    **source,
                },
                "sinks": sinks,
            }
        )

    def settings(self, *tables: str, platform: PlatformConfig | None = None) -> PostgresSettings:
        return PostgresSettings.of(self.pipeline(*tables), platform or PlatformConfig(), None)

    def drop(self) -> None:
        """Slots first: they would keep WAL for the rest of the session."""
        with self.server.connect() as connection:
            connection.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s",
                (self.name,),
            )
            slots = connection.execute(
                "SELECT slot_name FROM pg_replication_slots WHERE database = %s AND NOT temporary",
                (self.name,),
            ).fetchall()
            for (slot,) in slots:
                _drop_slot(connection, slot)
            connection.execute(f'DROP DATABASE IF EXISTS "{self.name}" WITH (FORCE)')


def _drop_slot(connection: Any, slot: str) -> None:
    """The backend that used it may still be ending: the server says when it is free."""
    while True:
        row = connection.execute(
            "SELECT active_pid FROM pg_replication_slots WHERE slot_name = %s", (slot,)
        ).fetchone()
        if row is None:
            return
        if row[0] is None:
            connection.execute("SELECT pg_drop_replication_slot(%s)", (slot,))
            return
        connection.execute("SELECT pg_terminate_backend(%s, 10000)", (row[0],))


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    """PostgreSQL 16, for the whole session."""
    with running(16) as server:
        yield server


@pytest.fixture(scope="session")
def postgres18() -> Iterator[PostgresServer]:
    """PostgreSQL 18, for the whole session."""
    with running(18) as server:
        yield server


def fresh_database(server: PostgresServer) -> Iterator[SourceDatabase]:
    """A database that goes with the generator."""
    name = server.create_database(f"src{next(_numbers)}")
    database = SourceDatabase(server, name)
    try:
        yield database
    finally:
        database.drop()


@pytest.fixture
def source_db(postgres: PostgresServer) -> Iterator[SourceDatabase]:
    """A fresh database on PostgreSQL 16."""
    yield from fresh_database(postgres)


@pytest.fixture(params=[16, 18])
def any_source_db(
    request: pytest.FixtureRequest,
) -> Iterator[SourceDatabase]:
    """A fresh database on each supported server that is at hand."""
    name = "postgres" if request.param == 16 else "postgres18"
    yield from fresh_database(request.getfixturevalue(name))
