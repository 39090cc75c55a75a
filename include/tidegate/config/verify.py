"""``verify:``: how much of the tables a scheduled verification compares."""

from __future__ import annotations

import re
from typing import Annotated, Final, NamedTuple

from pydantic import AfterValidator, Field

from tidegate.config.base import Section
from tidegate.errors import ConfigError

_PERCENT: Final = re.compile(r"(?P<number>\d{1,3}(\.\d+)?) ?%")


class Extent(NamedTuple):
    """How much of a table is compared."""

    sample: float
    """Share of the keys, up to 1."""
    changed: bool = False
    """Only what changed since every row was found equal, where that can be told."""


WHOLE: Final = Extent(1.0)
CHANGED: Final = "changed"


def extent(text: str) -> Extent:
    """``5%``, or ``changed``."""
    if text.strip() == CHANGED:
        return Extent(WHOLE.sample, changed=True)
    match = _PERCENT.fullmatch(text.strip())
    percent = float(match["number"]) if match else 0.0
    if not 0 < percent <= 100:
        raise ConfigError(
            "verify.sample",
            f"{text!r} is no share of a table",
            hint="write a percentage above 0 and up to 100 (5%), or changed",
        )
    return Extent(percent / 100)


def _sample(value: str) -> str:
    try:
        extent(value)
    except ConfigError as error:
        raise ValueError(error.hint) from None
    return value


class VerifyConfig(Section):
    """What `<pipeline>__verify` and `tidegate verify` compare if they are not told otherwise."""

    sample: Annotated[str, AfterValidator(_sample)] = Field(
        "100%",
        description="Share of each table's keys per run (5%); successive runs take others, until"
        " all are covered. `changed`: all keys, of which only those are read that changed since"
        " every row was last found equal, where the source can tell.",
    )

    @property
    def extent(self) -> Extent:
        return extent(self.sample)
