"""Work that takes longer than a request: started here, done elsewhere, asked for by id."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any, Final, Protocol

from tidegate.api.problems import Refused
from tidegate.observability.caller import Caller

LOG_LINES: Final = 200
"""The end of a run's log that is shown."""


class Verb(StrEnum):
    """What can be started."""

    SWEEP = "sweep"
    VERIFY = "verify"
    MAINTAIN = "maintain"
    REDRIVE = "redrive"
    ROLLBACK = "rollback"
    SET_OFFSET = "set offset"


class RunState(StrEnum):
    QUEUED = "queued"
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Work:
    """What is to be done. Options are JSON values: tables, flags, a key range; no row value."""

    verb: Verb
    pipeline: str
    options: Mapping[str, Any] = field(default_factory=dict)

    @property
    def digest(self) -> str:
        """The same for the same request."""
        text = json.dumps([self.verb, self.pipeline, dict(self.options)], sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class Run:
    """Work that was started."""

    id: str
    work: Work
    state: RunState
    started_by: str
    started_at: datetime | None
    ended_at: datetime | None = None
    link: str | None = None  # where to watch it: a Dag run's page
    result: dict[str, Any] | None = None
    error: dict[str, Any] | None = None
    log: Sequence[str] = ()


class Runner(Protocol):
    """Starts work. Durable: a run that was answered with an id is found by it after a restart.

    The same ``key`` of the same caller gives the same run, once; with other work it is refused
    (:func:`other_work`). Without a key every call starts anew. Concurrent calls are safe. Bounded:
    what is too much is refused with 429.
    """

    def start(self, work: Work, caller: Caller, key: str | None) -> Run: ...

    def find(self, pipeline: str, run_id: str) -> Run | None:
        """A run of ``pipeline`` with its log's end; None: there is none of that id."""
        ...

    def recent(self, pipeline: str, limit: int) -> list[Run]:
        """Newest first, without logs."""
        ...


def run_name(work: Work, caller: Caller, key: str) -> str:
    """The id of the run that ``key`` names: another caller's equal key names another run."""
    digest = hashlib.sha256(f"{work.pipeline}\0{caller}\0{key}".encode()).hexdigest()
    return f"{work.pipeline}-{digest[:16]}"


def other_work() -> Refused:
    """The key was used for something else."""
    return Refused(
        409,
        "api.idempotency_key",
        "this Idempotency-Key was used for another request",
        hint="use a new key for new work; the same key only to repeat the same request",
    )


def no_such_run() -> Refused:
    return Refused(
        404,
        "api.no_such_run",
        "there is no such run",
        hint="a POST that starts work answers with one",
    )
