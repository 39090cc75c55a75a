"""What the lake does about a schema change: follows, refuses, or goes by someone's word."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from pyiceberg.schema import Schema
from pyiceberg.types import (
    BooleanType,
    DecimalType,
    DoubleType,
    FloatType,
    IcebergType,
    IntegerType,
    LongType,
    NestedField,
    StringType,
)

from tidegate.config.pipeline import PipelineConfig
from tidegate.config.sinks import IcebergSink, SinkConfig, SinkType, WriteMode
from tidegate.config.source import SourceConfig
from tidegate.envelope.position import Position, boundary
from tidegate.lake.approvals import Approval
from tidegate.lake.evolution import Evolution, SchemaConflict, evolve
from tidegate.lake.lineage import Lineage, aside_name, numbered, versions
from tidegate.lake.schema_history import SchemaEntry
from tidegate.lake.schema_hold import drawn, held_error, side_by_side
from tidegate.lake.variant_type import VariantType
from tidegate.names import TableId
from tidegate.schema.table import Column, TableSchema
from tidegate.schema.types import STRING, Kind, LogicalType, TextRule

ORDERS = TableId("public", "orders")
INT, LONG = LogicalType(Kind.INT), LogicalType(Kind.LONG)
ALTER = "ALTER TABLE `lake`.`shop`.`orders` "


def column(name: str, type_: LogicalType = STRING, number: int | None = None) -> Column:
    rule = TextRule.PLAIN if type_ == STRING else TextRule.PG_NUMBER
    return Column(name, str(type_), type_, rule, number=number)


ID = replace(column("id", LONG, 1), key=0, nullable=False)


def table(*columns: Column, relation: int | None = 7) -> TableSchema:
    return TableSchema(ORDERS, (ID, *columns), relation)


def lake(*, required: tuple[str, ...] = (), **fields: IcebergType) -> Schema:
    own = [NestedField(1, "id", LongType(), required=True)]
    for place, (name, type_) in enumerate(fields.items()):
        own.append(NestedField(place + 2, name, type_, required=name in required))
    return Schema(*own, identifier_field_ids=[1])


def at(place: int) -> Position:
    return boundary("e", place)


def lineage(
    *schemas: TableSchema,
    approve: Mapping[int, dict[str, Any]] | None = None,
    columns: dict[str, Any] | None = None,
    **sink: Any,
) -> Lineage:
    """Versions at positions 0, 10, 20, …; ``approve`` says which are, and how."""
    tables = {"tables": {"public.orders": {"columns": columns}}} if columns else {}
    pipeline = PipelineConfig(
        pipeline_id="shop",
        source=SourceConfig(password="unused", database="shop", tables=("public.orders",)),
        sinks=(
            SinkConfig(
                sink_id="lake",
                sink_type=SinkType.ICEBERG,
                iceberg=IcebergSink.model_validate(sink | tables),
            ),
        ),
    )
    entries = [
        SchemaEntry(place + 1, at(place * 10), datetime.now(UTC), schema.schema_id, schema)
        for place, schema in enumerate(schemas)
    ]
    approvals = [
        Approval("public.orders", entries[place].schema_id, entries[place].at, "me", **how)
        for place, how in (approve or {}).items()
    ]
    return Lineage(versions(entries, approvals), pipeline.target(ORDERS))


def sql(found: Evolution) -> list[str]:
    return [statement.removeprefix(ALTER) for statement in found.statements]


def names(found: Evolution, index: int) -> list[str | None]:
    return [c.name if c.taken else None for c in found.schemas[index].columns]


A, B = column("a", INT, 2), column("b", INT, 2)


def test_an_equal_schema_needs_nothing() -> None:
    found = evolve(lake(a=IntegerType()), lineage(table(A)), [0], base=0)
    assert not found.needed
    assert names(found, 0) == ["id", "a"]


def test_a_lake_column_never_becomes_a_variant_or_text_again() -> None:
    """As with every other override of a table that exists: it takes a new lake table."""
    doc = replace(column("doc", STRING, 2), source_type="jsonb")
    for existing, columns, says in (
        (StringType(), {"doc": {"type": "variant"}}, r"has string, the source now gives variant"),
        (VariantType(), None, r"has variant, the source now gives string"),
    ):
        found = lineage(table(doc), columns=columns)
        with pytest.raises(SchemaConflict, match=says) as caught:
            evolve(lake(doc=existing), found, [0], base=0)
        held = held_error("apply.schema_incompatible", lake(doc=existing), found, caught.value)
        assert "new lake table (table_name)" in held.hint


def test_a_new_document_is_added_as_a_variant() -> None:
    doc = replace(column("doc", STRING, 3), source_type="jsonb")
    found = lineage(table(A), table(A, doc), columns={"doc": {"type": "variant"}})
    change = evolve(lake(a=IntegerType()), found, [0, 1], base=0)
    assert sql(change) == ["ADD COLUMNS (`doc` variant COMMENT 'jsonb')"]
    kept = evolve(lake(a=IntegerType(), doc=VariantType()), found, [1], base=1)
    assert not kept.needed and names(kept, 1) == ["id", "a", "doc"]


def test_new_columns_are_added_and_types_widened() -> None:
    old = table(A, column("f", LogicalType(Kind.FLOAT), 3), column("d", _decimal(10), 4))
    new = table(
        column("a", LONG, 2),
        column("f", LogicalType(Kind.DOUBLE), 3),
        column("d", _decimal(12), 4),
        column("tags", LogicalType(Kind.LIST, element=STRING), 5),
    )
    existing = lake(a=IntegerType(), f=FloatType(), d=DecimalType(10, 2))
    found = evolve(existing, lineage(old, new), [0, 1], base=0)
    assert sql(found) == [
        "ALTER COLUMN `a` TYPE bigint",
        "ALTER COLUMN `f` TYPE double",
        "ALTER COLUMN `d` TYPE decimal(12,2)",
        "ADD COLUMNS (`tags` array<string> COMMENT 'list<string>')",
    ]
    # What was done already is not done again: a run that died half-way is gone on with.
    done = lake(a=LongType(), f=DoubleType(), d=DecimalType(10, 2))
    assert len(evolve(done, lineage(old, new), [0, 1], base=0).statements) == 2


def _decimal(precision: int) -> LogicalType:
    return LogicalType(Kind.DECIMAL, precision, 2)


def test_a_dropped_column_stays_and_is_relaxed_if_it_was_required() -> None:
    story = lineage(table(A), table())
    assert sql(evolve(lake(a=IntegerType()), story, [1], base=0)) == []
    required = lake(a=IntegerType(), required=("a",))
    assert sql(evolve(required, story, [1], base=0)) == ["ALTER COLUMN `a` DROP NOT NULL"]


def test_a_rename_keeps_the_column_and_older_rows_find_it() -> None:
    story = lineage(table(A), table(B))
    before, after = lake(a=IntegerType()), lake(b=IntegerType())
    found = evolve(before, story, [0, 1], base=0)
    assert sql(found) == ["RENAME COLUMN `a` TO `b`"]
    assert names(found, 0) == names(found, 1) == ["id", "b"]
    again = evolve(after, story, [0, 1], base=0)  # killed after the rename, or rolled back
    assert not again.needed and names(again, 0) == ["id", "b"]
    only_old = evolve(before, story, [0], base=0)  # the change is captured, not yet applied
    assert not only_old.needed and names(only_old, 0) == ["id", "a"]


def test_a_name_that_became_free_may_be_taken_again() -> None:
    story = lineage(table(A), table(B), table(B, column("a", STRING, 3)))
    found = evolve(lake(a=IntegerType()), story, [0, 1, 2], base=0)
    assert sql(found) == ["RENAME COLUMN `a` TO `b`", "ADD COLUMNS (`a` string COMMENT 'string')"]
    assert (names(found, 0), names(found, 2)) == (["id", "b"], ["id", "b", "a"])
    back = lineage(table(A), table(B), table(A))
    assert sql(evolve(lake(b=IntegerType()), back, [2], base=1)) == ["RENAME COLUMN `b` TO `a`"]
    assert names(evolve(lake(a=IntegerType()), back, [0, 1], base=0), 1) == ["id", "a"]


def test_a_renamed_key_is_the_same_key() -> None:
    moved = TableSchema(ORDERS, (replace(ID, name="order_id"), A), 7)
    found = evolve(lake(a=IntegerType()), lineage(table(A), moved), [0, 1], base=0)
    assert sql(found) == ["RENAME COLUMN `id` TO `order_id`"]


def test_a_rename_may_widen_as_well() -> None:
    story = lineage(table(A), table(column("b", LONG, 2)))
    found = evolve(lake(a=IntegerType()), story, [1], base=0)
    assert sql(found) == ["RENAME COLUMN `a` TO `b`", "ALTER COLUMN `b` TYPE bigint"]


@pytest.mark.parametrize(
    ("old", "new", "existing", "reason"),
    [
        ([A], [column("a", STRING, 2)], {"a": IntegerType()}, "a has another type: int → string"),
        ([column("a", LONG, 2)], [A], {"a": LongType()}, "a is narrower: long → int"),
        ([A], [column("a", INT, 3)], {"a": IntegerType()}, "a was dropped and added again"),
        ([A], [column("a", STRING, 3)], {"a": IntegerType()}, "a was dropped and added again"),
        ([column("a", INT)], [column("b", INT)], {"a": IntegerType()}, "a left and b came"),
        # The lake still holds a column of that name, which left the source long ago.
        (
            [A, column("b", INT, 3)],
            [column("b", INT, 2)],
            {"a": IntegerType(), "b": IntegerType()},
            "a is called b now, a name that another column had",
        ),
        ([A], [replace(A, key=1)], {"a": IntegerType()}, "key: the lake is keyed by (id)"),
    ],
)
def test_what_would_lose_data_is_held_with_a_reason(
    old: list[Column], new: list[Column], existing: dict[str, IcebergType], reason: str
) -> None:
    with pytest.raises(SchemaConflict) as caught:
        evolve(lake(**existing), lineage(table(*old), table(*new)), [1], base=0)
    assert caught.value.index == 1
    assert reason in caught.value.reasons[0]


def test_a_table_made_anew_is_held_until_it_is_swept() -> None:
    story = lineage(table(A), table(A, relation=8))
    with pytest.raises(SchemaConflict, match="made anew"):
        evolve(lake(a=IntegerType()), story, [1], base=0)
    assert not evolve(lake(a=IntegerType()), story, [1], base=0, sweeping=True).needed
    assert not evolve(lake(a=IntegerType()), story, [1], base=1).needed


def test_where_nothing_is_known_of_the_past_the_lake_stands_for_it() -> None:
    bare = table(column("b", INT), relation=None)
    with pytest.raises(SchemaConflict, match="a left and b came"):
        evolve(lake(a=IntegerType()), lineage(bare), [0], base=None)
    said = lineage(bare, approve={0: {"renames": {"a": "b"}}})
    assert sql(evolve(lake(a=IntegerType()), said, [0], base=None)) == ["RENAME COLUMN `a` TO `b`"]


POLICIES = {"add": "hold", "widen": "hold", "rename": "hold", "relax": "hold", "drop": "hold"}


@pytest.mark.parametrize(
    "new",
    [
        [A, column("c", INT, 3)],
        [column("a", LONG, 2)],
        [B],
        [],
    ],
)
def test_every_kind_can_be_held(new: list[Column]) -> None:
    story = lineage(table(A), table(*new), schema_changes=POLICIES)
    with pytest.raises(SchemaConflict):
        evolve(lake(a=IntegerType()), story, [1], base=0)
    let = lineage(table(A), table(*new), schema_changes=POLICIES, approve={1: {}})
    evolve(lake(a=IntegerType()), let, [1], base=0)


def test_a_column_that_may_be_null_can_be_held() -> None:
    strict = replace(A, nullable=False)
    story = lineage(table(strict), table(A), schema_changes={"relax": "hold"})
    with pytest.raises(SchemaConflict, match="a may be null now"):
        evolve(lake(a=IntegerType()), story, [1], base=0)


def test_ignored_changes_leave_the_lake_as_it_is() -> None:
    policies = {"add": "ignore", "widen": "ignore", "retype": "ignore", "narrow": "ignore"}
    old = table(A, column("t", INT, 3))
    new = table(column("a", LONG, 2), column("t", STRING, 3), column("c", INT, 4))
    found = evolve(
        lake(a=IntegerType(), t=IntegerType()),
        lineage(old, new, schema_changes=policies),
        [0, 1],
        base=0,
    )
    assert not found.needed
    assert names(found, 0) == ["id", "a", "t"]
    assert names(found, 1) == ["id", "a", None, None]
    assert found.schemas[1].columns[1].type == INT  # values that do not fit cannot be applied


def test_a_compatibility_mode_holds_what_the_policies_would_follow() -> None:
    story = lineage(table(replace(A, nullable=False)), table(), compatibility="FORWARD")
    with pytest.raises(SchemaConflict, match="not FORWARD: readers by the old schema need a"):
        evolve(lake(a=IntegerType()), story, [1], base=0)


TEXT = column("a", STRING, 2)


def test_an_approved_type_begins_a_new_column_and_keeps_the_old_one() -> None:
    story = lineage(table(A), table(TEXT), approve={1: {}})
    aside = aside_name("a", table(TEXT).schema_id)
    found = evolve(lake(a=IntegerType()), story, [0, 1], base=0)
    assert sql(found) == [
        f"RENAME COLUMN `a` TO `{aside}`",
        "ADD COLUMNS (`a` string COMMENT 'string')",
    ]
    assert (names(found, 0), names(found, 1)) == (["id", aside], ["id", "a"])
    # Killed between the two statements.
    half = lake(**{aside: IntegerType()})
    assert sql(evolve(half, story, [0, 1], base=0)) == [sql(found)[1]]
    done = lake(**{aside: IntegerType(), "a": StringType()})
    assert not evolve(done, story, [0, 1], base=0).needed
    automatic = lineage(table(A), table(TEXT), schema_changes={"retype": "evolve"})
    assert sql(evolve(lake(a=IntegerType()), automatic, [1], base=0)) == sql(found)


def test_rows_that_were_kept_under_a_key_need_it_and_a_sweep_does_not_help() -> None:
    """Where nothing that ended is kept: test_arrivals_and_keys.py."""
    keyless = TableSchema(ORDERS, (replace(ID, key=None), A), 7)
    story = lineage(table(A), keyless, soft_delete=True)
    kept = lake(a=IntegerType(), _cdc_deleted=BooleanType(), _cdc_position=StringType())
    for sweeping in (False, True):
        with pytest.raises(SchemaConflict, match="key: the source's table has none") as caught:
            evolve(kept, story, [0, 1], base=0, sweeping=sweeping)
        assert caught.value.index == 1


@pytest.mark.parametrize("type_", [INT, STRING])
def test_a_name_that_left_and_came_again_is_another_column(type_: LogicalType) -> None:
    """The lake still has the first one: its values are none of the second's."""
    again = table(column("a", type_, 3))
    story = lineage(table(A), table(), again)
    with pytest.raises(SchemaConflict, match="a was dropped and added again") as caught:
        evolve(lake(a=IntegerType()), story, [0, 1, 2], base=0)
    assert caught.value.index == 2
    aside = aside_name("a", again.schema_id)
    for settled in (
        lineage(table(A), table(), again, approve={2: {}}),
        lineage(table(A), table(), again, schema_changes={"retype": "evolve"}),
    ):
        found = evolve(lake(a=IntegerType()), settled, [0, 1, 2], base=0)
        assert sql(found)[0] == f"RENAME COLUMN `a` TO `{aside}`"
        assert sql(found)[1].startswith("ADD COLUMNS (`a` ")
        assert [names(found, index) for index in range(3)] == [["id", aside], ["id"], ["id", "a"]]
        done = lake(
            **{aside: IntegerType(), "a": StringType() if type_ == STRING else IntegerType()}
        )
        assert not evolve(done, settled, [0, 1, 2], base=0).needed
    quiet = lineage(table(A), table(), again, schema_changes={"retype": "ignore"})
    found = evolve(lake(a=IntegerType()), quiet, [0, 1, 2], base=0)
    assert (sql(found), names(found, 0), names(found, 2)) == ([], ["id", "a"], ["id", None])
    # A lake that was made after the first one had left just gets a column.
    assert sql(evolve(lake(), story, [2], base=1))[0].startswith("ADD COLUMNS (`a` ")
    assert names(evolve(lake(), quiet, [2], base=1), 2) == ["id", "a"]


