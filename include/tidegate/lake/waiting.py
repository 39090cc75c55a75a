"""Which changes of a batch wait: the failing ones, and whatever follows them in the same rows (I7).

A row is followed through its key changes: what moves a row from A to B waits if either waits, and
then both do. Order within a row holds, every other row goes on.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass

from tidegate.envelope.dead_letter import Key, Role


@dataclass(frozen=True, slots=True)
class Step:
    """One change, as far as order is concerned."""

    event_id: str
    place: str  # rows of a sweep share theirs
    key: Key
    new_key: Key
    gone: bool = False  # a delete

    @property
    def keys(self) -> frozenset[Key]:
        return frozenset((self.key, self.new_key))


@dataclass(frozen=True, slots=True)
class Waiting:
    """The changes that wait (event ids), by role, and the keys of their rows."""

    changes: Mapping[str, Role]
    keys: frozenset[Key]


def who_waits(
    steps: Iterable[Step],
    failing: Set[str],
    blocked: Set[Key],
    *,
    last_only: bool,
    keeps_images: bool = False,
) -> Waiting:
    """Of ``steps`` (all of the batch that touch the keys in question), who waits.

    ``failing``: ids of changes that cannot be applied. ``blocked``: keys of letters that wait
    already. ``last_only``: the table keeps the last state of a row only, so that a failing change
    which a good one follows is no loss. ``keeps_images``: it keeps deleted rows, too, so that a
    delete does not make up for the values before it.
    """
    ordered = sorted(steps, key=lambda step: step.place)
    starts = set() if last_only else set(failing)
    while True:
        waiting = _follow(ordered, failing, starts, blocked)
        more = (
            _left_failing(ordered, failing, waiting.changes, keeps_images) if last_only else set()
        )
        if more <= starts:
            return waiting
        starts |= more


def _follow(
    steps: Sequence[Step], failing: Set[str], starts: Set[str], blocked: Set[Key]
) -> Waiting:
    keys = set(blocked)
    changes: dict[str, Role] = {}
    for step in steps:
        if step.event_id in starts or (step.keys & keys):
            changes[step.event_id] = Role.FAILED if step.event_id in failing else Role.WAITING
            keys |= step.keys
    return Waiting(changes, frozenset(keys))


def _left_failing(
    steps: Sequence[Step], failing: Set[str], waiting: Container[str], keeps_images: bool
) -> set[str]:
    """The first failing change of every row that is left in a failing state. A change that waits
    itself makes up for nothing."""
    began: dict[Key, str] = {}
    for step in steps:
        if step.event_id in failing:
            for key in step.keys:
                began.setdefault(key, step.event_id)
        elif step.event_id not in waiting and not (step.gone and keeps_images):
            for key in step.keys:
                began.pop(key, None)
    return set(began.values())
