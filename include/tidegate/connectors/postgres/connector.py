"""The PostgreSQL source: protocol v4's lifecycle over the parts of this package."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Literal

from tidegate.connectors.changes import ChangeStream
from tidegate.connectors.cut import ExactCut
from tidegate.connectors.postgres import (
    capture,
    discover,
    listing,
    provision,
    slot_checks,
    status,
    sweep,
    validate,
)
from tidegate.connectors.postgres.connection import session
from tidegate.connectors.postgres.publication import unpublished
from tidegate.connectors.postgres.settings import PostgresSettings
from tidegate.connectors.postgres.table_facts import table_facts
from tidegate.connectors.protocol import (
    SOURCE_CAPABILITIES,
    AvailableTable,
    Provisioned,
    ValidationReport,
)
from tidegate.connectors.source import SourceConnector
from tidegate.connectors.source_status import SourceStatus
from tidegate.envelope.position import Position
from tidegate.names import TableId
from tidegate.schema.table import TableSchema
from tidegate.schema.table_facts import TableFacts


class PostgresConnector(SourceConnector[PostgresSettings]):
    """Implements ``Source``, ``ListsTables`` and ``CutsBeside``."""

    connector_id = "postgres"
    capabilities = SOURCE_CAPABILITIES
    settings_type = PostgresSettings

    def system(self) -> str:
        with session(self.settings, "opening") as connection:
            row = connection.execute("SHOW server_version").fetchone()
        return f"PostgreSQL {(row or ('?',))[0]}"

    def validate(self) -> ValidationReport:
        return validate.validate(self.settings)

    def discover(self, table: TableId) -> TableSchema:
        with session(self.settings, "reading the schema") as connection:
            return discover.discover(connection, table, self.settings.publication)

    def discover_all(self, tables: tuple[TableId, ...]) -> Mapping[TableId, TableSchema]:
        with session(self.settings, "reading the schemas") as connection:
            return {
                table: discover.discover(connection, table, self.settings.publication)
                for table in tables
            }

    def available(self) -> tuple[AvailableTable, ...]:
        return listing.available(self.settings)

    def facts(self, table: TableId, known: int | None) -> TableFacts:
        with session(self.settings, "reading the catalog") as connection:
            found = table_facts(connection, table, known)
            unsent = unpublished(connection, self.settings.publication, (table,))
            return replace(found, sent=table not in unsent)

    def plan(self, deployment: str) -> tuple[str, ...]:
        return provision.plan(self.settings, deployment)

    def provision(self, deployment: str, *, ours: bool, renew: bool = False) -> Provisioned:
        return provision.provision(self.settings, deployment, ours, renew)

    def deprovision(self, deployment: str, *, ours: bool, dry_run: bool = False) -> tuple[str, ...]:
        return provision.deprovision(self.settings, deployment, ours, dry_run)

    def changes(
        self, after: Position, *, until: Position | Literal["now"] | None = None
    ) -> AbstractContextManager[ChangeStream]:
        return capture.open_changes(self.settings, after, until)

    def cut(
        self, tables: tuple[TableId, ...], *, head: Position
    ) -> AbstractContextManager[ExactCut]:
        return sweep.open_cut(self.settings, tables, head.epoch)

    hold = cut  # it is exact

    def cut_beside(
        self, tables: tuple[TableId, ...], *, head: Position
    ) -> AbstractContextManager[ExactCut]:
        return sweep.open_cut(self.settings, tables, head.epoch, beside=True)

    def check_history(self, after: Position) -> None:
        with session(self.settings, "checking the slot") as connection:
            slot_checks.check_slot(connection, self.settings, after)

    def status(self, head: Position | None = None) -> SourceStatus:
        return status.status(self.settings, head.epoch if head else None)
