"""Attribute numbers of a relation message: only those that are certain."""

from __future__ import annotations

import pytest

from tidegate.connectors.postgres.discover import Attribute, Relation
from tidegate.connectors.postgres.pgoutput import RelationColumn, RelationMessage
from tidegate.connectors.postgres.relations import column_numbers
from tidegate.names import TableId

TABLE = TableId("public", "t")
INT, TEXT = 23, 25


def message(*columns: tuple[str, int]) -> RelationMessage:
    own = tuple(RelationColumn(name, type_, -1, False) for name, type_ in columns)
    return RelationMessage(100, TABLE, "d", own)


def live(*columns: tuple[int, str, int], oid: int = 100, generated: str = "") -> Relation:
    own = tuple(
        Attribute(number, name, type_, -1, False, 0, generated if name == "g" else "", name)
        for number, name, type_ in columns
    )
    return Relation(oid, TABLE, "r", "d", own, (), ())


@pytest.mark.parametrize(
    ("sent", "known", "numbers"),
    [
        # Never lost a column: numbered from one on, whatever it is called today.
        ([("id", INT), ("a", INT)], live((1, "id", INT), (2, "a", INT)), (1, 2)),
        ([("id", INT), ("a", INT)], live((1, "id", INT), (2, "b", TEXT)), (1, 2)),
        ([("id", INT)], live((1, "id", INT), (2, "later", INT)), (1,)),
        ([("a", INT), ("b", INT)], live((1, "b", INT), (2, "a", INT)), (1, 2)),
        # With a hole the catalog must list just what was sent.
        ([("id", INT), ("a", INT)], live((1, "id", INT), (3, "a", INT)), (1, 3)),
        ([("id", INT)], live((1, "id", INT), (3, "a", INT)), (1,)),
        ([("id", INT), ("a", INT)], live((1, "id", INT), (3, "b", INT)), (None, None)),
        ([("id", INT), ("a", INT)], live((1, "id", INT), (3, "a", TEXT)), (None, None)),
        ([("a", INT), ("b", INT)], live((1, "b", INT), (4, "a", INT)), (None, None)),
        # More was sent than there is.
        ([("id", INT), ("a", INT)], live((1, "id", INT)), (None, None)),
        # Another table, or none.
        ([("id", INT)], live((1, "id", INT), oid=101), (None,)),
        ([("id", INT)], None, (None,)),
        # A generated column is not sent, so places are not numbers.
        ([("id", INT), ("z", INT)], live((1, "id", INT), (2, "g", INT), (3, "z", INT)), (1, 3)),
    ],
)
def test_numbers_are_certain_or_not_known(
    sent: list[tuple[str, int]], known: Relation | None, numbers: tuple[int | None, ...]
) -> None:
    if known is not None and any(a.name == "g" for a in known.attributes):
        known = live(*((a.number, a.name, a.type) for a in known.attributes), generated="s")
    assert column_numbers(message(*sent), known) == numbers


def test_a_column_list_makes_places_no_numbers() -> None:
    known = live((1, "id", INT), (2, "a", INT), (3, "b", INT))
    assert column_numbers(message(("id", INT), ("b", INT)), known, whole=False) == (1, 3)
    assert column_numbers(message(("id", INT), ("c", INT)), known, whole=False) == (None, None)
