"""Moments as people and schedulers write them."""

from __future__ import annotations

from datetime import UTC, datetime

from tidegate.errors import ConfigError


def moment(text: str) -> datetime:
    """A date or a time in ISO form; without an offset it is UTC."""
    try:
        found = datetime.fromisoformat(text.strip())
    except ValueError:
        raise ConfigError(
            "reload.interval",
            f"{text!r} is no moment",
            hint="write a date (2026-03-01) or a time (2026-03-01T06:00:00+00:00)",
        ) from None
    return found if found.tzinfo is not None else found.replace(tzinfo=UTC)
