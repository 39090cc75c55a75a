"""The SQLite source: protocol v4's lifecycle over the parts of this package."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Literal

from tidegate.connectors.changes import ChangeStream
from tidegate.connectors.cut import Cut
from tidegate.connectors.protocol import (
    SOURCE_CAPABILITIES,
    AvailableTable,
    Capability,
    Problem,
    Provisioned,
    Severity,
    ValidationReport,
)
from tidegate.connectors.source import SourceConnector
from tidegate.connectors.source_status import SlotStatus, SourceStatus
from tidegate.envelope.position import Position, boundary
from tidegate.errors import ConfigError
from tidegate.names import TableId
from tidegate.schema.table import TableSchema
from tidegate.schema.table_facts import TableFacts
from tidegate_sqlite import capture, cut
from tidegate_sqlite.change_table import ChangeTable
from tidegate_sqlite.database import session, writing
from tidegate_sqlite.settings import SqliteSettings
from tidegate_sqlite.types import discover

_TABLES = """
SELECT m.name, (SELECT count(*) FROM pragma_table_info(m.name) WHERE pk) FROM sqlite_master AS m
WHERE type = 'table' AND m.name NOT LIKE 'sqlite\\_%' ESCAPE '\\'
  AND m.name NOT LIKE '\\_tidegate\\_%' ESCAPE '\\' ORDER BY m.name
"""


class SqliteConnector(SourceConnector[SqliteSettings]):
    """Implements ``Source`` and ``ListsTables``."""

    connector_id = "sqlite"
    capabilities = SOURCE_CAPABILITIES - {Capability.CUT_HOLD, Capability.CUT_SHARE}
    settings_type = SqliteSettings

    def system(self) -> str:
        with self._session("opening") as (connection, _):
            connection.execute("SELECT count(*) FROM sqlite_master")  # is it a database at all?
            return f"SQLite {sqlite3.sqlite_version}"

    def validate(self) -> ValidationReport:
        with self._session("validating") as (connection, _):
            return ValidationReport(tuple(self._problems(connection)))

    def discover(self, table: TableId) -> TableSchema:
        with self._session("reading the schema") as (connection, _):
            return discover(connection, table)

    def available(self) -> tuple[AvailableTable, ...]:
        with self._session("listing tables") as (connection, _):
            return tuple(
                AvailableTable(str(TableId("main", name)), bool(keys), 0)
                for name, keys in connection.execute(_TABLES).fetchall()
            )

    def facts(self, table: TableId, known: int | None) -> TableFacts:
        with self._session("reading the catalog") as (connection, _):
            sql = "SELECT rootpage FROM sqlite_master WHERE type = 'table' AND name = ?"
            found = connection.execute(sql, (table.name,)).fetchone()
        return TableFacts(None if found is None else 1)

    def plan(self, deployment: str) -> tuple[str, ...]:
        with self._session("planning") as (_, log):
            if log.deployment is None:
                return (f"create {log.name} and triggers on {len(self.settings.tables)} tables",)
            altered = log.altered(self.settings.table_ids)
            return tuple(f"replace the triggers of {table}" for table in altered)

    def provision(self, deployment: str, *, ours: bool, renew: bool = False) -> Provisioned:
        with self._session("deploying") as (connection, log), writing(connection):
            actions = []
            owner = log.deployment
            if owner is None:
                log.create(deployment)
                actions.append(f"{log.name} created")
            elif owner != deployment:
                raise ConfigError(
                    "sqlite.foreign",
                    f"{log.name} belongs to another deployment",
                    hint="give the pipeline another pipeline_id, or undeploy the other",
                )
            for table in log.altered(self.settings.table_ids):
                log.watch(discover(connection, table))
                actions.append(f"triggers on {table} created")
            return Provisioned(log.confirmed, {"table": log.name}, tuple(actions))

    def deprovision(self, deployment: str, *, ours: bool, dry_run: bool = False) -> tuple[str, ...]:
        with self._session("undeploying") as (connection, log), writing(connection):
            if log.deployment != deployment:
                return ()
            objects = log.objects()
            for kind, name in () if dry_run else objects:
                connection.execute(f'DROP {kind} "{name}"')
            return tuple(f"{kind} {name} dropped" for kind, name in objects)

    def changes(
        self, after: Position, *, until: Position | Literal["now"] | None = None
    ) -> AbstractContextManager[ChangeStream]:
        return capture.open_changes(self.settings, after, until)

    def cut(self, tables: tuple[TableId, ...], *, head: Position) -> AbstractContextManager[Cut]:
        return cut.open_cut(self.settings, tables, head.epoch)

    def check_history(self, after: Position) -> None:
        with self._session("checking the change table") as (_, log):
            log.check(after)

    def status(self, head: Position | None = None) -> SourceStatus:
        """Names the end of the log, which seals what is committed."""
        with self._session("reading the status") as (connection, log):
            if log.deployment is None:
                return SourceStatus(boundary(head.epoch if head else "sqlite-unknown", 0), None)
            with writing(connection):
                current = log.seal()
            return SourceStatus(
                current,
                SlotStatus(log.name, None, log.confirmed, log.retained_bytes(), None),
            )

    @contextmanager
    def _session(self, doing: str) -> Iterator[tuple[sqlite3.Connection, ChangeTable]]:
        with session(self.settings, doing) as connection:
            yield connection, ChangeTable(connection, self.settings.pipeline_id)

    def _problems(self, connection: sqlite3.Connection) -> Iterator[Problem]:
        if not self.settings.tables:
            yield Problem("sqlite.no_tables", Severity.ERROR, "source.tables lists no table")
        for table in self.settings.table_ids:
            try:
                schema = discover(connection, table)
            except ConfigError as error:
                yield Problem("sqlite.table", Severity.ERROR, error.message, str(table))
                continue
            if not schema.key_columns:
                yield Problem("sqlite.no_key", Severity.ERROR, "no primary key", str(table))
