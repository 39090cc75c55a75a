"""Figures and grids as people read them."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, Final

from rich.table import Table
from rich.text import Text

from tidegate.observability.quantities import human_bytes as human_bytes
from tidegate.observability.quantities import human_seconds as human_seconds

STATE_STYLES: Final = {
    "open": "green",
    "sweeping": "cyan",
    "sweep failed": "bold red",
    "held": "yellow",
    "applied": "green",
    "swept": "green",
    "opened": "green",
    "planned": "cyan",
    "equal": "green",
    "different": "bold red",
    "repaired": "green",
    "skipped": "yellow",
    "unchanged": "dim",
    "waiting": "yellow",
    "failed": "bold red",
    "missing": "yellow",
    "gone": "bold red",
    "ok": "green",
    "running": "green",
    "stopped": "yellow",
    "broken": "bold red",
    "degraded": "yellow",
    "warn": "yellow",
    "act": "bold red",
}


def ago(moment: datetime | str | None) -> str:
    """``3 min ago``."""
    if moment is None:
        return ""
    at = datetime.fromisoformat(moment) if isinstance(moment, str) else moment
    return f"{human_seconds(max(0.0, (datetime.now(UTC) - at).total_seconds()))} ago"


def grid(*columns: str) -> Table:
    """A table without lines."""
    table = Table(box=None, pad_edge=False, header_style="bold dim")
    for column in columns:
        table.add_column(column, overflow="fold")
    return table


def styled(state: str) -> Text:
    """A state in its colour."""
    return Text(state, STATE_STYLES.get(state, ""))


def cell(value: Any) -> str:
    """A value in a table's cell."""
    if value is None or value == "":
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}".replace(",", "\u202f") if abs(value) < 10**12 else str(value)
    if isinstance(value, list):
        return ", ".join(map(str, value))
    return f"{value:.1f}" if isinstance(value, float) else str(value)
