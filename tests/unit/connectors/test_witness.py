"""What a look at the catalog and the log say together."""

from __future__ import annotations

import pytest

from tidegate.connectors.postgres.ddl_messages import Relaid, Told
from tidegate.connectors.postgres.moments import Moment
from tidegate.connectors.postgres.pgoutput import RelationMessage
from tidegate.connectors.postgres.witness import Witness
from tidegate.names import TableId

TURN = 2**32
T = TableId("public", "t")


@pytest.mark.parametrize(
    ("end", "xid", "seen"),
    [
        (100, 99, True),
        (100, 90, False),  # it was running
        (100, 100, False),
        (100, TURN - 5, True),  # before the numbers went round
        (TURN + 5, 6, False),
        (TURN + 5, 4, True),
        (TURN + 5, TURN - 1, True),
        (TURN - 5, 3, False),  # after they did
    ],
)
def test_a_moment_sees_what_had_committed(end: int, xid: int, seen: bool) -> None:
    assert Moment(80, end, frozenset({90}), 1, "1").sees(xid) is seen


def test_marks_of_another_line_are_of_no_use() -> None:
    now = Moment(80, 90, frozenset(), 1, "00000002")
    assert now.below(now.mark) == 80
    assert now.below("00000001/70") is None
    assert now.below(None) is None


def test_the_log_covers_what_a_moment_before_it_saw() -> None:
    witness = Witness(
        [
            Moment(10, 10, frozenset(), 100, "1"),
            Moment(20, 20, frozenset(), 200, "1"),
        ]
    )
    assert [witness.covers(15, lsn) for lsn in (99, 100, 199)] == [False] * 3
    assert witness.covers(9, 100)
    assert witness.covers(15, 200)
    assert len(witness.moments) == 1


def told(**files: str) -> Told:
    return Told(RelationMessage(7, T, "d", ()), {}, False, files)


def test_rewrites_lead_from_file_to_file_only_without_a_gap() -> None:
    witness = Witness()
    for message in (Relaid("8", "1"), told()):  # a message of a release before files
        witness.hear(message, 1)
    witness.hear(told(**{"8": "9"}), 2)  # a later statement, which rewrote nothing
    assert not witness.rewritten("8", "1", "9")
    for message in (Relaid("8", "1"), told(**{"8": "2", "9": "5"}), Relaid("8", "2")):
        witness.hear(message, 3)
    assert witness.rewritten("8", "1", "2")
    witness.hear(told(**{"8": "3"}), 3)
    assert witness.rewritten("8", "1", "3")
    assert not witness.rewritten("8", "0", "3")  # TRUNCATE before it
    assert not witness.rewritten("8", "1", "4")  # or after it
    assert not witness.rewritten("9", "4", "5")
