"""Plans, notes and key ranges of sweeps; no JVM is started."""

from __future__ import annotations

import pytest

from tidegate.config.pipeline import PipelineConfig
from tidegate.connectors.cut import Chunk
from tidegate.connectors.postgres.selection import ordered_sql
from tidegate.errors import ConfigError
from tidegate.names import TableId
from tidegate.schema.table import Column, TableSchema
from tidegate.schema.types import Kind, LogicalType, TextRule
from tidegate.spark.sweep_range import KeyRange
from tidegate.spark.sweep_state import ChunkPlan


def by_key(count: int) -> tuple[Chunk, ...]:
    edges: list[tuple[str, ...] | None] = [None, *((str(i * 10),) for i in range(1, count)), None]
    return tuple(
        Chunk(f"c{i}", f"range {i}", edges[i], edges[i + 1], estimate=10) for i in range(count)
    )


def test_a_plan_survives_its_trip_through_a_snapshot_summary() -> None:
    plan = ChunkPlan(by_key(7))
    again = ChunkPlan.unpack(plan.packed(), done=3)
    assert again == ChunkPlan(by_key(7), done=3)


def test_groups_go_on_where_an_earlier_attempt_ended() -> None:
    groups = list(ChunkPlan(by_key(7), done=3).groups(2))
    assert [[chunk.id for chunk in group] for _, group in groups] == [["c3", "c4"], ["c5", "c6"]]
    assert [(note.done, note.total) for note, _ in groups] == [(5, 7), (7, 7)]
    assert list(ChunkPlan(by_key(2), done=2).groups(4)) == []


def test_only_key_ranges_mean_the_same_rows_at_another_cut() -> None:
    assert ChunkPlan(by_key(3)).by_key
    assert ChunkPlan(by_key(1)).by_key
    physical = tuple(Chunk(f"ctid-{i}", f"ctid >= '({i},0)'") for i in range(3))
    assert not ChunkPlan(physical).by_key


def test_a_long_plan_stays_small() -> None:
    assert len(ChunkPlan(by_key(5000)).packed()) < 100_000


def pipeline(**lake: object) -> PipelineConfig:
    return PipelineConfig.model_validate(
        {
            "pipeline_id": "p",
            "source": {"password": "unused", "database": "d", "tables": ["public.t"]},
            "sinks": [{"sink_id": "lake", "sink_type": "iceberg", "iceberg": lake}],
        }
    )


def schema(kind: Kind, *more: str) -> TableSchema:
    columns = [
        Column(name, "x", LogicalType(kind), TextRule.PLAIN, key=place)
        for place, name in enumerate(("id", *more))
    ]
    return TableSchema(TableId("public", "t"), tuple(columns))


@pytest.mark.parametrize(
    ("text", "terms"),
    [
        ("id >= 100 and id < 200", ((">=", "100"), ("<", "200"))),
        ("id=-5", (("=", "-5"),)),
        ("\"id\" > 'a''b' AND \"id\" <= 'c and d'", ((">", "a'b"), ("<=", "c and d"))),
    ],
)
def test_key_ranges_are_read(text: str, terms: tuple[tuple[str, str], ...]) -> None:
    assert KeyRange.parse(text) == KeyRange("id", terms)


@pytest.mark.parametrize(
    "text", ["", "id", "id > 1 or id < 5", "id > 1; DROP TABLE t", "id > now()", "a > 1 and b < 2"]
)
def test_what_is_no_range_is_refused(text: str) -> None:
    with pytest.raises(ConfigError):
        KeyRange.parse(text)


def test_a_range_must_be_over_the_whole_ordered_key_of_an_upsert_table() -> None:
    target = pipeline().targets[0]
    wanted = KeyRange.parse("id > 1")
    assert wanted.key(target, schema(Kind.LONG)).name == "id"
    for wrong in (schema(Kind.LONG, "part"), schema(Kind.BINARY), schema(Kind.DOUBLE)):
        with pytest.raises(ConfigError):
            wanted.key(target, wrong)
    with pytest.raises(ConfigError, match="than a number"):
        KeyRange.parse("id > 'x'").key(target, schema(Kind.LONG))
    for lake in ({"write_mode": "append"}, {"write_mode": "history"}, {"soft_delete": True}):
        with pytest.raises(ConfigError, match="upsert"):
            wanted.key(pipeline(**lake).targets[0], schema(Kind.LONG))


def test_text_ranges_are_compared_by_bytes_at_the_source_too() -> None:
    wanted = KeyRange.parse("id >= 'it''s'")
    key = schema(Kind.STRING).key_columns[0]
    assert wanted.source_sql(ordered_sql(key)) == "\"id\"::text COLLATE \"C\" >= 'it''s'"
