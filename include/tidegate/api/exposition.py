"""Prometheus' text format of every pipeline's figures, read at the scrape and kept for seconds."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Final

from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)
from prometheus_client.exposition import generate_latest
from prometheus_client.registry import Collector, CollectorRegistry

from tidegate.api.pipelines import Known, Pipelines
from tidegate.control.metrics import Sample, measure
from tidegate.errors import TidegateError
from tidegate.lake.report_totals import BUCKETS, Durations
from tidegate.observability import log, metrics

_LOG = log.get(__name__)
KEPT_SECONDS: Final = 5.0
SOURCE_SECONDS: Final = 60.0
"""A source is asked by one short connection this often at most (I11)."""


class Figures:
    """Every pipeline's samples. Concurrent scrapes share one reading."""

    def __init__(self, pipelines: Pipelines) -> None:
        self._pipelines = pipelines
        self._lock = threading.Lock()
        self._read_at: float | None = None
        self._samples: dict[str, list[Sample]] = {}
        self._sources: dict[str, tuple[float, list[Sample]]] = {}

    def text(self, sees: Callable[[str], bool]) -> bytes:
        """The exposition of the pipelines that the caller sees."""
        with self._lock:
            now = time.monotonic()
            if self._read_at is None or now - self._read_at >= KEPT_SECONDS:
                self._samples = {k.name: list(self._measured(k)) for k in self._pipelines.all()}
                self._read_at = time.monotonic()
            samples = [s for name, found in self._samples.items() if sees(name) for s in found]
        registry = CollectorRegistry(auto_describe=False)
        registry.register(_Samples(samples))
        return generate_latest(registry)

    def _measured(self, known: Known) -> Iterator[Sample]:
        try:
            if known.pipeline is None:
                raise known.error or LookupError(known.name)
            samples = list(self._asked(known))
        except TidegateError as error:
            # One pipeline's trouble is a figure of its own, not the end of the scrape.
            log.event(_LOG, "no figures", pipeline=known.name, code=error.code)
            yield Sample(metrics.UP, (known.name,), 0)
            return
        yield from samples

    def _asked(self, known: Known) -> Iterator[Sample]:
        """Samples; those of the source from its last look, unless that is old."""
        assert known.pipeline is not None
        platform = self._pipelines.platform
        last = self._sources.get(known.name)
        due = last is None or time.monotonic() - last[0] >= SOURCE_SECONDS
        pipeline = known.pipeline
        if due:
            try:
                pipeline = self._pipelines.get(known.name).with_secrets()
            except TidegateError:
                due = False  # without its password there is nothing to ask
        samples = list(measure(pipeline, platform, ask_source=due))
        if due:
            own = [sample for sample in samples if sample.metric in _OF_SOURCE]
            self._sources[known.name] = (time.monotonic(), own)
        elif last is not None:
            samples += last[1]
        yield from samples


_OF_SOURCE: Final = frozenset(
    {
        metrics.SOURCE_UP,
        metrics.GUARD,
        metrics.RETAINED,
        metrics.HOURS_LEFT,
        metrics.XMIN_AGE,
        metrics.CAPTURE_LAG_BYTES,
    }
)


class _Samples(Collector):
    """Samples as families; families without a sample are left out."""

    def __init__(self, samples: Iterable[Sample]) -> None:
        self._by_metric: dict[metrics.Metric, list[Sample]] = {}
        for sample in samples:
            self._by_metric.setdefault(sample.metric, []).append(sample)

    def collect(self) -> Iterator[Metric]:
        for metric in metrics.METRICS:
            found = self._by_metric.get(metric)
            if found:
                yield _family(metric, found)


def _family(metric: metrics.Metric, samples: list[Sample]) -> Metric:
    if metric.kind == "histogram":
        histogram = HistogramMetricFamily(metric.name, metric.help, labels=metric.labels)
        for sample in samples:
            durations = sample.durations or Durations()
            histogram.add_metric(sample.labels, _buckets(durations), durations.seconds)
        return histogram
    kind = CounterMetricFamily if metric.kind == "counter" else GaugeMetricFamily
    family = kind(metric.name, metric.help, labels=metric.labels)
    for sample in samples:
        family.add_metric(sample.labels, float(sample.value))
    return family


def _buckets(durations: Durations) -> list[tuple[str, float]]:
    total, found = 0, []
    for bound, count in zip((*map(str, BUCKETS), "+Inf"), durations.counts, strict=True):
        total += count
        found.append((bound, float(total)))
    return found
