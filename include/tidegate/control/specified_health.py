"""Health in the platform specification's form: ``source``, ``sinks``, ``consumer_lag``.

Made of the same look as the parts; whatever watches pipelines by the specification's names reads it
from `tidegate health --json`, the HTTP API and ``/readyz`` of a running pipeline.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from tidegate.config.pipeline import LAKE_ID, PipelineConfig
from tidegate.config.sinks import SinkType
from tidegate.control.records import PipelineStatus
from tidegate.envelope.position import Position
from tidegate.lake.topics import Topics
from tidegate.names import TableId

PARTITION: Final = 0
"""The change log of a source is one: there are no further partitions."""


@dataclass(frozen=True, slots=True)
class State:
    """In the words of Kafka Connect: RUNNING, PAUSED, FAILED, UNASSIGNED (nothing deployed)."""

    state: str


@dataclass(frozen=True, slots=True)
class SourceHealth:
    """``connector``: the source and our place in its log; ``tasks``: the one that reads it."""

    connector: State
    tasks: tuple[State, ...]


@dataclass(frozen=True, slots=True)
class SinkHealth:
    """``running``, ``stopped`` (with the pipeline, or before its deployment) or ``failed``."""

    sink_id: str
    status: str


@dataclass(frozen=True, slots=True)
class PartitionLag:
    """How far one table is behind the change log.

    ``offset`` is the applied position as a number, ``lag`` the bytes of the source's log from there
    to what was captured; None where two places cannot be subtracted, or the table stands nowhere.
    """

    topic: str
    partition: int
    lag: int | None
    offset: int | None


@dataclass(frozen=True, slots=True)
class SpecifiedHealth:
    """What the specification adds to the parts."""

    source: SourceHealth | None = None
    sinks: tuple[SinkHealth, ...] = ()
    consumer_lag: tuple[PartitionLag, ...] = ()


def specified(
    pipeline: PipelineConfig, works: Mapping[str, bool], seen: PipelineStatus | None
) -> SpecifiedHealth:
    """``works``: the parts that were asked, False for failed ones. ``seen`` is None if the lake
    could not be read."""
    idle = None if seen is None else _idle(seen)
    capture = State(_state(works.get("change_log", False), idle))
    source = SourceHealth(State(_state(works.get("source", False), idle)), (capture,))
    lag = () if seen is None else tuple(_lags(pipeline, seen))
    return SpecifiedHealth(source, tuple(_sinks(pipeline, works, idle)), lag)


def _idle(seen: PipelineStatus) -> str | None:
    """Why nothing is to be done; None if the pipeline works."""
    if not seen.deployed:
        return "UNASSIGNED"
    return "PAUSED" if seen.running is not None and seen.running.stopped else None


def _state(works: bool, idle: str | None) -> str:
    return idle or "RUNNING" if works else "FAILED"


def _sinks(
    pipeline: PipelineConfig, works: Mapping[str, bool], idle: str | None
) -> list[SinkHealth]:
    well = all(works.get(name, False) for name in ("catalog", "storage", "writers"))
    own = "failed" if not well else "stopped" if idle else "running"
    found = [
        # Other kinds than the lake's are refused by deploy: they write nothing.
        SinkHealth(sink.sink_id, own if sink.sink_type is SinkType.ICEBERG else "stopped")
        for sink in pipeline.sinks
        if sink.enabled
    ]
    return found or [SinkHealth(LAKE_ID, own)]


def _lags(pipeline: PipelineConfig, seen: PipelineStatus) -> list[PartitionLag]:
    topics = Topics(pipeline)
    return [
        PartitionLag(
            topics.of(TableId.parse(table.table)),
            PARTITION,
            table.lag_bytes,
            None if table.position is None else Position.parse(table.position).lsn,
        )
        for table in seen.tables
    ]
