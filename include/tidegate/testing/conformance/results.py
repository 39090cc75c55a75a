"""What a run of the suite showed, and the record of it that is kept.

The whole matrix takes hours. So every part of it (one server, one write mode, one path) is a file
as soon as it has run: a later call goes on where an earlier one was stopped.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from tidegate.testing.conformance.cases import Case


@dataclass(frozen=True, slots=True)
class Failure:
    """A case that does not hold."""

    case: str
    path: str
    mode: str
    reader: str
    why: str


@dataclass
class Report:
    """What a run of the suite showed on one server."""

    version: int
    server: str = ""
    cases: list[str] = field(default_factory=list)
    not_run: dict[str, str] = field(default_factory=dict)
    checks: int = 0
    """Comparisons of a case on a path, in a mode, through a reader."""
    failures: list[Failure] = field(default_factory=list)
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Part:
    """One server, one write mode, one path."""

    server: str
    mode: str
    path: str
    readers: tuple[str, ...]
    suite: str
    """Names the cases as they were: a change of any makes it another."""
    tidegate: str
    day: str
    cases: int
    checks: int
    seconds: float
    not_run: dict[str, str]
    failures: tuple[Failure, ...] = ()

    @classmethod
    def load(cls, file: Path) -> Part:
        data: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
        failures = tuple(Failure(**failure) for failure in data.pop("failures"))
        return cls(**{**data, "readers": tuple(data["readers"]), "failures": failures})

    def save(self, file: Path) -> None:
        file.parent.mkdir(parents=True, exist_ok=True)
        staging = file.with_suffix(".new")
        staging.write_text(json.dumps(asdict(self), indent=1, ensure_ascii=False) + "\n", "utf-8")
        staging.replace(file)

    def proves(self, suite: str, readers: Sequence[str]) -> bool:
        """Whether it need not run again."""
        return not self.failures and self.suite == suite and {*readers} <= {*self.readers}


def all_parts(folder: Path) -> list[Part]:
    return [Part.load(file) for file in sorted(folder.glob("*.json"))]


def fingerprint(cases: Iterable[Case]) -> str:
    """The same for the same cases, whatever their order."""
    told = sorted(repr(case) for case in cases)
    return hashlib.sha256("\n".join(told).encode()).hexdigest()[:16]