def test_a_column_may_begin_anew_twice_in_one_batch() -> None:
    flag = table(column("a", LogicalType(Kind.BOOLEAN), 2))
    story = lineage(table(A), table(TEXT), flag, approve={1: {}, 2: {}})
    first, second = (aside_name("a", schema.schema_id) for schema in (table(TEXT), flag))
    found = evolve(lake(a=IntegerType()), story, [0, 1, 2], base=0)
    assert sql(found) == [
        f"RENAME COLUMN `a` TO `{first}`",
        "ADD COLUMNS (`a` string COMMENT 'string')",
        f"RENAME COLUMN `a` TO `{second}`",
        "ADD COLUMNS (`a` boolean COMMENT 'boolean')",
    ]
    assert [names(found, index)[1] for index in range(3)] == [first, second, "a"]
    for done in range(1, 4):  # killed after any of them
        left = {1: {}, 2: {"a": StringType()}, 3: {second: StringType()}}[done]
        rest = evolve(lake(**{first: IntegerType(), **left}), story, [0, 1, 2], base=0)
        assert sql(rest) == sql(found)[done:]


def test_an_approved_cast_keeps_the_column_until_its_type_changes_again() -> None:
    later = table(TEXT, column("c", INT, 3))
    again = table(column("a", LogicalType(Kind.BOOLEAN), 2), column("c", INT, 3))
    story = lineage(table(A), table(TEXT), later, again, approve={1: {"casts": {"a": "int"}}})
    found = evolve(lake(a=IntegerType()), story, [0, 1, 2], base=0)
    assert sql(found) == ["ADD COLUMNS (`c` int COMMENT 'int')"]
    for index in (1, 2):
        cast = found.schemas[index].columns[1]
        assert (cast.name, cast.type, cast.rule, cast.recast) == (
            "a", INT, TextRule.PG_NUMBER, True,
        )  # fmt: skip
    with pytest.raises(SchemaConflict) as caught:
        evolve(lake(a=IntegerType()), story, [3], base=2)
    assert caught.value.index == 3


