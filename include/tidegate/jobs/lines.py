"""What a run did, in one line per table, and which of its facts may be said at all.

Task logs, XCom and consoles take their facts from here, so that no row value slips out (I9):
numbers pass, text passes only under names that never hold a value of the source.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

PUBLIC_TEXT: Final = frozenset(
    {
        "action",
        "branch",
        "cut",
        "done",
        "from_position",
        "hint",
        "lake_table",
        "mode",
        "position",
        "reason",
        "registry",
        "run",
        "state",
        "status",
        "subject",
        "table",
        "through",
        "to_position",
        "until",
        "verified_through",
    }
)
PUBLIC_COUNTS: Final = frozenset({"adjusted", "compacted", "trimmed", "work"})
"""Counts by column or by step: names of a schema or of ours, never of a row."""
_SAID_APART: Final = frozenset({"table", "status", "error", "reason", "hint"})


def public(entry: Mapping[str, Any]) -> dict[str, Any]:
    """The facts of one table or run that may leave the process."""
    facts: dict[str, Any] = {}
    for name, value in entry.items():
        if isinstance(value, (bool, int, float)) or (
            isinstance(value, str) and name in PUBLIC_TEXT
        ):
            facts[name] = value
        elif name == "error" and value:
            facts[name] = _error(value)
        elif name in PUBLIC_COUNTS and isinstance(value, Mapping):
            facts |= {f"{name} {of}": count for of, count in _counts(value)}
        elif name == "done" and isinstance(value, list):
            facts[name] = ", ".join(str(step) for step in value)
    return facts


def table_lines(result: Mapping[str, Any]) -> Iterator[str]:
    """A line for each entry of ``tables``; one for the whole result where there are none."""
    tables = result.get("tables")
    if not isinstance(tables, list):
        yield details(result) or "done"
        return
    for entry in [*tables, result.get("change_log")]:
        if isinstance(entry, Mapping):
            yield table_line(entry)


def table_line(entry: Mapping[str, Any]) -> str:
    """``public.orders: applied, inserted 12, seconds 0.4``"""
    parts = [str(entry.get("status") or ""), details(entry), reason(entry)]
    return f"{entry.get('table')}: " + ", ".join(part for part in parts if part)


def reason(entry: Mapping[str, Any]) -> str:
    """Why a table did not get through, if it says so."""
    error = entry.get("error") or entry.get("reason")
    if isinstance(error, Mapping):
        return f"{error.get('message')} [{error.get('code')}] → {error.get('hint')}"
    return str(error) if error else ""


def _error(error: Any) -> Any:
    if isinstance(error, Mapping):
        return {name: error.get(name) for name in ("kind", "code", "message", "hint")}
    return str(error)


def _counts(value: Mapping[str, Any]) -> Iterator[tuple[str, int]]:
    for name, count in value.items():
        if isinstance(count, Mapping):
            yield from ((f"{name} {of}", deeper) for of, deeper in _counts(count))
        elif isinstance(count, int) and count:
            yield name, count


def details(entry: Mapping[str, Any]) -> str:
    """What is to be said beside the table's name, its status and the reason."""
    return ", ".join(
        f"{name.replace('_', ' ')} {_short(value)}"
        for name, value in public(entry).items()
        if value and name not in _SAID_APART
    )


def _short(value: float | str) -> str:
    if isinstance(value, bool):
        return "yes"
    return f"{value:.1f}" if isinstance(value, float) else str(value)
