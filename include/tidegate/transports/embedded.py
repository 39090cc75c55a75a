"""The embedded transport: change stream → Iceberg change log → confirmation.

The order of the steps is the guarantee. Schemas, and what the source's catalog tells, are durable
before rows that come after them; rows are durable before the source may forget them (I2); a batch
is committed only where a transaction ends (I5). Dying between any two steps repeats work, never
loses or doubles it (I3).
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from tidegate.config.platform import CaptureConfig, RetryConfig
from tidegate.connectors.changes import ChangeBatch, ChangeStream, Comparing, TableHold
from tidegate.connectors.protocol import Source
from tidegate.envelope.position import Position
from tidegate.errors import Decision, HeldError, TidegateError, decide
from tidegate.faults import point
from tidegate.lake.change_log import ChangeLog
from tidegate.lake.log_writer import LogWriter
from tidegate.lake.schema_history import SchemaEntry, SchemaHistory
from tidegate.names import LOOK_PROPERTY, TableId
from tidegate.observability import log
from tidegate.observability.progress import Progress, silent
from tidegate.schema.table_facts import TableFacts
from tidegate.transports.protocol import CaptureResult, Until

_LOG = log.get(__name__)

SLOT_ACTIVE: Final = "capture.slot_active"
"""The error code of a source whose log another reader follows."""


Hold = Callable[[TableHold], None]
"""Closes a table's gate; may be told again of what was closed already."""

Told = Callable[[Sequence[SchemaEntry]], None]
"""Hears of schemas that are new and durable."""


@dataclass(slots=True)
class _Tally:
    rows: int = 0
    transactions: int = 0
    commits: int = 0
    bytes: int = 0
    began: float = field(default_factory=time.monotonic)


class EmbeddedEventSource:
    """Captures one pipeline. Reconnects by itself while the failure can pass."""

    def __init__(
        self,
        source: Source,
        change_log: ChangeLog,
        history: SchemaHistory,
        settings: CaptureConfig,
        retry: RetryConfig,
        progress: Progress = silent,
        hold: Hold | None = None,
        told: Told = lambda added: None,
    ) -> None:
        self._source = source
        self._log = change_log
        self._history = history
        self._settings = settings
        self._retry = retry
        self._progress = progress
        self._hold = hold or _refuse_hold
        self._told = told
        self._tally = _Tally()

    def start(self, until: Until, stop: threading.Event) -> CaptureResult:
        failures = 0
        while True:
            commits = self._tally.commits
            try:
                through = self._log.head().captured_through
                if not (isinstance(until, Position) and through >= until):
                    through = self._attempt(until, stop)
                return self._result(through)
            except TidegateError as error:
                failures = 1 if self._tally.commits > commits else failures + 1
                if decide(error) is not Decision.RETRY:
                    raise
                if failures >= self._retry.max_attempts:
                    raise _given_up(error) from error
                pause = backoff(self._retry, failures)
                log.event(_LOG, "capture: trying again", code=error.code, wait_seconds=pause)
                if stop.wait(pause):
                    raise

    def _attempt(self, until: Until, stop: threading.Event) -> Position:
        """One connection's worth of work."""
        writer = self._log.writer()
        try:
            with self._source.changes(writer.through, until=until) as stream:
                # Who names a position relies on it; "now" of a quiet source need not be noted.
                _Run(self, writer, stream).drain(stop, noted=isinstance(until, Position))
                stream.settle()
        except BaseException:
            writer.abort()
            raise
        return writer.through

    def _result(self, through: Position) -> CaptureResult:
        tally = self._tally
        seconds = round(time.monotonic() - tally.began, 3)
        return CaptureResult(
            tally.rows, tally.transactions, through, tally.commits, tally.bytes, seconds
        )