def cycle(names: str, types: str) -> TableSchema:
    """Columns numbered 2, 3, …"""
    kinds = {"i": INT, "s": STRING}
    return table(
        *(column(n, kinds[t], at + 2) for at, (n, t) in enumerate(zip(names, types, strict=False)))
    )


@pytest.mark.parametrize(
    ("before", "after"), [("ab", "ba"), ("abc", "bca"), ("abc", "bac"), ("abcd", "badc")]
)
@pytest.mark.parametrize("answer", [None, {}, "as numbered"])
def test_columns_that_took_each_others_names_wait_for_a_sweep(
    before: str, after: str, answer: Any
) -> None:
    moved = {old: new for old, new in zip(before, after, strict=True) if old != new}
    given = {"renames": moved} if answer == "as numbered" else answer
    approve = None if given is None else {1: given}
    story = lineage(cycle(before, "i" * 4), cycle(after, "i" * 4), approve=approve)
    existing = lake(**dict.fromkeys(before, IntegerType()))
    for _ in range(2):  # an approval, and a gate opened by hand, let nothing through
        with pytest.raises(SchemaConflict) as caught:
            evolve(existing, story, [1], base=0)
        assert len(caught.value.reasons) == len(moved)
        assert "only a sweep" in caught.value.reasons[0]
    swept = evolve(existing, story, [1], base=0, sweeping=True)
    assert not swept.needed and names(swept, 1) == ["id", *after]
    assert not evolve(existing, story, [1], base=1).needed  # from there on


