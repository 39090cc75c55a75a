"""What validation finds."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is, or will be, in the way."""

    code: str
    severity: str  # error | warning | info
    table: str | None  # None: of no table, or of several
    message: str
    fix: str | None  # SQL for the source, or what to edit
