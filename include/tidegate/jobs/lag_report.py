"""How far each table is behind the change log, said now and then while a pipeline runs."""

from __future__ import annotations

import time

from pyiceberg.catalog import Catalog

from tidegate.config.pipeline import PipelineConfig
from tidegate.connectors.registry import distance
from tidegate.errors import TidegateError
from tidegate.lake import positions
from tidegate.lake.catalog import load
from tidegate.lake.log_times import LogTimes
from tidegate.lake.looked import KIND, Looked
from tidegate.lake.reports import Reports
from tidegate.observability import events, log

_LOG = log.get(__name__)


class LagReport:
    """Speaks at most once in ``interval_seconds`` (``lag_monitor_interval_seconds``)."""

    def __init__(self, catalog: Catalog, pipeline: PipelineConfig, interval_seconds: float) -> None:
        self._catalog = catalog
        self._pipeline = pipeline
        self._interval = interval_seconds
        self._said: float | None = None
        self._distance = distance(pipeline.source.source_type)

    def say(self) -> None:
        """One event per table that stands somewhere. Reads metadata only."""
        now = time.monotonic()
        if self._said is not None and now - self._said < self._interval:
            return
        self._said = now
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
            log.event(
                _LOG,
                events.CONSUMER_LAG,
                pipeline=self._pipeline.pipeline_id,
                table=target.source,
                position=str(position),
                bytes=self._distance(reflects, times.head),
                seconds=round(behind, 1),
            )
