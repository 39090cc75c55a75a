"""Text order is log order; epochs do not compare."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.envelope.position import (
    Position,
    boundary,
    format_lsn,
    lsn_place,
    parse_lsn,
)
from tidegate.errors import FatalError

LSN = st.integers(min_value=0, max_value=2**64 - 1)
INDEX = st.integers(min_value=0, max_value=2**40 - 1)


@given(LSN, INDEX, LSN, INDEX)
def test_text_order_is_log_order(lsn_a: int, i: int, lsn_b: int, j: int) -> None:
    assert (lsn_place(lsn_a, i) < lsn_place(lsn_b, j)) == ((lsn_a, i) < (lsn_b, j))


@given(LSN)
def test_positions_and_lsns_read_back(lsn: int) -> None:
    position = boundary("7300-00", lsn)
    assert Position.parse(str(position)) == position
    assert position.lsn == lsn
    assert parse_lsn(format_lsn(lsn)) == lsn


def test_a_boundary_lies_between_what_commits_before_it_and_what_commits_at_it() -> None:
    end = boundary("e", 0x200)
    assert Position("e", lsn_place(0x1F0, 999)) < end < Position("e", lsn_place(0x200, 1))


def test_positions_of_two_epochs_do_not_compare() -> None:
    with pytest.raises(FatalError, match="two epochs"):
        _ = boundary("a", 1) < boundary("b", 1)


@pytest.mark.parametrize("text", ["", "no-slash", "e/", "/p", "a/b/c"])
def test_what_is_not_a_position_is_refused(text: str) -> None:
    with pytest.raises(FatalError) as caught:
        Position.parse(text)
    assert caught.value.code == "position.unreadable"
