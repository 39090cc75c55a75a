"""The phase ``read``: the log through the uniform door."""

from __future__ import annotations

from dataclasses import dataclass, field

import pyarrow as pa
import pytest

from tidegate.connectors.running import (
    CheckpointEvent,
    CheckpointKind,
    DeadLetterEvent,
    MetricEvent,
    RunPhase,
    RunRequest,
)
from tidegate.envelope.position import Position
from tidegate.errors import ConfigError
from tidegate.testing.connector.history import (
    ITEMS,
    OTHER,
    LogRow,
    deployed,
    make_tables,
    opened,
    repeatable,
    write_history,
)
from tidegate.testing.connector.subject import Subject


@dataclass
class Collector:
    """A host that keeps what it is handed."""

    batches: list[pa.Table] = field(default_factory=list)
    checkpoints: list[CheckpointEvent] = field(default_factory=list)
    metrics: list[MetricEvent] = field(default_factory=list)
    letters: list[DeadLetterEvent] = field(default_factory=list)

    def batch_emit(self, batch: pa.Table) -> None:
        self.batches.append(batch)

    def batch_next(self) -> pa.Table | None:
        return None

    def telemetry_checkpoint(self, event: CheckpointEvent) -> None:
        self.checkpoints.append(event)

    def telemetry_metric(self, event: MetricEvent) -> None:
        self.metrics.append(event)

    def telemetry_dlq(self, event: DeadLetterEvent) -> None:
        self.letters.append(event)

    @property
    def rows(self) -> list[LogRow]:
        rows = [row for batch in self.batches for row in batch.to_pylist()]
        return repeatable(sorted(rows, key=lambda row: str(row["position"])))


class ReadingChecks:
    """``run`` with the phase ``read``."""

    def test_reading_tells_the_log_and_goes_on_at_its_cursor(self, subject: Subject) -> None:
        make_tables(subject, ITEMS, OTHER)
        with deployed(subject, ITEMS, OTHER) as (connector, made):
            history = write_history(subject, connector, made.start)
            known = repeatable(history.rows)
            host = Collector()
            done = connector.run(RunRequest(RunPhase.READ, cursor=made.start), host)
            assert host.rows == known
            assert done.read is not None and done.read.cursor is not None
            assert (done.read.records, done.read.batches) == (len(known), len(host.batches))
            assert done.read.needs_sweep == ()
            assert {schema.table for schema in done.schemas} == {
                subject.table(ITEMS),
                subject.table(OTHER),
            }
            assert {event.kind for event in host.checkpoints} == {CheckpointKind.SOURCE}
            assert sum(event.records for event in host.checkpoints) == len(known)
            assert host.checkpoints[-1].cursor == str(done.read.cursor)
            rest = Collector()
            again = connector.run(RunRequest(RunPhase.READ, cursor=done.read.cursor), rest)
            assert rest.rows == []
            assert again.read is not None and again.read.records == 0

    def test_a_bounded_read_ends_with_a_transaction_and_misses_nothing(
        self, subject: Subject
    ) -> None:
        make_tables(subject, ITEMS, OTHER)
        with deployed(subject, ITEMS, OTHER) as (connector, made):
            known = repeatable(write_history(subject, connector, made.start).rows)
            host = Collector()
            cursor: Position = made.start
            for _ in known:
                request = RunRequest(RunPhase.READ, max_records=1, cursor=cursor)
                done = connector.run(request, host).read
                assert done is not None and done.cursor is not None
                told = [row for row in known if str(row["position"]) <= done.cursor.place]
                assert host.rows == told
                cursor = done.cursor
            assert host.rows == known

    def test_one_table_is_read_alone_and_a_dry_run_hands_nothing_on(self, subject: Subject) -> None:
        make_tables(subject, ITEMS, OTHER)
        with deployed(subject, ITEMS, OTHER) as (connector, made):
            known = repeatable(write_history(subject, connector, made.start).rows)
            other = str(subject.table(OTHER))
            wanted = [row for row in known if row["table"] == other]
            host = Collector()
            asked = RunRequest(RunPhase.READ, streams=(other,), cursor=made.start, dry_run=True)
            seen = connector.run(asked, host).read
            assert seen is not None and seen.records == len(wanted)
            assert (host.batches, host.checkpoints) == ([], [])
            asked = RunRequest(RunPhase.READ, streams=(other,), cursor=made.start)
            connector.run(asked, host)
            assert host.rows == wanted

    def test_reading_from_nowhere_is_refused(self, subject: Subject) -> None:
        make_tables(subject, ITEMS)
        with opened(subject, ITEMS) as connector, pytest.raises(ConfigError) as refused:
            connector.run(RunRequest(RunPhase.READ), Collector())
        assert refused.value.code == "connector.read_from"
