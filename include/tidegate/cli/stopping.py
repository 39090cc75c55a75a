"""SIGINT and SIGTERM end a command cleanly.

The first asks: the step in hand is finished, then the command ends. The second interrupts that
step; everything durable stays, and the next run goes on from it (I3).
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType, TracebackType
from typing import Final

SIGNALS: Final = (signal.SIGINT, signal.SIGTERM)


class StopSignals:
    """``event`` is set by the first signal; the second raises KeyboardInterrupt."""

    def __init__(self) -> None:
        self.event = threading.Event()

    def __enter__(self) -> StopSignals:
        self._before = {number: signal.getsignal(number) for number in SIGNALS}
        self.arm()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def arm(self) -> None:
        """Take the signals (again: a Spark session puts a SIGINT handler of its own in place)."""
        for number in SIGNALS:
            signal.signal(number, self._stop)

    def _stop(self, number: int, frame: FrameType | None) -> None:
        if self.event.is_set():
            raise KeyboardInterrupt
        self.event.set()


@contextmanager
def ended_by_sigterm() -> Iterator[None]:
    """SIGTERM interrupts as SIGINT does: a command that started servers leaves none behind."""
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
