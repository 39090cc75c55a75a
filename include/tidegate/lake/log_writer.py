"""Writing to the change log: files first, then one commit for all of them.

Rows wait in memory until they are worth a file (``FLUSH_BYTES``), so memory is bounded whatever
a transaction's size. Files that were written but never committed (a crash) are orphans that
maintenance removes; nobody reads them.
"""

from __future__ import annotations

import itertools
import time
import uuid
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg.io.pyarrow import pyarrow_to_schema, write_file
from pyiceberg.manifest import DataFile
from pyiceberg.partitioning import PartitionFieldValue, PartitionKey
from pyiceberg.table import Table, WriteTask
from pyiceberg.table.locations import load_location_provider
from pyiceberg.transforms import BucketTransform
from pyiceberg.types import StringType

from tidegate.envelope.position import Position
from tidegate.errors import FatalError, RetriableError
from tidegate.lake import commits
from tidegate.lake.log_table import BUCKETS, LogHead, reached
from tidegate.lake.positions import ancestors, summary
from tidegate.names import EPOCH_PROPERTY, LOOK_PROPERTY, PROPERTY_PREFIX

if TYPE_CHECKING:
    from tidegate.lake.change_log import ChangeLog

FLUSH_BYTES: Final = 64 * 1024 * 1024
"""Arrow bytes that make a round of files: large enough for Parquet, small beside a JVM."""

COMMIT_PROPERTY: Final = f"{PROPERTY_PREFIX}commit"
"""Names one commit, so that a writer knows its own snapshot after a lost answer."""

_MOVED_LIMIT: Final = 20
"""Maintenance that moves the head this often in a row is not maintenance."""

_DAY_US: Final = 86_400_000_000


class LogWriter:
    """One capture's hold on the log. Not thread-safe; two of them at once end in an error."""

    def __init__(self, log: ChangeLog) -> None:
        self._log = log
        self._table = log.table()
        self._through = log.head_of(self._table).captured_through
        self._waiting: list[pa.RecordBatch] = []
        self._waiting_bytes = 0
        self._files: list[DataFile] = []
        self._write_id = uuid.uuid4()
        self._counter = itertools.count()
        self._token = uuid.uuid4().hex
        self._uncertain = False  # a commit was sent and its answer is not known

    @property
    def through(self) -> Position:
        """What the log had captured when this writer last looked."""
        return self._through

    @property
    def mark(self) -> str | None:
        """Of the newest look at the source's catalog in this epoch; an older one is as true."""
        for facts in map(summary, ancestors(self._table.metadata)):
            if facts.get(EPOCH_PROPERTY, self._through.epoch) != self._through.epoch:
                return None
            if LOOK_PROPERTY in facts:
                return facts[LOOK_PROPERTY]
        return None

    @property
    def pending_rows(self) -> int:
        """Rows written since the last commit."""
        waiting: int = sum(batch.num_rows for batch in self._waiting)
        return waiting + sum(int(file.record_count) for file in self._files)

    def write(self, batches: Iterable[pa.RecordBatch] | pa.RecordBatch | pa.Table) -> None:
        """Take rows in log order. Nothing is visible to readers before :meth:`commit`."""
        for batch in _batches(batches):
            if batch.num_rows:
                self._waiting.append(batch)
                self._waiting_bytes += batch.nbytes
            if self._waiting_bytes >= FLUSH_BYTES:
                self.flush()

    def flush(self) -> None:
        """Write what waits in memory as data files; what fails stays waiting, whole."""
        if not self._waiting:
            return
        rows = pa.Table.from_batches(self._waiting)
        tasks = list(_tasks(self._table, rows, self._write_id, self._counter))
        with commits.storage_errors(), self._cleared_on_failure(tasks):
            # All or none: a round of which some files are kept would be written again in full.
            files = list(write_file(self._table.io, self._table.metadata, iter(tasks)))
        self._files.extend(files)
        self._waiting, self._waiting_bytes = [], 0

    def commit(self, through: Position, properties: Mapping[str, str] | None = None) -> LogHead:
        """One snapshot with every file written so far, captured through ``through``.

        Lands only if nobody else moved ``captured_through`` (I2, I4): that is
        ``capture.two_writers``. A head that only maintenance moved is taken as the new base. May be
        called again after a retriable error; rows are never committed twice.
        """
        self._check(through)
        self.flush()
        facts = {
            **(properties or {}),
            **reached(through),
            COMMIT_PROPERTY: self._token,
        }
        for attempt in range(_MOVED_LIMIT):
            head = self._base()
            if head is None:
                break  # an earlier call landed although its answer was lost
            self._uncertain = True
            try:
                commits.append_files(self._table, self._files, facts, head.snapshot_id)
                break
            except RetriableError as error:
                self._uncertain = error.code != commits.MOVED
                if self._uncertain or attempt == _MOVED_LIMIT - 1:
                    raise
                time.sleep(0.01 * 2 ** min(attempt, 6))  # let the other writer finish
        return self._landed(through)

    def commit_idle(self, through: Position) -> LogHead:
        """Note progress of a quiet source: a snapshot without rows."""
        return self.commit(through)

    def abort(self) -> None:
        """Forget what was written since the last commit and delete its files.

        Files of a commit whose answer was lost stay: if it landed they are the log, if not they
        are orphans that maintenance removes.
        """
        self._waiting, self._waiting_bytes = [], 0
        files, self._files = self._files, []
        if not self._uncertain:
            commits.discard(self._table, files)

    @contextmanager
    def _cleared_on_failure(self, tasks: list[WriteTask]) -> Iterator[None]:
        """Half-written files go at once: on a full disk they would take the room for good."""
        try:
            yield
        except BaseException:
            places = load_location_provider(self._table.location(), self._table.properties)
            for task in tasks:
                name = task.generate_data_file_filename("parquet")
                with suppress(FileNotFoundError):
                    self._table.io.delete(places.new_data_location(name, task.partition_key))
            raise

    def _check(self, through: Position) -> None:
        if through.epoch != self._through.epoch or through < self._through:
            raise FatalError(
                "change_log.backwards",
                f"the log is captured through {self._through}, {through} is not after it",
                hint="the source's log is not the one that was deployed: see `tidegate status`",
            )

    def _base(self) -> LogHead | None:
        """The head to commit on; None if this very commit already is in the log."""
        self._table = self._log.table()
        head = self._log.head_of(self._table)
        if head.captured_through == self._through:
            return head
        if self._is_ours():
            return None
        raise FatalError(
            "capture.two_writers",
            f"another capture wrote to the change log of {self._log.pipeline_id}",
            hint="only one capture may run per pipeline: end the other one; this one stopped"
            " before it wrote anything twice",
        )

    def _is_ours(self) -> bool:
        return any(
            summary(snapshot).get(COMMIT_PROPERTY) == self._token
            for snapshot in ancestors(self._table.metadata)
        )

    def _landed(self, through: Position) -> LogHead:
        self._through = through
        self._files = []
        self._uncertain = False
        self._token = uuid.uuid4().hex
        self._write_id, self._counter = uuid.uuid4(), itertools.count()
        return self._log.head_of(self._table)


