"""What a status is made of, read from the lake at once, and kept for whoever asks again and again.

A status of 500 tables used to be 1,500 questions to the catalog and as many files parsed. Here the
catalog is asked once per namespace, and what was made of a control table is kept until that table
moves on: a metadata file never changes, so what was read through it stays true.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeVar

from pyiceberg.catalog import Catalog
from pyiceberg.table import Table
from sqlalchemy.exc import DBAPIError

from tidegate.config.pipeline import PipelineConfig
from tidegate.config.platform import CatalogType, PlatformConfig
from tidegate.lake.catalog import load_all, open_catalog, resolve
from tidegate.lake.change_log import ChangeLog
from tidegate.lake.dead_letters import DeadLetters
from tidegate.lake.gate import Gate, TableGate
from tidegate.lake.log_times import LogTimes
from tidegate.lake.looked import Looked
from tidegate.lake.pauses import Pause, Pauses
from tidegate.lake.proofs import Proof, Proofs
from tidegate.lake.reports import KEPT, Report, Reports

Made = TypeVar("Made")
Identifier = tuple[str, str]
_NEVER: Final = ("", None)


@dataclass(frozen=True, slots=True)
class Look:
    """The lake's records of one pipeline, as they were at one moment."""

    catalog: Catalog
    times: LogTimes
    tables: dict[str, Table | None]
    """By source name; None: never swept."""
    gates: dict[str, TableGate]
    reports: Sequence[Report]
    """All that are kept, newest first."""
    looked: Looked
    """How far applies found nothing for each table."""
    proofs: dict[str, list[Proof]]
    letters: dict[str, int]
    pause: Pause | None


class StatusCache:
    """One pipeline's records. For a single status nothing is gained; a server keeps one.

    Order: the log is read before the tables, so a table never seems behind what it has.
    Concurrency: thread-safe; looks at the same pipeline wait for each other.
    """

    def __init__(self, pipeline: PipelineConfig, platform: PlatformConfig) -> None:
        self.pipeline, self.platform = pipeline, platform
        self._lock = threading.Lock()
        self._file: object = _NEVER
        self._kept: dict[Identifier, tuple[str | None, Any]] = {}
        self._looked: tuple[Sequence[Report], LogTimes, Looked] | None = None
        self._open()

    def look(self) -> Look:
        """The records now."""
        with self._lock:
            if self._file != _catalog_file(self.pipeline, self.platform):
                self._open()
            try:
                return self._read()
            except DBAPIError:
                # The connection may be as old as the server, and its database restarted since.
                self._open()
                return self._read()

    def _open(self) -> None:
        catalog, pipeline = open_catalog(self.platform, self.pipeline), self.pipeline
        self._file = _catalog_file(pipeline, self.platform)
        self._catalog = catalog
        self._kept.clear()
        # The journal and the letters keep what they have read, and read on from there.
        self._gate = Gate(catalog, pipeline, self.platform.gate)
        self._letters = DeadLetters(catalog, pipeline)
        self._log = ChangeLog(catalog, pipeline)
        self._reports = Reports(catalog, pipeline)
        self._proofs = Proofs(catalog, pipeline)
        self._pauses = Pauses(catalog, pipeline)

    def _read(self) -> Look:
        catalog, pipeline = self._catalog, self.pipeline
        parts = (self._log, self._reports, self._proofs, self._pauses)
        control = load_all(catalog, [part.identifier for part in parts])

        def kept(identifier: Identifier, make: Callable[[], Made]) -> Made:
            table = control.get(identifier)
            location = None if table is None else table.metadata_location
            known = self._kept.get(identifier)
            if known is None or known[0] != location:
                known = self._kept[identifier] = (location, make())
            made: Made = known[1]
            return made

        times = kept(self._log.identifier, lambda: LogTimes.read(catalog, pipeline))
        reports = kept(self._reports.identifier, lambda: self._reports.recent(limit=KEPT))
        loaded = load_all(catalog, [target.identifier for target in pipeline.targets])
        tables = {target.source: loaded.get(target.identifier) for target in pipeline.targets}
        return Look(
            catalog=catalog,
            times=times,
            tables=tables,
            gates=self._gate.states(pipeline.source.tables),
            reports=reports,
            looked=self._look_of(reports, times),
            proofs=kept(self._proofs.identifier, self._proofs.read),
            letters=self._letters.counts(tables),
            pause=kept(self._pauses.identifier, self._pauses.current),
        )

    def _look_of(self, reports: Sequence[Report], times: LogTimes) -> Looked:
        """Made anew when either has moved: both are kept, so the same object is the same state."""
        if self._looked is None or self._looked[0] is not reports or self._looked[1] is not times:
            self._looked = (reports, times, Looked(reports, times))
        return self._looked[2]


def _catalog_file(pipeline: PipelineConfig, platform: PlatformConfig) -> object:
    """Which file the catalog is: a lake that was deleted and made again is another one, though an
    open connection goes on reading the deleted file. None for a catalog that is no file."""
    place = resolve(platform, pipeline)
    if place.type is not CatalogType.SQLITE or place.uri is None:
        return None
    try:
        found = Path(place.uri).stat()
    except FileNotFoundError:
        return _NEVER
    return (found.st_dev, found.st_ino)