def test_a_swap_of_unlike_types_keeps_the_old_columns_beside_the_new_ones() -> None:
    story = lineage(cycle("ab", "is"), cycle("ba", "is"))
    existing = lake(a=IntegerType(), b=StringType())
    aside = [aside_name(name, story.versions[1].schema_id) for name in "ba"]
    swept = evolve(existing, story, [1], base=0, sweeping=True)
    assert sorted(sql(swept)[:2]) == [
        f"RENAME COLUMN `a` TO `{aside[1]}`",
        f"RENAME COLUMN `b` TO `{aside[0]}`",
    ]
    assert names(swept, 1) == ["id", "b", "a"]
    again = lake(**{aside[1]: IntegerType(), "b": StringType()})  # killed in between
    assert len(sql(evolve(again, story, [1], base=0, sweeping=True))) == 3


def test_columns_out_of_order_without_numbers_are_not_taken_for_the_same() -> None:
    old = table(column("a", INT, 3), column("b", INT, 4))
    new = TableSchema(ORDERS, (replace(ID, number=None), column("b", INT), column("a", INT)), 7)
    with pytest.raises(SchemaConflict, match="a is called b now"):
        evolve(lake(a=IntegerType(), b=IntegerType()), lineage(old, new), [1], base=0)
    free = replace(new, relation=None)  # a source that does not number columns may move them
    found = lineage(replace(old, relation=None), free)
    assert not evolve(lake(a=IntegerType(), b=IntegerType()), found, [1], base=0).needed


