"""The matrix of servers, write modes and paths: what of it is missing, and running that."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tidegate import __version__
from tidegate.config.platform import PlatformConfig
from tidegate.observability.progress import Progress
from tidegate.testing.conformance import runner
from tidegate.testing.conformance.cases import Case
from tidegate.testing.conformance.readers import Reader
from tidegate.testing.conformance.results import Part, Report, all_parts, fingerprint
from tidegate.testing.conformance.server import Server

if TYPE_CHECKING:
    from tidegate.spark.session import SparkSession


@dataclass(frozen=True, slots=True)
class Place:
    """A part that is to be run."""

    key: str
    mode: str
    path: str

    @property
    def name(self) -> str:
        return f"{self.key}-{self.mode}-{self.path}.json"


class Matrix:
    """One call of the command; ``folder`` keeps what it and earlier calls found."""

    def __init__(
        self,
        spark: SparkSession,
        platform: PlatformConfig,
        cases: Sequence[Case],
        readers: Mapping[str, Reader],
        folder: Path | None,
        progress: Progress,
    ) -> None:
        self._spark = spark
        self._platform = platform
        self._cases = cases
        self._readers = readers
        self._folder = folder
        self._progress = progress
        self._suite = fingerprint(cases)
        self._ran: list[Part] = []

    def missing(self, key: str, modes: Sequence[str], paths: Sequence[str]) -> list[Place]:
        """Parts of a server that these cases have not passed yet."""
        places = [Place(key, mode, path) for mode in modes for path in paths]
        return [place for place in places if not self._known(place)]

    def run(self, server: Server, places: Sequence[Place]) -> Report:
        """Each part is kept as soon as it has run."""
        whole = Report(server.version, server.label)
        for number, place in enumerate(places):
            found = runner.run(
                self._spark,
                self._platform,
                server,
                self._cases,
                self._readers,
                paths=[place.path],
                modes=[place.mode],
                refused=number == 0,
                progress=self._progress,
            )
            whole.cases, whole.not_run = found.cases, found.not_run
            whole.checks += found.checks
            whole.failures += found.failures
            whole.seconds = round(whole.seconds + found.seconds, 1)
            self._keep(place, found)
        return whole

    def parts(self) -> list[Part]:
        """All that is known."""
        return all_parts(self._folder) if self._folder is not None else self._ran

    def _known(self, place: Place) -> bool:
        if self._folder is None or not (file := self._folder / place.name).exists():
            return False
        return Part.load(file).proves(self._suite, tuple(self._readers))

    def _keep(self, place: Place, found: Report) -> None:
        part = Part(
            server=found.server,
            mode=place.mode,
            path=place.path,
            readers=tuple(self._readers),
            suite=self._suite,
            tidegate=__version__,
            day=dt.datetime.now(dt.UTC).date().isoformat(),
            cases=len(found.cases),
            checks=found.checks,
            seconds=found.seconds,
            not_run=found.not_run,
            failures=tuple(found.failures),
        )
        self._ran.append(part)
        if self._folder is not None:
            part.save(self._folder / place.name)
