"""The MySQL and MariaDB source: protocol v4's lifecycle over the parts of this package."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager
from typing import Final, Literal

from tidegate.connectors.changes import ChangeStream
from tidegate.connectors.cut import Cut, ExactCut
from tidegate.connectors.mysql import (
    capture,
    discover,
    held,
    history,
    looks,
    position,
    sweep,
    validate,
)
from tidegate.connectors.mysql.connection import (
    Connection,
    expiry_seconds,
    is_mariadb,
    query,
    session,
    variable,
)
from tidegate.connectors.mysql.settings import MysqlSettings
from tidegate.connectors.protocol import Capability, Provisioned, ValidationReport
from tidegate.connectors.source import SourceConnector
from tidegate.connectors.source_status import SlotStatus, SourceStatus
from tidegate.envelope.position import BINLOG, Position
from tidegate.errors import FatalError
from tidegate.names import TableId
from tidegate.schema.table import TableSchema
from tidegate.schema.table_facts import TableFacts

RESERVED: Final = "reserved"


class MysqlConnector(SourceConnector[MysqlSettings]):
    """Implements ``Source``."""

    connector_id = "mysql"
    capabilities = frozenset(
        {
            Capability.SCHEMA_DISCOVER,
            Capability.CHANGES_READ,
            Capability.CUT_READ,
            Capability.CUT_HOLD,
        }
    )
    settings_type = MysqlSettings

    def system(self) -> str:
        with session(self.settings, "opening") as connection:
            version = str(query(connection, "SELECT version()")[0][0])
            name = "MariaDB" if is_mariadb(connection) else "MySQL"
        return f"{name} {version}"

    def validate(self) -> ValidationReport:
        return validate.validate(self.settings)

    def discover(self, table: TableId) -> TableSchema:
        with session(self.settings, "reading the schema") as connection:
            return discover.discover(connection, table)

    def discover_all(self, tables: tuple[TableId, ...]) -> Mapping[TableId, TableSchema]:
        with session(self.settings, "reading the schemas") as connection:
            return {table: discover.discover(connection, table) for table in tables}

    def facts(self, table: TableId, known: int | None) -> TableFacts:
        """That it exists. All else is compared where the log was read up to it (``looks``)."""
        with session(self.settings, "reading the catalog") as connection:
            found = discover.relation(connection, table)
        return TableFacts(None if found is None else looks.PRESENT)

    def plan(self, deployment: str) -> tuple[str, ...]:
        return ()

    def provision(self, deployment: str, *, ours: bool, renew: bool = False) -> Provisioned:
        """The server needs nothing made: its log is joined where it ends."""
        return Provisioned(start=capture.new_epoch(self.settings))

    def deprovision(self, deployment: str, *, ours: bool, dry_run: bool = False) -> tuple[str, ...]:
        return ()

    def changes(
        self, after: Position, *, until: Position | Literal["now"] | None = None
    ) -> AbstractContextManager[ChangeStream]:
        return capture.open_changes(self.settings, after, until)

    def cut(self, tables: tuple[TableId, ...], *, head: Position) -> AbstractContextManager[Cut]:
        return sweep.open_cut(self.settings, tables, head)

    def hold(
        self, tables: tuple[TableId, ...], *, head: Position
    ) -> AbstractContextManager[ExactCut]:
        return held.open_held(self.settings, tables, head)

    def check_history(self, after: Position) -> None:
        with session(self.settings, "checking the binary log") as connection:
            history.find(self.settings, connection, after)

    def status(self, head: Position | None = None) -> SourceStatus:
        """No slot keeps the log for us; what is on the server's disk is what may be read."""
        with session(self.settings, "reading the status") as connection:
            name, offset = position.current(connection)
            present = position.files(connection)
            keep = variable(connection, "max_binlog_total_size")
            expiry = expiry_seconds(connection)
            term = 0 if head is None else self._term(connection, head)
            parts = {position.volume(term, file.number): file.size for file in present}
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
            by_time=True,
            expiry_seconds=expiry,
            parts=parts,
        )

    def _term(self, connection: Connection, head: Position) -> int:
        """A server that does not continue the log still has a status: seen as ours, which the
        next capture refuses with the reason."""
        try:
            return history.term(self.settings, connection, head)
        except FatalError:
            return position.Place.of(head).term