def test_an_approval_is_of_one_change_only() -> None:
    story = lineage(table(A), table(TEXT), table(A), table(TEXT), approve={1: {}})
    with pytest.raises(SchemaConflict) as caught:
        evolve(lake(a=IntegerType()), story, [1, 2, 3], base=0)
    assert caught.value.index == 2


def test_an_approved_rename_is_one_and_without_it_there_are_two_columns() -> None:
    old, new = table(column("a", INT)), table(column("b", INT))
    said = lineage(old, new, approve={1: {"renames": {"a": "b"}}})
    assert sql(evolve(lake(a=IntegerType()), said, [0, 1], base=0)) == ["RENAME COLUMN `a` TO `b`"]
    two = lineage(old, new, approve={1: {}})
    found = evolve(lake(a=IntegerType()), two, [0, 1], base=0)
    assert sql(found) == ["ADD COLUMNS (`b` int COMMENT 'int')"]
    assert (names(found, 0), names(found, 1)) == (["id", "a"], ["id", "b"])


def test_the_files_own_types_are_no_change() -> None:
    story = lineage(table(A), table(TEXT), columns={"a": {"type": "string"}})
    assert not evolve(lake(a=StringType()), story, [0, 1], base=0).needed


@pytest.mark.parametrize("mode", [WriteMode.APPEND, WriteMode.HISTORY])
def test_another_write_mode_is_incompatible(mode: WriteMode) -> None:
    with pytest.raises(SchemaConflict, match="another write mode"):
        evolve(lake(a=IntegerType()), lineage(table(A), write_mode=mode), [0], base=0)
    with pytest.raises(SchemaConflict, match="_cdc_deleted is there"):
        evolve(lake(a=IntegerType(), _cdc_deleted=BooleanType()), lineage(table(A)), [0], base=0)


