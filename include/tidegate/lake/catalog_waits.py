"""A catalog file that somebody else has locked is waited for, and that is said.

SQLite waits inside the statement, for a minute, without a word. Here a thread looks at statements
that take longer than ``SAY_SECONDS``, asks the file itself whether it is locked, and says so once:
not at every attempt, until a statement that waited gets through.
"""

from __future__ import annotations

import logging
import os
import sqlite3
import threading
import time
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from sqlalchemy import event

from tidegate.observability import log

if TYPE_CHECKING:
    from sqlalchemy.engine import Engine

SAY_SECONDS: Final = 2.0
"""A commit holds the lock for milliseconds: longer is not our own doing."""
AGAIN_SECONDS: Final = 300.0
"""Not at every attempt."""
_LOG = log.get(__name__)


class CatalogWaits:
    """The statements that threads of this process are at, on one catalog file."""

    def __init__(self, file: Path, say_seconds: float) -> None:
        self._file = file
        self._say_seconds = say_seconds
        self._changed = threading.Condition()
        self._since: dict[int, float] = {}
        self._thread: threading.Thread | None = None
        self._quiet_until = 0.0
        os.register_at_fork(after_in_child=self._forked)

    def begin(self) -> None:
        """This thread begins a statement or a commit."""
        with self._changed:
            self._since[threading.get_ident()] = time.monotonic()
            if self._thread is None:
                self._thread = threading.Thread(
                    target=self._watch, name="tidegate-catalog-waits", daemon=True
                )
                self._thread.start()
            elif len(self._since) == 1:
                self._changed.notify()

    def end(self, *, well: bool) -> None:
        """This thread is through, or gave up."""
        with self._changed:
            began = self._since.pop(threading.get_ident(), None)
            waited = 0.0 if began is None else time.monotonic() - began
            # A reader that gets through beside a writer that does not has not waited.
            if not (well and self._quiet_until and waited >= self._say_seconds):
                return
            self._quiet_until = 0.0
        log.event(_LOG, "the catalog is free again", seconds=round(waited, 1))

    def _forked(self) -> None:
        """A forked process has none of the threads, and perhaps a lock that one of them held."""
        self._changed = threading.Condition()
        self._since, self._thread = {}, None

    def _watch(self) -> None:
        while True:
            with self._changed:
                self._forget_lost()
                while not self._since:
                    self._changed.wait()
                due = max(min(self._since.values()) + self._say_seconds, self._quiet_until)
                left = due - time.monotonic()
                if left > 0:
                    self._changed.wait(left)
                    continue
            self._look()

    def _forget_lost(self) -> None:
        """A statement whose end nobody told of: its connection was given up."""
        oldest = time.monotonic() - AGAIN_SECONDS
        self._since = {thread: since for thread, since in self._since.items() if since > oldest}

    def _look(self) -> None:
        """A slow disk is no lock: the file itself is asked."""
        if not _is_locked(self._file):
            time.sleep(self._say_seconds / 10)
            return
        with self._changed:
            if not self._since:
                return
            self._quiet_until = time.monotonic() + AGAIN_SECONDS
        log.event(
            _LOG,
            "the catalog is locked by another process: waiting for it",
            level=logging.WARNING,
            reason=str(self._file),
            hint="it goes on by itself; if it stays so, look for a program that has the file open"
            " in a transaction (fuser, lsof)",
        )


_WAITS: Final[dict[Path, CatalogWaits]] = {}
_MAKING: Final = threading.Lock()


def told_of(engine: Engine) -> None:
    """Have waits of ``engine`` said. Only SQLite's file is locked as a whole."""
    file = engine.url.database
    if engine.dialect.name != "sqlite" or file is None:
        return
    path = Path(file)
    with _MAKING:
        waits = _WAITS[path] = _WAITS.get(path) or CatalogWaits(path, SAY_SECONDS)

    def begin(*_: Any) -> None:
        waits.begin()

    def end(*_: Any) -> None:
        waits.end(well=True)

    def given_up(_: Any) -> None:
        waits.end(well=False)

    for name, listener in (
        ("before_cursor_execute", begin),
        ("after_cursor_execute", end),
        ("commit", begin),  # it waits for readers; the connection goes back to the pool after it
        ("checkin", end),
        ("handle_error", given_up),
    ):
        event.listen(engine, name, listener)


def _is_locked(file: Path) -> bool:
    try:
        with closing(sqlite3.connect(file, timeout=0, isolation_level=None)) as asking:
            asking.execute("BEGIN IMMEDIATE")
            asking.execute("ROLLBACK")
    except sqlite3.OperationalError as error:
        return "locked" in str(error)
    return False
