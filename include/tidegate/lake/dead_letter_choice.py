"""Which dead letters a person means."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime

from tidegate.envelope.dead_letter import Key
from tidegate.errors import ConfigError
from tidegate.lake.dead_letter_fold import Letter


@dataclass(frozen=True, slots=True)
class Choice:
    """Which letters; empty means all. The letters of one row always go together."""

    event_ids: frozenset[str] = frozenset()
    keys: frozenset[Key] = frozenset()
    codes: frozenset[str] = frozenset()
    seen_before: datetime | None = None
    seen_after: datetime | None = None

    def matches(self, letter: Letter) -> bool:
        return (
            (not self.event_ids or letter.event_id in self.event_ids)
            and (not self.keys or bool(letter.keys & self.keys))
            and (not self.codes or letter.code in self.codes)
            and (self.seen_before is None or letter.first_seen < self.seen_before)
            and (self.seen_after is None or letter.first_seen >= self.seen_after)
        )


def choose(
    event_ids: Iterable[str] = (),
    keys: Iterable[str] = (),
    codes: Iterable[str] = (),
    since: str | None = None,
    before: str | None = None,
) -> Choice:
    """A choice as people write it: keys as text (of several parts: a JSON list), times as ISO."""
    return Choice(
        frozenset(event_ids),
        frozenset(_key(text) for text in keys),
        frozenset(codes),
        None if before is None else _time(before),
        None if since is None else _time(since),
    )


def together(letters: Iterable[Letter], choice: Choice) -> list[Letter]:
    """The chosen letters and all others of the rows they belong to, in log order."""
    known = list(letters)
    chosen = {letter.event_id for letter in known if choice.matches(letter)}
    while True:
        keys = {key for letter in known if letter.event_id in chosen for key in letter.keys if key}
        more = {letter.event_id for letter in known if letter.keys & keys} - chosen
        if not more:
            return [letter for letter in known if letter.event_id in chosen]
        chosen |= more


def _key(text: str) -> Key:
    if not text.startswith("["):
        return (text,)
    try:
        parts = json.loads(text)
    except ValueError:
        return (text,)
    return tuple(None if part is None else str(part) for part in parts)


def _time(text: str) -> datetime:
    try:
        at = datetime.fromisoformat(text)
    except ValueError as error:
        raise ConfigError(
            "dead_letters.time",
            f"{text!r} is not a time",
            hint="write it as 2026-11-17 or 2026-11-17T08:30:00 (UTC unless it says otherwise)",
        ) from error
    return at if at.tzinfo else at.replace(tzinfo=UTC)