def test_a_schema_seen_again_is_the_same_version() -> None:
    entries = [
        SchemaEntry(seq, at(place), datetime.now(UTC), schema.schema_id, schema)
        # A sweep's cut was recorded before capture had read so far.
        for seq, (place, schema) in enumerate([(0, table(A)), (30, table(B)), (20, table(B))])
    ]
    story = Lineage(versions(entries), lineage(table(A)).target)
    assert [version.seen for version in story.versions] == [(at(0),), (at(20), at(30))]
    assert [story.index_at(at(place)) for place in (0, 19, 20, 99)] == [0, 0, 1, 1]
    assert story.index_at(boundary("other", 5)) is None


@pytest.mark.parametrize(
    ("old", "new", "numbers"),
    [
        ([A, column("b", INT, 4)], [column("a", INT), column("b", INT)], [1, 2, 4]),
        ([A, column("b", INT, 4)], [column("b", INT)], [1, 4]),
        ([A], [column("a", INT), column("c")], [1, 2, None]),
        ([A], [column("c"), column("a", INT)], [None, None, None]),
        ([A], [column("a", STRING)], [1, None]),
        ([A, column("b", INT, 4)], [column("b", INT), column("a", INT)], [None, None, None]),
    ],
)
def test_numbers_that_are_not_certain_are_those_of_the_schema_before(
    old: list[Column], new: list[Column], numbers: list[int | None]
) -> None:
    bare = TableSchema(ORDERS, (replace(ID, number=None), *new), 7)
    assert [c.number for c in numbered(table(*old), bare).columns] == numbers
    other = replace(bare, relation=8)
    assert numbered(table(*old), other) == other


def test_a_sweep_may_skip_what_came_and_went() -> None:
    story = lineage(table(A), table(TEXT), table(A), table(A, column("c", INT, 3)))
    net, index = story.net(0, 3)
    assert [version.schema for version in net.versions] == [
        story.versions[i].schema for i in (0, 3)
    ]
    assert sql(evolve(lake(a=IntegerType()), net, [index], base=0)) == [
        "ADD COLUMNS (`c` int COMMENT 'int')"
    ]
    assert story.net(0, 2)[1] == 0
    assert story.net(None, 3)[1] == 0


def test_the_reason_shows_lake_and_source_side_by_side() -> None:
    story = lineage(table(A, column("gone", INT, 3)), table(TEXT, column("new", INT, 4)))
    existing = lake(a=IntegerType(), gone=IntegerType())
    rows = drawn(side_by_side(existing, story, 1))
    assert rows == [
        "column | lake | source now",
        "a      | int  | string",
        "new    | –    | int",
        "gone   | int  | –",
    ]
    with pytest.raises(SchemaConflict) as caught:
        evolve(existing, story, [1], base=0)
    error = held_error("schema.incompatible", existing, story, caught.value)
    assert error.message.startswith("the source's schema changed: public.orders has schema ")
    assert all(row in error.message for row in rows)
