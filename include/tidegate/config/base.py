"""The strict, frozen model every configuration section derives from."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, ConfigDict

from tidegate.config.shown import shown


class Section(BaseModel):
    """Unknown keys are errors, values are not coerced across kinds, nothing changes after load."""

    model_config = ConfigDict(
        extra="forbid", frozen=True, validate_default=True, hide_input_in_errors=True
    )

    def __repr_args__(self) -> Iterator[tuple[str | None, Any]]:
        """Whoever prints or logs a section shows what may be shown."""
        yield from shown(self).items()


@dataclass(frozen=True, slots=True)
class Issue:
    """One contradiction between keys; ``path`` is relative to the section that found it."""

    path: tuple[str | int, ...]
    message: str


class WrongTogether(ValueError):
    """Keys that are right one by one and contradict each other; all contradictions at once."""

    def __init__(self, issues: list[Issue]) -> None:
        super().__init__("; ".join(issue.message for issue in issues))
        self.issues = tuple(issues)
