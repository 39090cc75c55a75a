"""What no row event told: found in the catalog, since the last sweep."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tidegate.lake.schema_ahead import unsent
from tidegate.names import TableId
from tidegate.schema.table import Column, TableSchema
from tidegate.schema.table_facts import TableFacts
from tidegate.schema.types import STRING, TextRule

A = Column("a", "text", STRING, TextRule.PLAIN, number=1)
W = Column("w", "text", STRING, TextRule.PLAIN, number=2)
SWEPT = TableSchema(TableId("public", "t"), (A,), 7)
WIDER = replace(SWEPT, columns=(A, W))
BEFORE = TableFacts(7, labels={"1": "mood.good", "2": "mood.bad"}, partitions={"8": "p8"})


@pytest.mark.parametrize(
    ("live", "now", "words"),
    [
        (SWEPT, BEFORE, []),
        (WIDER, BEFORE, []),
        (WIDER, replace(BEFORE, filled=("w",), defaults=("w",)), ["w was added with a default"]),
        (WIDER, replace(BEFORE, defaults=("w",)), ["w was added and has a default"]),
        (SWEPT, replace(BEFORE, filled=("a",)), []),  # the sweep has read it
        (replace(SWEPT, relation=9), replace(BEFORE, relation=9), ["made anew"]),
        (
            replace(SWEPT, columns=(replace(A, source_type="varchar(5)"),)),
            BEFORE,
            ["the table was rewritten"],
        ),
        (
            SWEPT,
            replace(BEFORE, labels={"1": "mood.good", "2": "mood.sad", "3": "mood.new"}),
            ["mood.bad is called mood.sad"],
        ),
        (SWEPT, replace(BEFORE, partitions={"9": "p9"}), ["p8 is gone", "p9 came"]),
    ],
)
def test_every_trace_is_named(live: TableSchema, now: TableFacts, words: list[str]) -> None:
    found = list(unsent(SWEPT, live, now, BEFORE))
    assert len(found) == len(words)
    assert all(word in line for word, line in zip(words, found, strict=True))


def test_where_nothing_was_seen_before_nothing_is_claimed() -> None:
    assert list(unsent(None, WIDER, replace(BEFORE, filled=("w",)), None)) == []
    assert TableFacts.from_dict(BEFORE.to_dict()) == BEFORE
