"""Sets of global transaction ids, of both kinds, and the anchor that keeps them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.connectors.mysql.anchor import Anchor
from tidegate.connectors.mysql.gtid import MariadbGtids, MysqlGtids
from tidegate.connectors.mysql.position import Place, volume
from tidegate.envelope.position import Position, boundary
from tidegate.errors import FatalError

ONE = "3e11fa47-71ca-11e1-9e33-c80aa9429562"
TWO = "4d11fa47-71ca-11e1-9e33-c80aa9429562"
EPOCH = f"binlog-{ONE}_7_65000000"


@given(st.lists(st.tuples(st.sampled_from([ONE, f"{ONE}:tag", TWO]), st.integers(1, 30))))
def test_a_set_has_exactly_what_was_added(ids: list[tuple[str, int]]) -> None:
    found = MysqlGtids()
    for each in ids:
        found.add(each)
    again = MysqlGtids.parse(str(found))
    for source in (ONE, f"{ONE}:tag", TWO):
        for number in range(32):
            assert again.has((source, number)) == ((source, number) in ids)
    assert again.covers(found)
    assert found.covers(again)


@given(st.sets(st.integers(1, 12)), st.sets(st.integers(1, 12)))
def test_a_set_covers_another_as_sets_do(one: set[int], two: set[int]) -> None:
    sets = []
    for numbers in (one, two):
        made = MysqlGtids()
        for number in numbers:
            made.add((ONE, number))
        sets.append(made)
    assert sets[0].covers(sets[1]) == (two <= one)


def test_the_servers_own_texts_are_read() -> None:
    told = MysqlGtids.parse(f"{ONE.upper()}:1-5:7:blue:2-3,\n{TWO}:9")
    assert str(told) == f"{ONE}:1-5:7,{ONE}:blue:2-3,{TWO}:9"
    assert str(MysqlGtids.parse("")) == ""
    # A file's list names every server that wrote to a domain, a position the last.
    assert str(MariadbGtids.parse("[0-11-5,0-12-9,1-11-3]")) == "0-12-9,1-11-3"
    assert MariadbGtids.parse("0-12-9").covers(MariadbGtids.parse("0-11-9"))
    assert not MariadbGtids.parse("0-12-9").covers(MariadbGtids.parse("0-12-9,1-12-1"))


def test_an_anchor_survives_its_text_and_is_no_part_of_the_position() -> None:
    anchor = Anchor(ONE, 7, 99, gtids=f"{ONE}:1-5", joined=f"{ONE}:1-3")
    position = boundary(EPOCH, Place(2, 7, 400).number, str(anchor))
    assert Anchor.of(position) == anchor
    assert position == boundary(EPOCH, Place(2, 7, 400).number)
    assert ONE not in str(position).removeprefix(EPOCH)
    assert Anchor.of(Position(EPOCH, position.place)) == Anchor(ONE, 7, 0x65000000)
    with pytest.raises(FatalError, match="another release"):
        Anchor.of(boundary(EPOCH, 0, '{"v":2}'))


def test_terms_order_before_files_and_files_before_offsets() -> None:
    places = [Place(0, 9, 400), Place(0, 10, 4), Place(1, 1, 4), Place(1, 1, 4_000_000_000)]
    texts = [boundary(EPOCH, place.number).place for place in places]
    assert texts == sorted(texts)
    assert [Place.of(Position(EPOCH, text)) for text in texts] == places
    with pytest.raises(FatalError):
        volume(0, 1 << 24)
