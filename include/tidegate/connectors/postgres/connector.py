"""The PostgreSQL source: protocol v4's lifecycle over the parts of this package."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Final, Literal

from tidegate.config.pipeline import PipelineConfig
from tidegate.config.platform import PlatformConfig
from tidegate.connectors.changes import ChangeStream
from tidegate.connectors.cut import Cut
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
from tidegate.connectors.postgres.settings import PostgresSettings
from tidegate.connectors.postgres.table_facts import table_facts
from tidegate.connectors.protocol import (
    AvailableTable,
    ConnectorRole,
    OpenInfo,
    Provisioned,
    RunPhase,
    RunRequest,
    RunSummary,
    ValidationReport,
)
from tidegate.connectors.source_status import SourceStatus
from tidegate.envelope.position import Position
from tidegate.errors import ConfigError
from tidegate.names import TableId
from tidegate.schema.table import TableSchema
from tidegate.schema.table_facts import TableFacts

if TYPE_CHECKING:
    from tidegate.config.secrets import Secrets

CONNECTOR_ID: Final = "postgres"
CAPABILITIES: Final = ("changes", "cut", "discover", "provision")


class PostgresConnector:
    """Holds no connection between calls, so it can be kept, and closed twice."""

    shared_cuts = True

    def __init__(
        self, pipeline: PipelineConfig, platform: PlatformConfig, secrets: Secrets | None = None
    ) -> None:
        self.settings = PostgresSettings.of(pipeline, platform, secrets)

    def open(self) -> OpenInfo:
        with session(self.settings, "opening") as connection:
            row = connection.execute("SHOW server_version").fetchone()
        return OpenInfo(
            connector_id=CONNECTOR_ID,
            role=ConnectorRole.SOURCE,
            system=f"PostgreSQL {(row or ('?',))[0]}",
            capabilities=CAPABILITIES,
            default_limits={"batch_bytes": self.settings.batch_bytes},
        )

    def validate(self) -> ValidationReport:
        return validate.validate(self.settings)

    def run(self, request: RunRequest) -> RunSummary:
        """``discover``: the schemas of the tables. Reading is ``changes`` and ``cut``."""
        if request.phase is not RunPhase.DISCOVER:
            raise ConfigError(
                "connector.phase",
                f"the PostgreSQL source does not run the phase {request.phase}",
                hint="use discover; reading goes through capture and sweep",
            )
        names = request.streams or self.settings.tables
        schemas = tuple(self.discover(TableId.parse(name)) for name in names)
        return RunSummary(ConnectorRole.SOURCE, request.phase, len(schemas), schemas)

    def close(self) -> None:
        """Nothing is held; streams and cuts close with their contexts."""

    def discover(self, table: TableId) -> TableSchema:
        with session(self.settings, "reading the schema") as connection:
            return discover.discover(connection, table, self.settings.publication)

    def available(self) -> tuple[AvailableTable, ...]:
        return listing.available(self.settings)

    def facts(self, table: TableId, known: int | None) -> TableFacts:
        with session(self.settings, "reading the catalog") as connection:
            return table_facts(connection, table, known)

    def plan(self, deployment: str) -> tuple[str, ...]:
        return provision.plan(self.settings, deployment)

    def provision(self, deployment: str, *, slot_is_ours: bool, renew: bool = False) -> Provisioned:
        return provision.provision(self.settings, deployment, slot_is_ours, renew)

    def deprovision(
        self, deployment: str, *, slot_is_ours: bool, dry_run: bool = False
    ) -> tuple[str, ...]:
        return provision.deprovision(self.settings, deployment, slot_is_ours, dry_run)

    def changes(
        self, after: Position, *, until: Position | Literal["now"] | None = None
    ) -> AbstractContextManager[ChangeStream]:
        return capture.open_changes(self.settings, after, until)

    def cut(self, tables: tuple[TableId, ...], *, head: Position) -> AbstractContextManager[Cut]:
        return sweep.open_cut(self.settings, tables, head.epoch)

    def check_history(self, after: Position) -> None:
        with session(self.settings, "checking the slot") as connection:
            slot_checks.check_slot(connection, self.settings, after)

    def status(self, head: Position | None = None) -> SourceStatus:
        return status.status(self.settings, head.epoch if head else None)
