"""SIGINT and SIGTERM end a command cleanly.

The first asks: the step in hand is finished, then the command ends. The second interrupts that
step; everything durable stays, and the next run goes on from it (I3).
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Final

SIGNALS: Final = (signal.SIGINT, signal.SIGTERM)


@contextmanager
def stop_event() -> Iterator[threading.Event]:
    """An event that the first signal sets; the second raises KeyboardInterrupt."""
    event = threading.Event()

    def stop(number: int, frame: FrameType | None) -> None:
        if event.is_set():
            raise KeyboardInterrupt
        event.set()

    before = {number: signal.signal(number, stop) for number in SIGNALS}
    try:
        yield event
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
