"""Who holds a lease: a process, named so that others on its host can see whether it is gone."""

from __future__ import annotations

import functools
import hashlib
import os
import socket
from pathlib import Path
from typing import Final

_PROC: Final = Path("/proc")
_START_FIELD: Final = 19  # starttime, counted after the command name
_STATE_FIELD: Final = 0


@functools.cache
def host() -> str:
    """This host. Process ids mean something only within one boot and one pid namespace."""
    facts = [socket.gethostname()]
    for place in (_PROC / "sys/kernel/random/boot_id", _PROC / "self/ns/pid"):
        try:
            facts.append(place.read_text().strip() if place.is_file() else str(place.readlink()))
        except OSError:
            facts.append("")  # not Linux: the host name alone, and takeover by time only
    digest = hashlib.sha256("\n".join(facts).encode()).hexdigest()[:8]
    return f"{facts[0]}-{digest}"


def me() -> str:
    """``host:pid:start``: this process. Not cached, a fork is another process."""
    pid = os.getpid()
    return f"{host()}:{pid}:{_start(pid) or 'unknown'}"


def is_gone(owner: str) -> bool:
    """True only if it is certain: the same host, and no such process any more."""
    where, _, rest = owner.rpartition(":")
    where, _, pid = where.rpartition(":")
    if where != host() or not pid.isdigit() or not rest.isdigit():
        return False
    return _start(int(pid)) != rest


def _start(pid: int) -> str | None:
    """When the process started, in clock ticks since boot; None if it is gone or a zombie."""
    try:
        text = (_PROC / str(pid) / "stat").read_text()
    except OSError:
        return None
    fields = text.rpartition(")")[2].split()  # the command name may hold blanks and brackets
    return None if fields[_STATE_FIELD] in "ZX" else fields[_START_FIELD]
