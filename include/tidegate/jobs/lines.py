"""One line per table: what a run did, for task logs and consoles."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

UNSPOKEN: Final = frozenset({"table", "status", "error", "hint", "message"})
"""Said in a place of their own, not as ``name value``."""


def table_lines(result: Mapping[str, Any]) -> Iterator[str]:
    """A line for each entry of ``tables``; one for the whole result where there are none."""
    tables = result.get("tables")
    if not isinstance(tables, list):
        yield details(result) or "done"
        return
    for entry in tables:
        if isinstance(entry, Mapping):
            yield table_line(entry)


def table_line(entry: Mapping[str, Any]) -> str:
    """``public.orders: applied, inserted 12, to …/…``"""
    parts = [str(entry.get("status") or ""), details(entry), reason(entry)]
    return f"{entry.get('table')}: " + ", ".join(part for part in parts if part)


def reason(entry: Mapping[str, Any]) -> str:
    """Why a table did not get through, if it says so."""
    error = entry.get("error") or entry.get("reason")
    if isinstance(error, Mapping):
        return f"{error.get('message')} [{error.get('code')}] → {error.get('hint')}"
    return str(error) if error else ""


def details(entry: Mapping[str, Any]) -> str:
    """Scalars that say something: not unset, not zero, never nested (keys or rows might hide)."""
    return ", ".join(
        f"{name.replace('_', ' ')} {_short(value)}"
        for name, value in entry.items()
        if name not in UNSPOKEN
        and name != "reason"
        and value
        and isinstance(value, (int, float, str))
    )


def _short(value: float | str) -> str:
    if isinstance(value, bool):
        return "yes"
    return f"{value:.1f}" if isinstance(value, float) else str(value)
