"""How far each table is behind the change log, said now and then while a pipeline runs."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from pyiceberg.catalog import Catalog

from tidegate.config.pipeline import PipelineConfig
from tidegate.connectors.registry import distance
from tidegate.errors import TidegateError
from tidegate.lake import positions
from tidegate.lake.catalog import load
from tidegate.lake.log_times import LogTimes
from tidegate.lake.looked import KIND, Looked
from tidegate.lake.reports import Reports
from tidegate.lake.topics import Topics
from tidegate.observability import events, log

_LOG = log.get(__name__)


class LagReport:
    """Speaks at most once in ``interval_seconds`` (``lag_monitor_interval_seconds``). Safe to call
    from several threads; the catalog is used by one at a time, and must be used by nobody else."""

    def __init__(self, catalog: Catalog, pipeline: PipelineConfig, interval_seconds: float) -> None:
        self._catalog = catalog
        self._pipeline = pipeline
        self._interval = interval_seconds
        self._topics = Topics(pipeline)
        self._said: float | None = None
        self._distance = distance(pipeline.source.source_type)
        self._lock = threading.Lock()

    @contextmanager
    def speaking(self) -> Iterator[None]:
        """Speak every interval while the block runs, however long a round in it takes."""
        over = threading.Event()

        def speak() -> None:
            while not over.wait(self._interval):
                try:
                    self.say()
                except Exception as error:  # noqa: BLE001 - the round meets it too, and judges it
                    told = type(error).__name__  # only its kind (I9)
                    log.event(_LOG, "no look at lag", level=logging.WARNING, reason=told)

        thread = threading.Thread(target=speak, name="tidegate-lag", daemon=True)
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()

    def say(self) -> None:
        """One event for the tables that stand somewhere. Reads metadata only."""
        with self._lock:
            now = time.monotonic()
            if self._said is not None and now - self._said < self._interval:
                return
            self._said = now
            partitions = [*self._partitions()]
            log.event(
                _LOG,
                events.CONSUMER_LAG,
                pipeline=self._pipeline.pipeline_id,
                total_lag=sum(one["lag"] or 0 for one in partitions),
                partitions=partitions,
            )

    def _partitions(self) -> Iterator[dict[str, Any]]:
        times = LogTimes.read(self._catalog, self._pipeline)
        looked = Looked(Reports(self._catalog, self._pipeline).recent(KIND), times)
        for target in self._pipeline.targets:
            table = load(self._catalog, target.identifier)
            try:
                position = None if table is None else positions.applied(table)
            except TidegateError:
                continue  # a broken chain is the apply's to report
            if position is None or times.head is None:
                continue
            reflects = looked.through(target.source, position)
            behind = times.seconds_behind(reflects)
            if behind is None:
                continue
            yield {
                "topic": self._topics.of(target.table),
                "partition": 0,
                "lag": self._distance(reflects, times.head),
                "offset": position.lsn,
                "table": target.source,
                "position": str(position),
                "seconds": round(behind, 1),
            }
