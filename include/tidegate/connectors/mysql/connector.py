"""The MySQL and MariaDB source: protocol v4's lifecycle over the parts of this package."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Final, Literal

from tidegate.config.pipeline import PipelineConfig
from tidegate.config.platform import PlatformConfig
from tidegate.connectors.changes import ChangeStream
from tidegate.connectors.cut import Cut
from tidegate.connectors.mysql import capture, discover, history, position, sweep, validate
from tidegate.connectors.mysql.connection import Connection, is_mariadb, query, session, variable
from tidegate.connectors.mysql.settings import MysqlSettings
from tidegate.connectors.protocol import (
    ConnectorRole,
    OpenInfo,
    Provisioned,
    RunPhase,
    RunRequest,
    RunSummary,
    ValidationReport,
)
from tidegate.connectors.source_status import SlotStatus, SourceStatus
from tidegate.envelope.position import BINLOG, Position
from tidegate.errors import ConfigError, FatalError
from tidegate.names import TableId
from tidegate.schema.table import TableSchema
from tidegate.schema.table_facts import TableFacts

if TYPE_CHECKING:
    from tidegate.config.secrets import Secrets

CONNECTOR_ID: Final = "mysql"
CAPABILITIES: Final = ("changes", "cut", "discover")
RESERVED: Final = "reserved"
_PRESENT: Final = 1
"""MySQL numbers no tables; that one exists is all there is to tell."""


class MysqlConnector:
    """Holds no connection between calls, so it can be kept, and closed twice."""

    shared_cuts = False

    def __init__(
        self, pipeline: PipelineConfig, platform: PlatformConfig, secrets: Secrets | None = None
    ) -> None:
        self.settings = MysqlSettings.of(pipeline, platform, secrets)

    def open(self) -> OpenInfo:
        with session(self.settings, "opening") as connection:
            version = str(query(connection, "SELECT version()")[0][0])
            name = "MariaDB" if is_mariadb(connection) else "MySQL"
        return OpenInfo(
            connector_id=CONNECTOR_ID,
            role=ConnectorRole.SOURCE,
            system=f"{name} {version}",
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
                f"the MySQL source does not run the phase {request.phase}",
                hint="use discover; reading goes through capture and sweep",
            )
        names = request.streams or self.settings.tables
        schemas = tuple(self.discover(TableId.parse(name)) for name in names)
        return RunSummary(ConnectorRole.SOURCE, request.phase, len(schemas), schemas)

    def close(self) -> None:
        """Nothing is held; streams and cuts close with their contexts."""

    def discover(self, table: TableId) -> TableSchema:
        with session(self.settings, "reading the schema") as connection:
            return discover.discover(connection, table)

    def facts(self, table: TableId, known: int | None) -> TableFacts:
        """Changes without rows are seen in the log itself (``ddl``), not in the catalog."""
        with session(self.settings, "reading the catalog") as connection:
            found = discover.relation(connection, table)
        return TableFacts(None if found is None else _PRESENT)

    def plan(self, deployment: str) -> tuple[str, ...]:
        return ()

    def provision(self, deployment: str, *, slot_is_ours: bool, renew: bool = False) -> Provisioned:
        """The server needs nothing made: its log is joined where it ends."""
        start = capture.new_epoch(self.settings)
        return Provisioned(start=start, publication="", slot=self.settings.slot)

    def deprovision(
        self, deployment: str, *, slot_is_ours: bool, dry_run: bool = False
    ) -> tuple[str, ...]:
        return ()

    def changes(
        self, after: Position, *, until: Position | Literal["now"] | None = None
    ) -> AbstractContextManager[ChangeStream]:
        return capture.open_changes(self.settings, after, until)

    def cut(self, tables: tuple[TableId, ...], *, head: Position) -> AbstractContextManager[Cut]:
        return sweep.open_cut(self.settings, tables, head)

    def check_history(self, after: Position) -> None:
        with session(self.settings, "checking the binary log") as connection:
            history.find(self.settings, connection, after)

    def status(self, head: Position | None = None) -> SourceStatus:
        """No slot keeps the log for us; what is on the server's disk is what may be read."""
        with session(self.settings, "reading the status") as connection:
            name, offset = position.current(connection)
            present = position.files(connection)
            keep = variable(connection, "max_binlog_total_size")
            term = 0 if head is None else self._term(connection, head)
        size = sum(file.size for file in present)
        epoch = head.epoch if head else f"{BINLOG}unknown_0_0"
        return SourceStatus(
            current=position.position(epoch, term, name, offset),
            slot=SlotStatus(
                name=self.settings.slot,
                active_pid=None,
                confirmed=None,
                retained_bytes=0,
                wal_status=RESERVED,
            ),
            keep_bytes=int(keep) if keep and int(keep) else None,
            log_bytes=size,
        )

    def _term(self, connection: Connection, head: Position) -> int:
        """A server that does not continue the log still has a status: seen as ours, which the
        next capture refuses with the reason."""
        try:
            return history.term(self.settings, connection, head)
        except FatalError:
            return position.Place.of(head).term
