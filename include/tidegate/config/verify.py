"""``verify:``: how much of the tables a scheduled verification compares."""

from __future__ import annotations

import re
from typing import Annotated, Final

from pydantic import AfterValidator, Field

from tidegate.config.base import Section
from tidegate.errors import ConfigError

_PERCENT: Final = re.compile(r"(?P<number>\d{1,3}(\.\d+)?) ?%")


def share(text: str) -> float:
    """``5%`` as 0.05."""
    match = _PERCENT.fullmatch(text.strip())
    percent = float(match["number"]) if match else 0.0
    if not 0 < percent <= 100:
        raise ConfigError(
            "verify.sample",
            f"{text!r} is no share of a table",
            hint="write a percentage above 0 and up to 100: 5%",
        )
    return percent / 100


def _sample(value: str) -> str:
    try:
        share(value)
    except ConfigError as error:
        raise ValueError(error.hint) from None
    return value


class VerifyConfig(Section):
    """What `<pipeline>__verify` and `tidegate verify` compare if they are not told otherwise."""

    sample: Annotated[str, AfterValidator(_sample)] = Field(
        "100%",
        description="Share of each table's keys per run (5%); successive runs take others, until"
        " all are covered.",
    )

    @property
    def share(self) -> float:
        return share(self.sample)
