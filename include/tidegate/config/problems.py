"""What is wrong with a configuration file: every problem at once, each with its place and way out.

No problem ever carries a secret (I9): values from the environment are shown as they stand in the
file (``${VAR}``), values under sensitive keys are not shown at all.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

from tidegate.config.shown import NOT_SHOWN, KeyPath, may_show, shown_text
from tidegate.errors import ConfigError
from tidegate.redaction import redacted

__all__ = ["ConfigProblems", "KeyPath", "Problem", "describe", "dotted", "kind_of"]

_SHOWN_LENGTH: Final = 60
"""Enough of a wrong value to recognise it, short enough for one line."""
_LONGEST: Final = 500
"""What a check says may quote what it was given, however long."""
MOST_TOLD: Final = 100
"""More than anyone corrects at once; what a file of rubbish leads to stays small."""


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong in one file."""

    file: str
    path: str  # dotted; empty for the file as a whole
    message: str
    line: int | None = None  # 1-based
    found: str | None = None
    allowed: str | None = None
    nearest: str | None = None  # the key that was probably meant

    def __post_init__(self) -> None:
        # A check may quote what it was given, and that may be an address.
        for name in ("path", "message", "found"):
            text = getattr(self, name)
            object.__setattr__(self, name, text and _shortened(redacted(text), _LONGEST))

    def __str__(self) -> str:
        place = self.file if self.line is None else f"{self.file}:{self.line}"
        lines = [
            f"{place}: {self.path}: {self.message}" if self.path else f"{place}: {self.message}"
        ]
        lines += [
            f"    {name:<8} {value}"
            for name, value in (
                ("found", self.found),
                ("allowed", self.allowed),
                ("nearest", self.nearest),
            )
            if value is not None
        ]
        return "\n".join(lines)

    def to_dict(self) -> dict[str, str | int | None]:
        return {
            "file": self.file,
            "line": self.line,
            "path": self.path,
            "message": self.message,
            "found": self.found,
            "allowed": self.allowed,
            "nearest": self.nearest,
        }


class ConfigProblems(ConfigError):
    """A file was refused, with everything that is wrong with it."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        found = tuple(problems)
        self.problems = found[:MOST_TOLD]
        files = ", ".join(sorted({problem.file for problem in self.problems}))
        head = f"{len(found)} problem{'' if len(found) == 1 else 's'} in {files}"
        if len(found) > MOST_TOLD:
            head = f"more than {MOST_TOLD} problems in {files}"
        super().__init__(
            "config.invalid",
            "\n".join([head, *(str(problem) for problem in self.problems)]),
            hint="correct the file and run `tidegate validate`; docs/reference/configuration.md"
            " lists every key",
        )

    def __reduce__(self) -> tuple[object, ...]:
        return (ConfigProblems, (self.problems,))

    def to_dict(self) -> dict[str, Any]:
        # "ConfigError", so that errors.from_dict gives back an error of the same recovery.
        return super().to_dict() | {
            "kind": ConfigError.__name__,
            "problems": [problem.to_dict() for problem in self.problems],
        }


def dotted(path: KeyPath) -> str:
    """``sinks[0].webhook.url``."""
    text = ""
    for part in path:
        if isinstance(part, int):
            text += f"[{part}]"
        else:
            text += f".{part}" if text else part
    return text


def describe(value: object, path: KeyPath, written: str | None = None) -> str:
    """A value as an error may show it; ``written`` is its text in the file, before variables."""
    kind = kind_of(value)
    if isinstance(value, (dict, list)):
        return kind
    if not may_show(path):
        return f"{kind} {NOT_SHOWN}"
    if value is None:
        return kind
    raw = written if written is not None else value
    if isinstance(raw, str) and shown_text(raw, path) != raw:
        return f"{kind} {NOT_SHOWN}"
    text = _plain(value) if written is None else written
    text = _shortened(text, _SHOWN_LENGTH)
    return f"{kind} {text}" if kind in ("true or false", "date") else text


def _shortened(text: str, length: int) -> str:
    return text if len(text) <= length else text[: length - 1] + "…"


def kind_of(value: object) -> str:
    """The kind of a YAML value in plain words."""
    kinds: tuple[tuple[type | tuple[type, ...], str], ...] = (
        (dict, "a mapping"),
        (list, "a list"),
        (bool, "true or false"),
        ((int, float), "a number"),
        (str, "text"),
        (datetime.date, "a date"),
    )
    if value is None:
        return "nothing"
    return next((name for kind, name in kinds if isinstance(value, kind)), type(value).__name__)


def _plain(value: object) -> str:
    return f"'{value}'" if isinstance(value, str) else str(value).lower()
