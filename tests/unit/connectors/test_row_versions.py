"""Rows younger than a mark, whatever their transactions are numbered."""

from __future__ import annotations

import pytest

from tidegate.connectors.postgres.row_versions import _TYPES, younger_sql

EPOCH = 2**32


def is_younger(xmin: int, version: int, end: int) -> bool:
    """What the server would answer for a row with this xmin."""
    number = (xmin % EPOCH).to_bytes(4, "big")
    sql = younger_sql(version, end)
    low, high = (bytes.fromhex(part[:8]) for part in sql.split("'\\x")[1:])
    return number >= low or number < high if " OR " in sql else low <= number < high


@pytest.mark.parametrize("epoch", [0, EPOCH, 7 * EPOCH])
def test_a_row_is_younger_from_the_mark_on(epoch: int) -> None:
    version, end = epoch + 1000, epoch + 2000
    younger = [is_younger(epoch + at, version, end) for at in (999, 1000, 1999)]
    assert younger == [False, True, True]
    assert not is_younger(2, version, end)  # frozen by an old release


def test_numbers_that_begin_anew_lie_in_between() -> None:
    version, end = EPOCH - 10, EPOCH + 20
    younger = [is_younger(at, version, end) for at in (EPOCH - 11, EPOCH - 10, EPOCH + 19)]
    assert younger == [False, True, True]


@pytest.mark.parametrize(
    "name",
    [
        "integer",
        "numeric(12,2)",
        "numeric(5,-3)",
        "character varying(20)",
        "timestamp with time zone",
        "timestamp(3) without time zone",
        "text[]",
        "bit varying(7)",
        "interval",
    ],
)
def test_the_text_of_a_plain_type_follows_from_its_value(name: str) -> None:
    assert _TYPES.fullmatch(name)


@pytest.mark.parametrize("name", ["regclass", "regclass[]", "mood", "public.address", "citext"])
def test_that_of_others_may_not(name: str) -> None:
    assert not _TYPES.fullmatch(name)
