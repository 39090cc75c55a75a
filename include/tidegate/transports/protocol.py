"""What a transport is. The four names are the platform specification's.

``embedded`` keeps changes in an Iceberg table; ``kafka`` in topics. The lake only ever reads the
change log, so a transport is done when its changes are there.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol, runtime_checkable

from tidegate.connectors.source_status import SourceStatus
from tidegate.envelope.dead_letter import Parked
from tidegate.envelope.position import Position

Until = Position | Literal["now"] | None


@dataclass(frozen=True, slots=True)
class CaptureResult:
    """What one capture run did."""

    rows: int
    transactions: int
    through: Position
    commits: int
    bytes: int
    seconds: float


@runtime_checkable
class EventSource(Protocol):
    """Moves changes into the change log.

    Order: commit order of the source. Duplicates: none. Durability: the source's log is released
    only up to what is durable (I2). Concurrency: one per pipeline; a second one is refused.
    """

    def start(self, until: Until, stop: threading.Event) -> CaptureResult:
        """Until ``until`` is captured (None: until ``stop``), or ``stop`` is set."""
        ...


@runtime_checkable
class Provisioner(Protocol):
    """Makes what the transport needs, and removes exactly what it made."""

    def provision(self, *, dry_run: bool = False) -> tuple[str, ...]: ...

    def teardown(self, *, dry_run: bool = False) -> tuple[str, ...]: ...


@runtime_checkable
class ErrorRouter(Protocol):
    """Takes changes that could not be applied, and those that wait behind them (I7).

    Order: as given, within a table. Duplicates: a change may come again; it is one letter.
    Durability: on return. A letter counts once the batch that set it aside is published.
    ``lake.dead_letters`` is the embedded transport's; another may send the same record to a topic.
    """

    def route(self, source: str, batch: str, run: str, parked: Sequence[Parked]) -> None: ...


@runtime_checkable
class SourceMonitor(Protocol):
    """Watches the source: where its log stands, what it keeps for us."""

    def status(self) -> SourceStatus: ...
