"""Names of a source in the letters another system allows, different names staying different."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

_DIGITS: Final = 6


@dataclass(frozen=True, slots=True)
class Alphabet:
    """What is allowed; everything else becomes ``_``, as Debezium has it."""

    illegal: re.Pattern[str]
    bad_start: re.Pattern[str]

    def spell(self, name: str) -> str:
        found = self.illegal.sub("_", name)
        return f"_{found}" if self.bad_start.match(found) or not found else found


AVRO: Final = Alphabet(re.compile(r"[^A-Za-z0-9_]"), re.compile(r"[0-9]"))
TOPIC: Final = Alphabet(re.compile(r"[^A-Za-z0-9_-]"), re.compile(r"(?!)"))
"""One part of a topic's name: a dot separates parts."""


def spelled(names: Sequence[str], alphabet: Alphabet) -> dict[str, str]:
    """Each name's spelling; of those that would be alike, the ones that had to change get a mark.

    The mark is made of the name itself, so that it does not depend on the order of the names. A
    name that is legal is never changed.
    """
    found = {name: alphabet.spell(name) for name in names}
    alike = Counter(found.values())
    kept = {name for name in names if found[name] == name or alike[found[name]] == 1}
    taken = {found[name] for name in kept}
    for name in names:
        if name in kept:
            continue
        digest = hashlib.sha256(name.encode()).hexdigest()
        marks = (f"{found[name]}_{digest[:n]}" for n in range(_DIGITS, len(digest) + 1))
        found[name] = next(mark for mark in marks if mark not in taken)
        taken.add(found[name])
    return found
