"""Readiness: the last look at health, kept, so that any number of probes costs the source one look.

A look is made in a thread, and only when somebody asks and the last one is old. Who asks waits
briefly for it, then gets the one before: probes have a second or two.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from typing import Final, Generic, TypeVar

from tidegate.observability import log

_LOG = log.get(__name__)
Seen = TypeVar("Seen")

KEPT_SECONDS: Final = 5.0
"""Between two looks; longer where a look takes long, see ``_SHARE``."""
WAIT_SECONDS: Final = 0.8
"""Kubernetes gives a probe one second."""
FIRST_WAIT_SECONDS: Final = 5.0
"""Where there is no earlier look to answer with."""
STALE_SECONDS: Final = 60.0
"""So long after the next look was due, what the last one gave is no answer any more."""
_SHARE: Final = 2
"""After a look the source has this many times as long without one."""


class Kept(Generic[Seen]):
    """What ``look`` last gave. Safe to ask from many threads; at most one look is under way."""

    def __init__(
        self,
        look: Callable[[], Seen],
        *,
        kept_seconds: float = KEPT_SECONDS,
        wait_seconds: float = WAIT_SECONDS,
        stale_seconds: float = STALE_SECONDS,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._look = look
        self._kept = kept_seconds
        self._wait = wait_seconds
        self._stale = stale_seconds
        self._clock = clock
        self._lock = threading.Lock()
        self._seen: Seen | None = None
        self._due = 0.0  # when the next look may be made
        self._ended: threading.Event | None = None  # of the look under way

    def get(self) -> Seen | None:
        """The newest look; None while there is none, or if looks do not end any more."""
        with self._lock:
            now = self._clock()
            if self._seen is not None and now < self._due:
                return self._seen
            if self._ended is None:
                self._ended = threading.Event()
                threading.Thread(
                    target=self._go, args=(self._ended,), name="tidegate-look", daemon=True
                ).start()
            ended, known = self._ended, self._known(now)
        ended.wait(FIRST_WAIT_SECONDS if known is None else self._wait)
        with self._lock:
            return self._known(self._clock())

    def _known(self, now: float) -> Seen | None:
        return None if now > self._due + self._stale else self._seen

    def _go(self, ended: threading.Event) -> None:
        began = self._clock()
        seen: Seen | None = None
        try:
            seen = self._look()
        except Exception as error:  # noqa: BLE001 - a look that fails is "not known", which is 503
            told = type(error).__name__  # only its kind (I9)
            log.event(_LOG, "no look at health", level=logging.WARNING, reason=told)
        now = self._clock()
        with self._lock:
            self._seen = seen
            self._due = now + max(self._kept, _SHARE * (now - began))
            self._ended = None
        ended.set()
