"""Events as they are logged: level, name and fields."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from tidegate.observability import log


@dataclass(frozen=True)
class Said:
    """One event."""

    level: int
    event: str
    fields: dict[str, Any]


class Ear(logging.Handler):
    """Keeps what it hears."""

    def __init__(self) -> None:
        super().__init__(logging.INFO)
        self.heard: list[Said] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.heard.append(Said(record.levelno, record.getMessage(), dict(log.fields_of(record))))

    def of(self, event: str) -> list[Said]:
        return [one for one in self.heard if one.event == event]


@pytest.fixture
def said() -> Iterator[Ear]:
    """What Tidegate logs from INFO on."""
    logger, ear = logging.getLogger(log.ROOT), Ear()
    level = logger.level
    logger.setLevel(logging.INFO)
    logger.addHandler(ear)
    yield ear
    logger.removeHandler(ear)
    logger.setLevel(level)
