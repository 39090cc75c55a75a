"""The change log: one append-only Iceberg table per pipeline (``transport_mode: embedded``).

Order: rows carry their position; a snapshot's rows end at a transaction boundary. Duplicates: none,
because an append lands only if ``captured_through`` still is what the writer last saw. Durability:
what ``commit`` returned for is durable, and only then may the source's log be released (I2).
"""

from __future__ import annotations

from collections.abc import Iterator

from pyiceberg.catalog import Catalog
from pyiceberg.exceptions import TableAlreadyExistsError
from pyiceberg.table import Table
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.snapshots import Snapshot

from tidegate.config.pipeline import PipelineConfig
from tidegate.envelope.position import Position
from tidegate.errors import FatalError, RetriableError
from tidegate.lake import commits
from tidegate.lake.catalog import ensure_namespace, load
from tidegate.lake.ledger import check_format, drop
from tidegate.lake.log_table import (
    LOG_ORDER,
    LOG_PROPERTIES,
    LOG_SCHEMA,
    LOG_SPEC,
    TABLE_NAME,
    LogHead,
    captured,
    reached,
)
from tidegate.lake.log_writer import LogWriter
from tidegate.lake.positions import ancestors, summary
from tidegate.names import STEP_PROPERTY

__all__ = ["LOG_SCHEMA", "ChangeLog", "LogHead", "LogWriter"]


class ChangeLog:
    """A pipeline's change log. One writer at a time, any number of readers."""

    def __init__(self, catalog: Catalog, pipeline: PipelineConfig) -> None:
        self._catalog = catalog
        self.pipeline_id = pipeline.pipeline_id
        self.identifier: tuple[str, str] = (pipeline.control_namespace, TABLE_NAME)

    def exists(self) -> bool:
        return load(self._catalog, self.identifier) is not None

    def create(self, at: Position) -> LogHead:
        """Create the log, empty, captured through ``at``. Again with the same epoch: no change."""
        table = self._create()
        if commits.head_id(table) is not None:
            head = self.head_of(table)
            if head.captured_through.epoch != at.epoch:
                raise FatalError(
                    "change_log.other_epoch",
                    f"the change log of {self.pipeline_id} belongs to epoch"
                    f" {head.captured_through.epoch}, the source now is {at.epoch}",
                    hint="the slot was re-created or the source restored: `tidegate recover` begins"
                    " a new epoch and sweeps the tables",
                )
            return head
        return self._stamp(table, at, None)

    def begin_epoch(self, at: Position) -> LogHead:
        """Go on in a new epoch from ``at``; tables that stand in the old one need a sweep."""
        table = self.table()
        head = self.head_of(table)
        if head.captured_through.epoch == at.epoch:
            return head
        return self._stamp(table, at, head.snapshot_id)

    def table(self) -> Table:
        """The Iceberg table, freshly loaded."""
        table = load(self._catalog, self.identifier)
        if table is None:
            raise FatalError(
                "change_log.missing",
                f"pipeline {self.pipeline_id} has no change log",
                hint="run `tidegate deploy` first",
            )
        check_format(table)
        return table

    def head(self) -> LogHead:
        """Where the log stands."""
        return self.head_of(self.table())

    def committed_at(self) -> float:
        """When the log was last committed to, in seconds since 1970; 0 if never."""
        snapshot = self.table().current_snapshot()
        return 0.0 if snapshot is None else snapshot.timestamp_ms / 1000

    def head_of(self, table: Table) -> LogHead:
        """Where this loaded state of the log stands; rewrites are looked through (I1)."""
        current = commits.head_id(table)
        found = next(_captured(table.metadata), None)
        if current is None or found is None:
            raise FatalError(
                "change_log.position_lost",
                f"no snapshot of the change log of {self.pipeline_id} says what was captured",
                hint="its snapshots were expired by something else than Tidegate: undeploy,"
                " deploy and sweep every table",
            )
        return LogHead(current, found[1])

    def writer(self) -> LogWriter:
        """The writer that goes on where the log now stands."""
        return LogWriter(self)

    def commit_idle(self, through: Position) -> LogHead:
        """Note that nothing happened up to ``through``: one snapshot without files."""
        return self.writer().commit(through)

    def drop(self) -> bool:
        """Remove the log with its files; False if there was none."""
        return drop(self._catalog, self.identifier)

    def _create(self) -> Table:
        ensure_namespace(self._catalog, self.identifier[0])
        table = load(self._catalog, self.identifier)
        if table is not None:
            return table
        try:
            return self._catalog.create_table(
                self.identifier,
                LOG_SCHEMA,
                partition_spec=LOG_SPEC,
                sort_order=LOG_ORDER,
                properties=LOG_PROPERTIES,
            )
        except TableAlreadyExistsError:
            return self._catalog.load_table(self.identifier)

    def _stamp(self, table: Table, at: Position, head: int | None) -> LogHead:
        properties = {
            **reached(at),
            STEP_PROPERTY: "create",
        }
        try:
            return LogHead(commits.append_files(table, (), properties, head), at)
        except RetriableError as error:
            if error.code != commits.MOVED:
                raise
            return self.create(at)  # another deploy was faster


def _captured(metadata: TableMetadata) -> Iterator[tuple[Snapshot, Position]]:
    """Snapshots that say what was captured, newest first."""
    for snapshot in ancestors(metadata):
        position = captured(summary(snapshot))
        if position is not None:
            yield snapshot, position
