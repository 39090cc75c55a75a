"""A real MariaDB, and a fresh database with a pipeline for every test."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

from tidegate.config.pipeline import PipelineConfig
from tidegate.config.platform import PlatformConfig
from tidegate.connectors.changes import ChangeBatch
from tidegate.connectors.mysql import capture
from tidegate.connectors.mysql.settings import MysqlSettings
from tidegate.envelope.position import Position
from tidegate.names import TableId
from tidegate.testing.mariadb_server import PASSWORD, USER, MariadbServer, running

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tests.support.stack import Stack

_numbers = itertools.count(1)


@dataclass(frozen=True, slots=True)
class MysqlDatabase:
    """A database of its own, with a pipeline id of its own."""

    server: MariadbServer
    name: str

    def sql(self, *statements: str) -> None:
        """One session."""
        self.server.execute(*statements, database=self.name)

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        return self.server.execute(query, database=self.name)

    def literal(self, text: str) -> str:
        """As a string of SQL."""
        return "'" + text.replace("\\", "\\\\").replace("'", "''") + "'"

    def pipeline(self, *tables: str, sinks: Any = (), **source: Any) -> PipelineConfig:
        return PipelineConfig.model_validate(
            {
                "pipeline_id": self.name,
                "source": {
                    "source_type": "mysql",
                    "host": "127.0.0.1",
                    "port": self.server.port,
                    "database": self.name,
                    "username": USER,
                    "password": PASSWORD,
                    "tables": [str(TableId(self.name, table)) for table in tables],
                    **source,
                },
                "sinks": sinks,
            }
        )

    def settings(self, *tables: str, platform: PlatformConfig | None = None) -> MysqlSettings:
        return MysqlSettings.of(self.pipeline(*tables), platform or PlatformConfig(), None)

    def changes(self, after: Position, *tables: str, **options: Any) -> list[ChangeBatch]:
        """Everything from ``after`` up to now."""
        settings = self.settings(*tables).model_copy(update=options)
        with capture.open_changes(settings, after, "now") as stream:
            return list(stream)


@pytest.fixture(scope="session")
def mariadb() -> Iterator[MariadbServer]:
    """MariaDB 10.11, for the whole session."""
    with running() as server:
        yield server


@pytest.fixture(scope="session")
def mysql8() -> Iterator[MariadbServer]:
    """MySQL 8.0, for the whole session."""
    with running("mysql") as server:
        yield server


@contextmanager
def fresh_database(server: MariadbServer) -> Iterator[MysqlDatabase]:
    name = f"my{next(_numbers)}"
    server.execute(f"CREATE DATABASE {name}")
    try:
        yield MysqlDatabase(server, name)
    finally:
        server.execute(f"DROP DATABASE IF EXISTS {name}")


@pytest.fixture
def mysql_db(mariadb: MariadbServer) -> Iterator[MysqlDatabase]:
    """A fresh database on MariaDB."""
    with fresh_database(mariadb) as database:
        yield database


@pytest.fixture
def mysql8_db(mysql8: MariadbServer) -> Iterator[MysqlDatabase]:
    """A fresh database on MySQL 8."""
    with fresh_database(mysql8) as database:
        yield database


@pytest.fixture(params=["mariadb", "mysql8"])
def any_db(request: pytest.FixtureRequest) -> Iterator[MysqlDatabase]:
    """A fresh database on each of the servers."""
    with fresh_database(request.getfixturevalue(request.param)) as database:
        yield database


@pytest.fixture
def mysql_stack(
    mysql_db: MysqlDatabase, spark: SparkSession, spark_platform: PlatformConfig
) -> Callable[..., Stack]:
    """Makes a deployed pipeline over tables that exist in ``mysql_db``."""
    from tests.support.stack import SMALL_CHUNKS, Stack

    def make(*tables: str, lake: dict[str, Any] | None = None) -> Stack:
        sinks = [{"sink_id": "lake", "sink_type": "iceberg", "iceberg": lake or {}}]
        platform = spark_platform.model_copy(update={"sweep": SMALL_CHUNKS})
        pipeline = mysql_db.pipeline(*tables, sinks=sinks)
        made = Stack(mysql_db, spark, platform, pipeline)  # type: ignore[arg-type]
        made.deploy()
        return made

    return make
