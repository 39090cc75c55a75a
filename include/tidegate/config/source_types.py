"""The kinds of source that can be used here: ours, and those of packages with an entry point.

Only names are read: a connector is imported where a source is opened (``connectors.registry``).
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from importlib.metadata import entry_points
from typing import Final

GROUP: Final = "tidegate.connectors"
"""Of the entry points by which connectors are found."""
POSTGRES: Final = "postgres"
MYSQL: Final = "mysql"
BUILT_IN: Final = (MYSQL, POSTGRES)
"""Also found without installation (a checkout on the path)."""


def names() -> tuple[str, ...]:
    """Every connector that can be used here."""
    return tuple(sorted({entry.name for entry in entry_points(group=GROUP)} | set(BUILT_IN)))


def check(value: str) -> str:
    """``value``, if there is such a connector."""
    if value in BUILT_IN or value in names():
        return value
    close = nearest(value, names())
    meant = f"; did you mean {close}?" if close else ""
    raise ValueError(
        f"there is no connector of that name{meant} Available: {', '.join(names())}; others come"
        f" as packages with an entry point in the group {GROUP}"
    )


def nearest(name: str, known: Iterable[str]) -> str | None:
    """The name that was probably meant."""
    close = difflib.get_close_matches(name.lower(), sorted(known), n=1)
    return close[0] if close else None
