"""Shares and moments as people write them."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from pydantic import ValidationError

from tidegate.config.verify import VerifyConfig, extent
from tidegate.errors import ConfigError
from tidegate.jobs.moments import moment


@pytest.mark.parametrize(
    ("text", "expected"), [("5%", 0.05), ("0.5 %", 0.005), ("100%", 1.0), (" 20%", 0.2)]
)
def test_a_share_is_a_percentage(text: str, expected: float) -> None:
    assert extent(text).sample == pytest.approx(expected)
    assert not extent(text).changed


@pytest.mark.parametrize("text", ["0%", "101%", "5", "five", "-5%", ""])
def test_anything_else_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match=r"no share"):
        extent(text)
    with pytest.raises(ValidationError, match=r"percentage"):
        VerifyConfig(sample=text)


def test_moments_are_utc_unless_they_say_otherwise() -> None:
    assert moment("2026-03-01") == datetime(2026, 3, 1, tzinfo=UTC)
    assert moment("2026-03-01T02:00:00+02:00") == datetime(2026, 3, 1, tzinfo=UTC)
    with pytest.raises(ConfigError, match="no moment"):
        moment("yesterday")


def test_changed_is_all_of_the_table_by_what_changed() -> None:
    assert extent("changed") == (1.0, True)
    assert VerifyConfig(sample="changed").extent.changed
