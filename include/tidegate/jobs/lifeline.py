"""A job ends when whoever started it is gone.

Airflow's task process starts ``spark-submit`` (a JVM), which starts the Python driver. Killing the
first leaves the JVM, killing the JVM leaves the driver (seen: it went on writing). So the job
watches both: its parent, and the *owner* that :data:`OWNER_VARIABLE` names as ``pid:start-time``.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable
from types import FrameType
from typing import Final, NoReturn

import psutil

OWNER_VARIABLE: Final = "TIDEGATE_OWNER"
POLL_SECONDS: Final = 0.5
GRACE_SECONDS: Final = 5.0
"""Between the polite end (leases are released) and the hard one."""

STOPPED_STATUS: Final = 128 + signal.SIGTERM


class Stopped(BaseException):
    """SIGTERM or SIGINT arrived; a BaseException so that no handler takes it for a failure."""


def owner_mark(pid: int | None = None) -> str:
    """``pid:start-time``: a process id alone may be another process's by tomorrow."""
    process = psutil.Process(pid)
    return f"{process.pid}:{process.create_time():.2f}"


def stop_on_signals() -> None:
    """Turn SIGTERM and SIGINT into :class:`Stopped`, so that ``with`` and ``finally`` run."""

    def stop(number: int, frame: FrameType | None) -> NoReturn:
        raise Stopped(signal.Signals(number).name)

    signal.signal(signal.SIGTERM, stop)
    signal.signal(signal.SIGINT, stop)


def end_with_owner(environ: dict[str, str] | None = None) -> threading.Thread:
    """Watch parent and owner from a daemon thread; end this process when either is gone."""
    owner = (os.environ if environ is None else environ).get(OWNER_VARIABLE)
    parent = os.getppid()

    def gone() -> bool:
        return os.getppid() != parent or (owner is not None and not _alive(owner))

    thread = threading.Thread(target=_watch, args=(gone,), name="tidegate-lifeline", daemon=True)
    thread.start()
    return thread


def _alive(mark: str) -> bool:
    pid = int(mark.partition(":")[0])
    try:
        return owner_mark(pid) == mark and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def _watch(gone: Callable[[], bool]) -> None:
    pause = threading.Event()
    while not gone():
        pause.wait(POLL_SECONDS)
    os.kill(os.getpid(), signal.SIGTERM)
    pause.wait(GRACE_SECONDS)
    os._exit(STOPPED_STATUS)
