"""The phase ``read`` of every source: its log through the uniform door, from a cursor."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from tidegate.connectors.changes import ChangeBatch, ChangeStream
from tidegate.connectors.running import (
    CheckpointEvent,
    CheckpointKind,
    ConnectorRole,
    Host,
    ReadSummary,
    RunPhase,
    RunRequest,
    RunSummary,
)
from tidegate.envelope.position import Position
from tidegate.errors import ConfigError
from tidegate.schema.table import TableSchema


class LogRead:
    """One run: hands on what was committed after the request's cursor, up to ``max_records``.

    Nothing is confirmed: the source forgets only what lies before the cursor of a later request.
    """

    def __init__(self, request: RunRequest, host: Host | None) -> None:
        if request.cursor is None or host is None:
            raise ConfigError(
                "connector.read_from",
                "reading needs a cursor to begin at, and a host that takes the batches",
                hint="begin at the position that provision gave, or at the cursor of the last"
                " summary",
            )
        self._request = request
        self._host = host
        self.cursor = request.cursor
        """Nothing at or before it is still to come."""
        self._streams = pa.array(request.streams, pa.string()) if request.streams else None
        self._records = self._bytes = self._batches = self._checkpoints = 0
        self._told_records = self._told_bytes = 0
        self._needs_sweep: set[str] = set()
        self._schemas: dict[str, TableSchema] = {}

    def drain(self, stream: ChangeStream) -> RunSummary:
        for batch in stream:
            self._take(batch)
            if self._is_full:
                break
        return self._summary()

    @property
    def _is_full(self) -> bool:
        """At a boundary: half a transaction is never the end of a run (I5)."""
        most = self._request.max_records
        return most is not None and self._told_records >= most

    def _take(self, batch: ChangeBatch) -> None:
        rows = batch.rows
        if self._streams is not None:
            rows = rows.filter(pc.is_in(rows["table"], value_set=self._streams))
        self._records += rows.num_rows
        self._bytes += batch.raw_bytes
        self._schemas |= {seen.schema.schema_id: seen.schema for seen in batch.schemas}
        self._needs_sweep |= {hold.table for hold in batch.holds}
        self._needs_sweep |= {str(table) for table, _ in (*batch.rewritten, *batch.astray)}
        if rows.num_rows:
            self._batches += 1
            if not self._request.dry_run:
                self._host.batch_emit(rows)
        if batch.through is not None:
            self._checkpoint(batch.through)

    def _checkpoint(self, through: Position) -> None:
        if through <= self.cursor:
            return
        self.cursor = through
        if not self._request.dry_run:
            self._host.telemetry_checkpoint(
                CheckpointEvent(
                    CheckpointKind.SOURCE,
                    "*",
                    self._checkpoints,
                    str(through),
                    self._records - self._told_records,
                    self._bytes - self._told_bytes,
                )
            )
        self._checkpoints += 1
        self._told_records, self._told_bytes = self._records, self._bytes

    def _summary(self) -> RunSummary:
        done = ReadSummary(
            self._records,
            self._bytes,
            self._batches,
            self.cursor,
            tuple(sorted(self._needs_sweep)),
        )
        schemas = tuple(self._schemas.values())
        return RunSummary(ConnectorRole.SOURCE, RunPhase.READ, schemas, read=done)
