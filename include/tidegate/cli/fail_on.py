"""``--fail-on held,letters``: what ends a command with 1 beside a failure, for cron and scripts.

What failed is never green, with or without it (I12). A table that is held, or a change that became
a letter, is Tidegate at work as it should be, and the command ends with 0 unless it is told.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from typing import Annotated, Any, Final

import typer

from tidegate.errors import ConfigError


class Trouble(StrEnum):
    """What can be named; each is said per table."""

    HELD = "held"  # its gate is held
    LETTERS = "letters"  # changes became dead letters; for status and verify: letters wait
    MISSING = "missing"  # no lake table yet: it was never swept
    WAITING = "waiting"  # a sweep or another writer comes first
    SKIPPED = "skipped"  # verify could not compare it


_ALL: Final = "all"
_NAMES: Final = ", ".join(Trouble)

FailOn = Annotated[
    list[str] | None,
    typer.Option(
        "--fail-on",
        metavar="TROUBLE,…",
        help=f"End with 1 also for these: {_NAMES}; or {_ALL}. What failed always does.",
        show_default=False,
    ),
]


def named(words: Sequence[str] | None) -> frozenset[Trouble]:
    """What the option names; refused before any work is done."""
    names = [name.strip() for word in words or () for name in word.split(",") if name.strip()]
    if _ALL in names:
        return frozenset(Trouble)
    for name in names:
        if name not in set(Trouble):
            near = difflib.get_close_matches(name, list(Trouble), n=1)
            guess = f"did you mean {near[0]}? " if near else ""
            raise ConfigError(
                "cli.fail_on",
                f"--fail-on does not know {name}",
                hint=f"{guess}it knows {_NAMES} and {_ALL}",
            )
    return frozenset(Trouble(name) for name in names)


def found(data: Mapping[str, Any], troubles: Iterable[Trouble]) -> tuple[str, ...]:
    """``held: public.a, public.b`` for each of ``troubles`` that there is."""
    seen: dict[Trouble, list[str]] = {}
    for name, trouble in _all(data):
        seen.setdefault(trouble, []).append(name)
    return tuple(
        f"{trouble}: {', '.join(dict.fromkeys(seen[trouble]))}"
        for trouble in Trouble
        if trouble in seen and trouble in set(troubles)
    )


def _all(data: Mapping[str, Any]) -> Iterator[tuple[str, Trouble]]:
    for held in data.get("not_ready") or ():
        yield held["table"], Trouble.HELD
    total = data.get("parked")
    if isinstance(total, int) and total:
        yield f"{total} new", Trouble.LETTERS
    for entry in [*(data.get("tables") or ()), *(data.get("sweeps") or ())]:
        table = str(entry.get("table"))
        yield from ((table, trouble) for trouble in _of(entry))


def _of(entry: Mapping[str, Any]) -> Iterator[Trouble]:
    """``status`` has gates and what a table needs; jobs have a status and what they parked."""
    gate = entry.get("gate")
    state = gate.get("state") if isinstance(gate, Mapping) else entry.get("status")
    states = {"held": Trouble.HELD, "missing": Trouble.MISSING, "skipped": Trouble.SKIPPED}
    states |= {"waiting": Trouble.WAITING, "sweeping": Trouble.WAITING}
    if state in states:
        yield states[state]
    if isinstance(gate, Mapping) and entry.get("position") is None:
        yield Trouble.MISSING
    letters = (entry.get("parked"), entry.get("dead_letters"), entry.get("waiting"))
    if any(isinstance(count, int) and count for count in letters):
        yield Trouble.LETTERS
