"""One database and one pipeline per path: the cases' statements go in, lake tables come out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote, urlsplit

from tidegate.config.pipeline import PipelineConfig
from tidegate.config.platform import PlatformConfig
from tidegate.connectors.registry import open_source
from tidegate.errors import ConfigError, TidegateError
from tidegate.jobs.abandon import abandon_sweep
from tidegate.jobs.apply import run_apply
from tidegate.jobs.capture import run_capture
from tidegate.jobs.deploy import deploy, undeploy
from tidegate.jobs.sweep import run_sweep
from tidegate.lake.catalog import load, open_catalog
from tidegate.lake.dead_letters import DeadLetters
from tidegate.names import TableId, quote_sql
from tidegate.observability.progress import Progress, silent
from tidegate.testing.conformance.packing import SCHEMA, Unit, setups
from tidegate.testing.postgres_server import PASSWORD, SUPERUSER, running

if TYPE_CHECKING:
    from pyiceberg.catalog import Catalog
    from pyiceberg.table import Table
    from pyspark.sql import SparkSession

_SEARCH: Final = f"-c search_path=public,{SCHEMA}"


@dataclass(frozen=True, slots=True)
class Server:
    """A source server, by its URL; the user must be allowed to create databases and slots."""

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

    @property
    def version(self) -> int:
        with self.connect() as connection:
            return int(connection.info.server_version) // 10000

    def extensions(self) -> frozenset[str]:
        with self.connect() as connection:
            rows = connection.execute("SELECT name FROM pg_available_extensions").fetchall()
            return frozenset(name for (name,) in rows)

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


@contextmanager
def started_server(version: int) -> Iterator[Server]:
    """A server of our own, with its extensions, gone afterwards."""
    config = {"max_prepared_transactions": "10"}
    with running(version, contrib=True, config=config) as server:
        yield Server(f"postgresql://{SUPERUSER}:{PASSWORD}@127.0.0.1:{server.port}")


@dataclass
class Lab:
    """The units of one path, run."""

    spark: SparkSession
    platform: PlatformConfig
    server: Server
    database: str
    path: str
    mode: str
    units: Sequence[Unit]
    progress: Progress = silent
    errors: dict[str, str] = field(default_factory=dict)
    """Code of the first refusal, by table."""
    adjusted: dict[str, dict[str, int]] = field(default_factory=dict)

    @cached_property
    def pipeline(self) -> PipelineConfig:
        return self.pipeline_of(self.units)

    def lake_table(self, table: TableId) -> Table | None:
        """The lake's table of a captured one."""
        return load(self._catalog, self.pipeline.target(table).identifier)

    def dead_letters(self, table: TableId) -> int:
        """How many changes of it wait."""
        letters = DeadLetters(self._catalog, self.pipeline)
        return len(letters.waiting(str(table), self.lake_table(table)))

    @cached_property
    def _catalog(self) -> Catalog:
        return open_catalog(self.platform, self.pipeline)

    def pipeline_of(self, units: Iterable[Unit]) -> PipelineConfig:
        units = list(units)
        tables = {
            str(table): unit.options.get(letter)
            for unit in units
            for letter, table in unit.tables.items()
        }
        options = {name: own.model_dump(exclude_unset=True) for name, own in tables.items() if own}
        iceberg = {"write_mode": self.mode, "tables": options}
        return PipelineConfig.model_validate(
            {
                "pipeline_id": self.database,
                "source": {**self.server.facts, "database": self.database, "tables": list(tables)},
                "sinks": [{"sink_id": "lake", "sink_type": "iceberg", "iceberg": iceberg}],
            }
        )

    def prepare(self) -> None:
        """The database's types and every table."""
        cases = [case for unit in self.units for case in unit.cases]
        self._execute("setup", [f"CREATE SCHEMA {SCHEMA}", *setups(cases)])
        for unit in self.units:
            self._execute(unit.name, unit.ddl)

    def run(self) -> None:
        """Sweep and log, as the path has them."""
        scripts = {unit.name: unit.script(self.path) for unit in self.units}
        deploy(self.pipeline, self.platform)
        for name, script in scripts.items():
            self._execute(name, script.before)
        self._sweep()
        most = max(len(script.batches) for script in scripts.values())
        for number in range(most):
            for name, script in scripts.items():
                self._execute(name, script.batches[number] if number < len(script.batches) else ())
            self._apply(number)
            self.progress(f"{self.path} {self.mode}", number + 1, most, "batches")

    def close(self) -> None:
        """Leave nothing at the source; a sweep that was refused still holds its table's gate. The
        lake tables go with the caller's lake, file by file they would take a minute."""
        abandon_sweep(
            self.spark, self.pipeline, self.platform, actor="conformance", reason="the case is over"
        )
        undeploy(self.pipeline, self.platform)

    def problems(self, unit: Unit) -> list[str]:
        """Codes of what ``validate`` says about a unit's tables."""
        source = open_source(self.pipeline_of([unit]), self.platform)
        try:
            return [problem.code for problem in source.validate().problems]
        finally:
            source.close()

    def _sweep(self) -> None:
        result = run_sweep(
            self.spark, self.pipeline, self.platform, run="conformance", progress=self.progress
        )
        for table in result.tables:
            self._note(table.table, table.error, table.adjusted)

    def _apply(self, number: int) -> None:
        run_capture(self.pipeline, self.platform)
        result = run_apply(
            self.spark, self.pipeline, self.platform, run=f"batch_{number}", progress=self.progress
        )
        for table in result.tables:
            self._note(table.table, table.error, table.adjusted)

    def _note(self, table: str, error: TidegateError | None, adjusted: dict[str, int]) -> None:
        if error is not None:
            self.errors.setdefault(table, error.code)
        total = self.adjusted.setdefault(table, {})
        for column, count in adjusted.items():
            total[column] = total.get(column, 0) + count

    def _execute(self, name: str, statements: Iterable[str]) -> None:
        import psycopg

        texts = list(statements)
        if not texts:
            return
        with self.server.connect(self.database) as connection:
            for statement in texts:
                try:
                    connection.execute(statement.encode())
                except psycopg.Error as error:
                    raise ConfigError(
                        "conformance.case_sql",
                        f"{name}: the server refused {statement[:200]!r}: {error}",
                        hint="mend the case, or limit it to servers that know this (since, until)",
                    ) from error
                connection.execute("DISCARD ALL")  # each statement in a session of its own