class _Run:
    """One stream being drained into one writer."""

    def __init__(self, owner: EmbeddedEventSource, writer: LogWriter, stream: ChangeStream) -> None:
        self._owner = owner
        self._writer = writer
        self._stream = stream
        self._bytes = 0
        self._boundary: Position | None = None
        self._committed_at = time.monotonic()
        self._idle_since = owner._log.committed_at()
        self._mark = writer.mark

    def drain(self, stop: threading.Event, *, noted: bool) -> None:
        """``noted``: commit the last boundary even if no change lies before it."""
        for batch in self._stream:
            self._take(batch)
            if self._boundary is not None and (stop.is_set() or self._due()):
                self._commit(self._boundary)
            if stop.is_set() and not self._writer.pending_rows:
                return
        if self._boundary is None:
            return
        if noted or self._writer.pending_rows or self._idle_is_over() or self._otherwise():
            self._commit(self._boundary)

    def _otherwise(self) -> bool:
        """Whether the tables are not what they were: their changes need not have sent a row."""
        through = self._boundary
        if through is None or through <= self._writer.through:
            return False
        known = self._known(through)
        looks = self._look(known, through)
        return any(t in looks and looks[t].following(facts) != facts for t, facts in known.items())

    def _known(self, through: Position) -> Mapping[TableId, TableFacts]:
        facts = self._owner._history.facts
        return facts.known(through, self._writer.through, self._mark)

    def _look(
        self, known: Mapping[TableId, TableFacts], through: Position
    ) -> Mapping[TableId, TableFacts]:
        if isinstance(self._stream, Comparing):
            return self._stream.compare(known, through)
        return self._stream.look()

    def _take(self, batch: ChangeBatch) -> None:
        owner, tally = self._owner, self._owner._tally
        if batch.schemas:
            added = owner._history.record_all([(seen.schema, seen.at) for seen in batch.schemas])
            point("capture.after_schema")
            owner._told(added)
        for table, at in batch.rewritten:
            owner._history.facts.rewritten(str(table), at)
        for table, at in batch.astray:
            owner._history.facts.astray(str(table), at)
        for one in batch.altered:
            owner._history.facts.altered(str(one.table), one.at, one.left, one.came)
        for hold in batch.holds:  # durable before the position passes its reason (I8)
            owner._hold(hold)
        self._writer.write(batch.rows)
        # Only where the last batch ended at a boundary does everything written lie before one.
        self._boundary = batch.through
        self._bytes += batch.raw_bytes
        tally.rows += batch.rows.num_rows
        tally.transactions += batch.transactions
        tally.bytes += batch.raw_bytes
        owner._progress("capture", tally.rows, None, "changes", transactions=tally.transactions)

    def _due(self) -> bool:
        if not self._writer.pending_rows:
            return self._idle_is_over()
        settings = self._owner._settings
        elapsed = time.monotonic() - self._committed_at
        return self._bytes >= settings.commit_bytes or elapsed >= settings.commit_seconds

    def _idle_is_over(self) -> bool:
        """A quiet source costs one empty commit per interval, so that its WAL can go."""
        moved = self._boundary is not None and self._boundary > self._writer.through
        return moved and time.time() - self._idle_since >= self._owner._settings.idle_commit_seconds

    def _commit(self, through: Position) -> None:
        if through <= self._writer.through and not self._writer.pending_rows:
            return
        self._writer.flush()
        point("capture.after_files")
        # Everything up to ``through`` was committed before this look; what it finds is durable
        # before an apply can come there (I3).
        looks = self._look(self._known(through), through)
        self._owner._history.facts.note(looks, self._writer.through, through, captured=True)
        point("capture.after_look")
        mark = next((facts.mark for facts in looks.values() if facts.mark is not None), None)
        self._writer.commit(through, {} if mark is None else {LOOK_PROPERTY: mark})
        self._mark = mark or self._mark
        point("capture.after_commit")
        self._owner._tally.commits += 1
        self._bytes = 0
        self._committed_at, self._idle_since = time.monotonic(), time.time()
        self._stream.confirm(through)  # I2: durable above, released here
        point("capture.after_confirm")


def _refuse_hold(hold: TableHold) -> None:
    raise HeldError(
        "capture.needs_hold",
        f"{hold.table}: {hold.reason}",
        hint="capture through `tidegate capture` or the pipeline's Dag, which hold the table",
    )


def _given_up(error: TidegateError) -> TidegateError:
    """A slot that stays busy is no failure: another capture is at work, and this one waits."""
    if error.code == SLOT_ACTIVE:
        return HeldError(error.code, error.message, hint=error.hint)
    return error


def backoff(retry: RetryConfig, attempt: int) -> float:
    """Seconds to wait before the next attempt."""
    wait = min(
        retry.max_wait_seconds, retry.initial_wait_seconds * retry.multiplier ** (attempt - 1)
    )
    return round(wait * (random.uniform(0.5, 1.0) if retry.jitter else 1.0), 3)
