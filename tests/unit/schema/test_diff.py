"""What changed between two schemas, and whether readers and writers understand each other."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tidegate.config.schema_changes import Compatibility
from tidegate.names import TableId
from tidegate.schema.compatibility import verdict
from tidegate.schema.diff import diff, match
from tidegate.schema.table import Column, TableSchema
from tidegate.schema.types import STRING, Kind, LogicalType, TextRule

ORDERS = TableId("public", "orders")
INT, LONG, FLOAT = LogicalType(Kind.INT), LogicalType(Kind.LONG), LogicalType(Kind.FLOAT)


def column(
    name: str,
    type_: LogicalType = STRING,
    *,
    number: int | None = None,
    key: int | None = None,
    nullable: bool = True,
    declared: str | None = None,
) -> Column:
    return Column(
        name, declared or str(type_), type_, TextRule.PLAIN, nullable=nullable, key=key,
        number=number,
    )  # fmt: skip


ID = column("id", LONG, number=1, key=0, nullable=False)


def table(*columns: Column, relation: int | None = 100) -> TableSchema:
    return TableSchema(ORDERS, (ID, *columns), relation)


def kinds(old: TableSchema, new: TableSchema, **options: dict[str, str]) -> list[str]:
    return [f"{change.kind} {change.column or ''}".strip() for change in diff(old, new, **options)]


A2 = column("a", INT, number=2)


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ([A2], [A2], []),
        ([A2], [A2, column("b", number=3)], ["add b"]),
        ([A2, column("b", number=3)], [A2], ["drop b"]),
        ([A2], [column("b", INT, number=2)], ["rename b"]),
        ([A2], [column("b", LONG, number=2)], ["rename b", "widen b"]),
        ([A2], [column("a", LONG, number=2)], ["widen a"]),
        ([column("a", LONG, number=2)], [A2], ["narrow a"]),
        ([A2], [column("a", STRING, number=2)], ["retype a"]),
        ([A2], [column("a", FLOAT, number=2)], ["retype a"]),
        (
            [column("a", LogicalType(Kind.DECIMAL, 10, 2))],
            [column("a", LogicalType(Kind.DECIMAL, 12, 2))],
            ["widen a"],
        ),
        (
            [column("a", LogicalType(Kind.DECIMAL, 10, 2))],
            [column("a", LogicalType(Kind.DECIMAL, 12, 4))],
            ["retype a"],
        ),
        # The same name and type under another number: another column.
        ([A2], [column("a", INT, number=3)], ["replace a"]),
        ([A2], [column("a", STRING, number=3)], ["replace a"]),
        # Two numbers are two columns, however alike they are.
        ([A2], [column("b", INT, number=3)], ["add b", "drop a"]),
        # Without numbers nobody knows.
        ([column("a", INT)], [column("b", INT)], ["rename_candidate b"]),
        ([column("a", INT)], [column("b", LONG, number=2)], ["rename_candidate b"]),
        ([column("a", INT)], [column("b", STRING)], ["add b", "drop a"]),
        # A swap of names is two renames, and a new column may take a name that became free.
        (
            [A2, column("b", INT, number=3)],
            [column("b", INT, number=2), column("a", INT, number=3)],
            ["rename b", "rename a"],
        ),
        ([A2], [column("b", INT, number=2), column("a", number=4)], ["rename b", "add a"]),
        ([A2], [replace(A2, nullable=False)], ["tighten a"]),
        ([replace(A2, nullable=False)], [A2], ["relax a"]),
        (
            [column("a", declared="varchar(10)", number=2)],
            [column("a", declared="text", number=2)],
            ["restate a"],
        ),
        ([A2, column("b", number=3)], [column("b", number=3), A2], ["order"]),
        ([A2], [replace(A2, key=1)], ["key"]),
    ],
)
def test_every_kind_of_change_is_named(
    old: list[Column], new: list[Column], expected: list[str]
) -> None:
    assert kinds(table(*old), table(*new)) == expected


def test_a_table_made_anew_has_no_renames() -> None:
    again = table(column("b", INT, number=2), relation=101)
    assert kinds(table(A2), again) == ["recreate", "add b", "drop a"]
    assert kinds(table(A2, relation=None), again) == ["rename b"]


def test_someones_word_settles_what_nobody_knows() -> None:
    old, new = table(column("a", INT)), table(column("b", INT))
    assert kinds(old, new, renames={"a": "b"}) == ["rename b"]
    assert kinds(old, new, renames={}) == ["add b", "drop a"]
    assert match(old, new, {"a": "b"}).renames == {"a": "b"}


def test_changes_read_as_sentences() -> None:
    old = table(A2, column("gone", declared="uuid", number=3))
    new = table(column("a", STRING, declared="text", number=2))
    assert [str(change) for change in diff(old, new)] == [
        "a has another type: int → text as string",
        "gone was dropped: it was uuid as string",
    ]


def test_a_key_that_is_renamed_is_the_same_key() -> None:
    renamed = TableSchema(ORDERS, (replace(ID, name="order_id"), A2), 100)
    assert kinds(table(A2), renamed) == ["rename order_id"]


def test_numbers_are_part_of_the_fingerprint_and_old_histories_load() -> None:
    bare = TableSchema(ORDERS, (replace(ID, number=None), column("a", INT)))
    assert TableSchema.from_json(bare.to_json()) == bare
    assert '"number"' not in bare.to_json() and '"relation"' not in bare.to_json()
    assert TableSchema.from_json(table(A2).to_json()) == table(A2)
    assert len({bare.schema_id, table(A2).schema_id, table(A2, relation=7).schema_id}) == 3


NEEDED = column("a", INT, nullable=False)


@pytest.mark.parametrize(
    ("old", "new", "backward", "forward"),
    [
        ([], [column("a")], True, True),
        ([], [NEEDED], False, True),
        ([column("a")], [], True, True),
        ([NEEDED], [], True, False),
        ([column("a", INT)], [column("a", LONG)], True, False),
        ([column("a", LONG)], [column("a", INT)], False, True),
        ([column("a", INT)], [column("a", STRING)], False, False),
        ([NEEDED], [column("a", INT)], True, False),
        ([column("a", INT)], [NEEDED], False, True),
        ([column("a")], [column("b")], True, True),
        ([NEEDED], [column("b", INT, nullable=False)], False, False),
        ([column("a")], [column("a", key=1)], False, False),
    ],
)
def test_modes_are_those_of_schema_registries(
    old: list[Column], new: list[Column], backward: bool, forward: bool
) -> None:
    past, now = [table(*old)], table(*new)
    answers = {mode: verdict(mode, past, now).compatible for mode in Compatibility}
    assert answers == {
        Compatibility.NONE: True,
        Compatibility.BACKWARD: backward,
        Compatibility.BACKWARD_TRANSITIVE: backward,
        Compatibility.FORWARD: forward,
        Compatibility.FORWARD_TRANSITIVE: forward,
        Compatibility.FULL: backward and forward,
        Compatibility.FULL_TRANSITIVE: backward and forward,
    }


def test_transitive_modes_look_at_every_schema_before() -> None:
    past = [table(column("a", STRING)), table(), table(column("b"))]
    now = table(column("a", INT), column("b"))
    assert verdict(Compatibility.BACKWARD, past, now).compatible
    found = verdict(Compatibility.BACKWARD_TRANSITIVE, past, now)
    assert found.reasons == ("readers by the new schema expect a to be int, rows have string",)
    assert verdict(Compatibility.FULL_TRANSITIVE, [], now).compatible
