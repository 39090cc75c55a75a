"""What a job did, for people: one sentence, then a row per table, then the reasons a line each.

Positions and the like are 56 characters long and help nobody who only wants to know whether all is
well: they come with ``--verbose``, after everything else.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from rich.console import Console
from rich.text import Text

from tidegate.cli import figures

WIDTH: Final = 100
"""What a table never exceeds, on however wide a terminal."""
_TOLD_APART: Final = frozenset({"table", "status", "error", "reason", "reasons", "hint", "message"})
_LONG: Final = frozenset(
    {
        "branch",
        "changes",
        "checks",
        "cut",
        "from_position",
        "lake_table",
        "position",
        "rows_per_second",
        "run",
        "snapshot_id",
        "to_position",
        "verified_through",
    }
)
_TROUBLE: Final = (
    "failed",
    "different",
    "incompatible",
    "gone",
    "needs_sweep",
    "held",
    "waiting",
    "missing",
    "skipped",
)
"""Said after everything that went well, the worst first."""
_NUMBERS: Final = (
    ("rows", "row", "rows"),
    ("captured", "change captured", "changes captured"),
    ("inserted", "inserted", "inserted"),
    ("updated", "updated", "updated"),
    ("deleted", "deleted", "deleted"),
    ("repaired", "repaired", "repaired"),
)
_NAMES: Final = {"parked": "letters", "source_rows": "source", "lake_rows": "lake"}

Entry = Mapping[str, Any]


def sentence(data: Mapping[str, Any], entries: Sequence[Entry]) -> str:
    """``14 tables swept, 3,362 rows, 59 s; 1 held``"""
    states = Counter(str(entry.get("status") or "done") for entry in entries)
    well = [state for state in states if state not in _TROUBLE]
    parts = [f"{states[state]} {state}" for state in sorted(well, key=lambda s: -states[s])]
    if not parts and not entries:
        parts = ["nothing was done"]
    if well:
        count = states[max(well, key=lambda state: states[state])]
        parts[0] = parts[0].replace(" ", " table " if count == 1 else " tables ", 1)
    for name, one, many in _NUMBERS:
        total = _total(data, entries, name)
        if total:
            parts.append(f"{total:,} {one if total == 1 else many}")
    seconds = data.get("seconds")
    if isinstance(seconds, (int, float)):
        parts.append(f"{seconds:.1f} s" if seconds < 10 else f"{seconds:,.0f} s")
    trouble = [f"{states[state]} {state.replace('_', ' ')}" for state in _TROUBLE if states[state]]
    letters = _total(data, entries, "parked")
    if letters:
        trouble.append(f"{letters:,} new dead letter{'' if letters == 1 else 's'}")
    return "; ".join(part for part in (", ".join(parts), ", ".join(trouble)) if part)


def show(
    console: Console, data: Mapping[str, Any], entries: Sequence[Entry], verbose: bool
) -> None:
    """All of it."""
    console.print(Text(sentence(data, entries), "bold"), soft_wrap=True)
    if not entries:
        return
    columns = [name for name in _union(entries) if _is_column(entries, name)]
    titles = (_NAMES.get(name, name).replace("_", " ") for name in columns)
    grid = figures.grid("table", "status", *titles)
    for entry in entries:
        cells = (figures.cell(entry.get(name)) for name in columns)
        grid.add_row(
            str(entry.get("table")), figures.styled(str(entry.get("status") or "")), *cells
        )
    console.print(grid, width=min(console.width, WIDTH))
    for entry in entries:
        reasons(console, entry)
    if verbose:
        for entry in entries:
            _long(console, entry)


def reasons(console: Console, entry: Entry) -> None:
    """Why a table did not get through: one finding a line, the way on below."""
    error = entry.get("error") or entry.get("reason")
    if not error:
        return
    head = Text.assemble(
        figures.styled(f"{entry.get('status') or ''}"), "  ", (f"{entry.get('table')}: ", "bold")
    )
    if isinstance(error, Mapping):
        head.append(f"{error.get('message')} [{error.get('code')}]")
        console.print(head, soft_wrap=True)
        _way_on(console, str(error.get("hint")))
        return
    said, way, hint = str(error).rpartition(" → ")
    head.append(said if way else hint)
    console.print(head, soft_wrap=True)
    if way:
        _way_on(console, hint)


def _way_on(console: Console, hint: str) -> None:
    console.print(Text.assemble(("  do  ", "bold green"), hint), soft_wrap=True)


def _long(console: Console, entry: Entry) -> None:
    told = {name: entry.get(name) for name in _union([entry]) if name in _LONG}
    for name, value in told.items():
        if value:
            line = f"{entry.get('table')}: {name.replace('_', ' ')} {_plain(value)}"
            console.print(Text(line, "dim"), soft_wrap=True)


def _plain(value: Any) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)


def _total(data: Mapping[str, Any], entries: Sequence[Entry], name: str) -> int:
    """The job's own figure, which goes over all its rounds, or the sum over the tables."""
    own = data.get(name)
    if isinstance(own, int) and not isinstance(own, bool):
        return own
    return sum(v for entry in entries if isinstance(v := entry.get(name), int))


def _union(entries: Sequence[Entry]) -> list[str]:
    return list(dict.fromkeys(name for entry in entries for name in entry))


def _is_column(entries: Sequence[Entry], name: str) -> bool:
    if name in _TOLD_APART or name in _LONG:
        return False
    return any(entry.get(name) and _fits(entry[name]) for entry in entries)


def _fits(value: Any) -> bool:
    if isinstance(value, list):
        return all(isinstance(item, str) for item in value)
    return isinstance(value, (int, float, str))


def of_run(data: Mapping[str, Any]) -> Iterator[Entry]:
    """A run's tables: as its last round left them, with what their first sweep was."""
    sweeps = {entry["table"]: entry for entry in data.get("sweeps") or ()}
    for entry in data.get("tables") or sweeps.values():
        swept = sweeps.get(entry["table"])
        if swept is None or swept is entry:
            yield entry
        elif swept.get("error"):
            yield {**entry, **{name: swept[name] for name in ("status", "error", "branch")}}
        elif entry.get("status") == "unchanged":
            yield {**entry, "status": swept["status"], "rows": swept["rows"]}
        else:
            yield {**entry, "rows": swept["rows"]}
