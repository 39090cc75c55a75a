"""What a run of the suite showed."""

from __future__ import annotations

from dataclasses import dataclass, field


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
