"""Columns that bring a value for older rows, and tables that get another key."""

from __future__ import annotations

from dataclasses import replace

import pytest
from pyiceberg.types import IntegerType, StringType

from tests.unit.lake.test_evolution import ALTER, ID, INT, at, column, lake, lineage, sql, table
from tidegate.lake.evolution import SchemaConflict, evolve
from tidegate.lake.facts_ledger import FactsEntry
from tidegate.lake.lineage import Lineage
from tidegate.schema.table_facts import Leaf, TableFacts

A, W, X = column("a", INT, 2), column("w", INT, 3), column("x", number=4)
THREE = (table(A), table(A, W), table(replace(A, name="b"), W, X))


def looked(
    found: Lineage, *missing: dict[str, str | None], file: str = "1", kind: str = "text"
) -> Lineage:
    """``found``, and the catalog before, with w, with x."""
    names = [{"1": "id", "2": "a"}, {"1": "id", "2": "a", "3": "w"}]
    names.append({"1": "id", "2": "b", "3": "w", "4": "x"})
    files = ("1", file, file)
    facts = [
        TableFacts(
            7, columns=own, defaults=("3",), leaves={"7": Leaf("t", files[n], True, missing[n])}
        )
        for n, own in enumerate(names[: len(missing)])
    ]
    looks = [FactsEntry(at(10 * n), at(10 * n), one) for n, one in enumerate(facts)]
    return Lineage(found.versions, found.target, looks)


def test_older_rows_of_lake_and_log_get_the_default() -> None:
    known = looked(lineage(*THREE), {}, {"3": "7"}, {"3": "7", "4": "new"})
    found = evolve(lake(a=IntegerType()), known, [0, 1, 2], base=0)
    assert [(c.name, c.given, c.type) for c in found.fills] == [
        ("w", "7", INT),
        ("x", "new", X.type),
    ]
    given = {
        index: [(c.name, c.given) for c in found.schemas[index].columns if c.given is not None]
        for index in range(3)
    }
    assert given == {0: [("w", "7"), ("x", "new")], 1: [("x", "new")], 2: []}
    # A letter of the first schema, long after: its row is older than both columns.
    later = evolve(lake(b=IntegerType(), w=IntegerType(), x=StringType()), known, [0], base=2)
    assert not later.fills
    assert [c.name for c in later.schemas[0].columns] == ["id", "b", "w", "x"]
    # A sweep reads what the source has.
    swept = evolve(lake(a=IntegerType()), known, [2], base=0, sweeping=True)
    assert not swept.fills and all(c.given is None for c in swept.schemas[2].columns)


def test_columns_that_are_left_out_are_not_filled() -> None:
    known = looked(lineage(*THREE[:2], schema_changes={"add": "ignore"}), {}, {"3": "7"})
    found = evolve(lake(a=IntegerType()), known, [0, 1], base=0)
    assert not found.fills and not found.statements


def test_what_nobody_can_tell_is_held_unless_it_does_not_matter() -> None:
    known = looked(lineage(*THREE[:2]), {}, {}, file="2")
    with pytest.raises(SchemaConflict, match="w was added and the table rewritten"):
        evolve(lake(a=IntegerType()), known, [1], base=0)
    for harmless in ({"sweeping": True}, {"emptied": at(11).place}):
        assert not evolve(lake(a=IntegerType()), known, [1], base=0, **harmless).fills
    with pytest.raises(SchemaConflict):  # rows that came between the TRUNCATE and the column
        evolve(lake(a=IntegerType()), known, [1], base=0, emptied=at(9).place)
    let = looked(lineage(*THREE[:2], approve={1: {}}), {}, {}, file="2")
    assert not evolve(lake(a=IntegerType()), let, [1], base=0).fills


OTHER = (table(A), table(replace(A, key=1, nullable=False)))
SWAPPED = replace(table(), columns=(replace(ID, key=None), replace(A, key=0, nullable=False)))


def test_another_key_needs_an_approval_and_a_sweep() -> None:
    asked, let = lineage(table(A), SWAPPED), lineage(table(A), SWAPPED, approve={1: {}})
    for known, sweeping in ((asked, False), (asked, True), (let, False)):
        with pytest.raises(SchemaConflict, match=r"key: the lake is keyed by \(id\)"):
            evolve(lake(a=IntegerType()), known, [1], base=0, sweeping=sweeping)
    found = evolve(lake(a=IntegerType()), let, [1], base=0, sweeping=True)
    assert sql(found) == [
        "SET TBLPROPERTIES ('write.metadata.metrics.column.a' = 'truncate(36)')",
        "WRITE LOCALLY ORDERED BY `a`",
        "DROP IDENTIFIER FIELDS `id`",
        "ALTER COLUMN `id` DROP NOT NULL",
    ]
    assert all(statement.startswith(ALTER) for statement in found.statements)


def test_a_key_that_is_gone_needs_an_approval_and_a_sweep() -> None:
    keyless = replace(table(A), columns=(replace(ID, key=None), A))
    asked, let = lineage(table(A), keyless), lineage(table(A), keyless, approve={1: {}})
    for known, sweeping in ((asked, False), (asked, True), (let, False)):
        with pytest.raises(SchemaConflict, match=r"the source now by no column"):
            evolve(lake(a=IntegerType()), known, [1], base=0, sweeping=sweeping)
    found = evolve(lake(a=IntegerType()), let, [1], base=0, sweeping=True)
    assert sql(found) == [
        "WRITE UNORDERED",
        "DROP IDENTIFIER FIELDS `id`",
        "ALTER COLUMN `id` DROP NOT NULL",
    ]


def test_required_columns_can_be_the_identifier_of_a_new_key() -> None:
    let = lineage(*OTHER, approve={1: {}})
    wide = lake(a=IntegerType(), required=("a",))
    found = evolve(wide, let, [1], base=0, sweeping=True)
    assert sql(found)[-1] == "SET IDENTIFIER FIELDS `id`, `a`"
    # A version later, under the same key, the approval still counts.
    more = lineage(*OTHER, table(*OTHER[1].columns[1:], W), approve={1: {}})
    assert evolve(wide, more, [2], base=0, sweeping=True).needed


def test_a_lake_that_names_no_key_still_notices_another_one() -> None:
    unnamed = lake(a=IntegerType())
    unnamed = type(unnamed)(*unnamed.fields)
    for approve in ({}, {1: {}}):
        known = lineage(table(A), SWAPPED, approve=approve)
        with pytest.raises(SchemaConflict, match="the key was"):
            evolve(unnamed, known, [1], base=0)
    let = lineage(table(A), SWAPPED, approve={1: {}})
    assert evolve(unnamed, let, [1], base=0, sweeping=True).statements  # a killed sweep goes on
