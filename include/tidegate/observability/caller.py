"""Who acts, and through which surface: set once at a door, read by whatever keeps a record.

A door (command line, job process, HTTP request) enters :func:`acting_as`; the shared layer asks
:func:`current`, so that no action needs to be handed its actor and none can forget it (I10). A job
process learns it from :data:`CALLER_VARIABLE`, which whoever starts the job sets.
"""

from __future__ import annotations

import getpass
import json
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

CALLER_VARIABLE: Final = "TIDEGATE_CALLER"
LONGEST: Final = 200
"""Names come from other systems; a record needs no more of one than this."""


class Surface(StrEnum):
    """The doors people and schedules come through."""

    CLI = "cli"
    AIRFLOW = "airflow"
    API = "api"
    PYTHON = "python"  # the library, called by a program


@dataclass(frozen=True, slots=True)
class Caller:
    """A person or a schedule. Prints as the gate's timeline shows it: ``ann@host (cli)``."""

    name: str
    surface: Surface

    def __str__(self) -> str:
        return f"{self.name} ({self.surface.value})"

    def variable(self) -> dict[str, str]:
        """The environment by which a job process knows it."""
        return {CALLER_VARIABLE: json.dumps({"name": self.name, "surface": self.surface.value})}


_current: ContextVar[Caller | None] = ContextVar("tidegate_caller", default=None)


@contextmanager
def acting_as(caller: Caller) -> Iterator[None]:
    """Everything done in the block is done by ``caller``."""
    token = _current.set(caller)
    try:
        yield
    finally:
        _current.reset(token)


def current() -> Caller:
    """Who acts now: the door's word, else the starter's, else this process's user."""
    return _current.get() or _from_environment() or this_user(Surface.PYTHON)


def this_user(surface: Surface) -> Caller:
    """The operating system's user."""
    return Caller(f"{_user()}@{socket.gethostname()}"[:LONGEST], surface)


def _from_environment() -> Caller | None:
    text = os.environ.get(CALLER_VARIABLE)
    if not text:
        return None
    try:
        found = json.loads(text)
        return Caller(str(found["name"])[:LONGEST], Surface(found["surface"]))
    except (ValueError, KeyError, TypeError):
        return None  # set by hand, and wrongly: the user is still known


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a container's user without a name
        return f"uid {os.getuid()}"