def _batches(
    rows: Iterable[pa.RecordBatch] | pa.RecordBatch | pa.Table,
) -> Iterator[pa.RecordBatch]:
    if isinstance(rows, pa.Table):
        yield from rows.to_batches()
    elif isinstance(rows, pa.RecordBatch):
        yield rows
    else:
        yield from rows


def _tasks(
    table: Table, rows: pa.Table, write_id: uuid.UUID, counter: Iterator[int]
) -> Iterator[WriteTask]:
    """One file per (day, bucket), rows by (table, position).

    PyIceberg's own split filters the whole table once per partition; here the rows of a bucket
    are gathered once, and a batch of a single table is not copied at all.
    """
    metadata = table.metadata
    schema = pyarrow_to_schema(rows.schema, name_mapping=metadata.schema().name_mapping)
    for day, bucket, part in _partitions(rows):
        spec = metadata.spec()
        key = PartitionKey(
            field_values=[
                PartitionFieldValue(field=spec.fields[0], value=day),
                PartitionFieldValue(field=spec.fields[1], value=bucket),
            ],
            partition_spec=spec,
            schema=metadata.schema(),
        )
        yield WriteTask(
            write_uuid=write_id,
            task_id=next(counter),
            schema=schema,
            record_batches=part.to_batches(),
            partition_key=key,
        )


def _partitions(rows: pa.Table) -> Iterator[tuple[int, int, pa.Table]]:
    days = pc.divide(rows["captured_at"].cast(pa.int64()), _DAY_US)
    bounds = pc.min_max(days).as_py()
    if bounds["min"] == bounds["max"]:
        parts = [(bounds["min"], rows)]
    else:
        parts = [(day, rows.filter(pc.equal(days, day))) for day in pc.unique(days).to_pylist()]
    for day, part in parts:
        for bucket, bucket_rows in _buckets(part):
            yield day, bucket, bucket_rows


def _buckets(rows: pa.Table) -> Iterator[tuple[int, pa.Table]]:
    names = pc.unique(rows["table"]).to_pylist()
    bucket_of = BucketTransform(BUCKETS).transform(StringType())
    if len(names) == 1:  # rows come in log order, so they are sorted already
        yield int(bucket_of(names[0]) or 0), rows
        return
    groups: dict[int, list[str]] = {}
    for name in sorted(names):
        groups.setdefault(int(bucket_of(name) or 0), []).append(name)
    for bucket, members in sorted(groups.items()):
        # Within one table the rows keep their order, which is the log's.
        parts = [rows.filter(pc.equal(rows["table"], name)) for name in members]
        yield bucket, pa.concat_tables(parts)
