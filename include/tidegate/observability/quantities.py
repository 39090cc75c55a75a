"""Sizes and spans of time as people read them."""

from __future__ import annotations


def human_bytes(count: int | None) -> str:
    """``12.3 MiB``; a dash for the unknown."""
    if count is None:
        return "–"
    size = float(count)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if abs(size) < 1024:
            return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1024
    return f"{size:.1f} TiB"


def human_seconds(seconds: float | None) -> str:
    """``3 min``; a dash for the unknown."""
    if seconds is None:
        return "–"
    for limit, size, unit in ((90, 1, "s"), (5400, 60, "min"), (172_800, 3600, "h")):
        if seconds < limit:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds / 86_400:.0f} d"
