"""Approving a held schema change: what is shown, what is durable, which gates open."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from pyiceberg.catalog import Catalog
from pyiceberg.schema import Schema
from pyiceberg.types import IntegerType, LongType, NestedField

from tidegate import faults
from tidegate.config.loader import load_pipeline, load_platform
from tidegate.config.pipeline import PipelineConfig
from tidegate.config.platform import PlatformConfig
from tidegate.control import schemas as control
from tidegate.control.schema_approval import Answer, Approved, approve, leave_held
from tidegate.envelope.position import boundary
from tidegate.errors import ConfigError
from tidegate.lake.audit_trail import AuditTrail
from tidegate.lake.catalog import ensure_namespace
from tidegate.lake.gate import Gate, GateState
from tidegate.lake.schema_history import SchemaHistory
from tidegate.lake.schema_hold import HOLD_MARK, hold_others
from tidegate.names import POSITION_PROPERTY, STEP_PROPERTY, TableId
from tidegate.observability.caller import Caller, Surface, acting_as
from tidegate.schema.table import Column, TableSchema
from tidegate.schema.types import STRING, Kind, LogicalType, TextRule

ORDERS = TableId("public", "orders")
ID = Column(
    "id", "bigint", LogicalType(Kind.LONG), TextRule.PG_NUMBER, nullable=False, key=0, number=1
)
V = Column("v", "integer", LogicalType(Kind.INT), TextRule.PG_NUMBER, number=2)
TEXT = replace(V, source_type="text", type=STRING, rule=TextRule.PLAIN)


def table(*columns: Column) -> TableSchema:
    return TableSchema(ORDERS, (ID, *columns), 7)


@pytest.fixture
def gate(catalog: Catalog, pipeline: PipelineConfig, platform: PlatformConfig) -> Gate:
    """A swept table whose column was re-typed at position 20 and again at 30."""
    ensure_namespace(catalog, "shop")
    schema = Schema(
        NestedField(1, "id", LongType(), required=True),
        NestedField(2, "v", IntegerType(), required=False),
        identifier_field_ids=[1],
    )
    lake = catalog.create_table(("shop", "orders"), schema)
    rows = pa.table(
        {"id": pa.array([1], pa.int64()), "v": pa.array([10], pa.int32())},
        schema=pa.schema([pa.field("id", pa.int64(), nullable=False), pa.field("v", pa.int32())]),
    )
    stamp = {POSITION_PROPERTY: str(boundary("e1", 10)), STEP_PROPERTY: "sweep"}
    lake.append(rows, snapshot_properties=stamp)
    history = SchemaHistory(catalog, pipeline)
    boolean = replace(V, source_type="boolean", type=LogicalType(Kind.BOOLEAN))
    for lsn, known in ((10, table(V)), (20, table(TEXT)), (30, table(boolean))):
        history.record(known, boundary("e1", lsn))
    made = Gate(catalog, pipeline, platform.gate)
    made.hold(["public.orders"], f"{HOLD_MARK}: …", "apply run")
    return made


def state(gate: Gate, name: str) -> GateState:
    return gate.states([name])[name].state


def test_one_change_at_a_time_and_only_by_its_own_approval(
    gate: Gate,
    catalog: Catalog,
    pipeline: PipelineConfig,
    platform: PlatformConfig,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def give(*, dry_run: bool = False, **answer: dict[str, str]) -> Approved:
        given = Answer(**answer)  # type: ignore[arg-type]
        return approve(pipeline, platform, "orders", given, actor="ann", dry_run=dry_run)

    (waiting,) = control.held(pipeline, platform)
    assert waiting.reasons == ("v has another type: integer as int → text as string",)
    assert [(side.lake, side.source) for side in waiting.sides] == [("int", "text as string")]
    assert waiting.approvable and waiting.gate == "held"

    planned = give(dry_run=True)
    assert planned.opened == () and len(planned.statements) == 2
    assert planned.next_held is not None and "boolean" in planned.next_held
    assert SchemaHistory(catalog, pipeline).approvals.all() == []

    faults._hits.clear()
    monkeypatch.setenv("TIDEGATE_FAULT", "schema.after_approval@raise")
    with pytest.raises(faults.Fault):
        give(casts={"v": "int"})
    monkeypatch.delenv("TIDEGATE_FAULT")
    assert state(gate, "public.orders") is GateState.HELD
    # The first change is approved already, durably; the next word is about the second one.
    (waiting,) = control.held(pipeline, platform)
    assert waiting.first_used == str(boundary("e1", 30))
    assert give().opened == ("public.orders",)
    assert control.held(pipeline, platform) == []
    assert [a.casts for a in SchemaHistory(catalog, pipeline).approvals.all()] == [{"v": "int"}, {}]
    with pytest.raises(ConfigError) as caught:
        give()
    assert caught.value.code == "schema.nothing_held"
    rows = control.schemas(pipeline, platform, ["orders"])
    assert [row.approved_by for row in rows] == [None, "ann", "ann"]
    assert [row.kinds for row in rows] == [(), ("retype",), ("retype",)]
    shown = control.schema(pipeline, platform, "orders", "0/19")
    assert shown.schema.number == 2 and shown.columns[1].source_type == "text"


def test_no_word_makes_a_variant_of_text(
    gate: Gate, pipeline: PipelineConfig, platform: PlatformConfig
) -> None:
    """Only the source can say that every text is a document."""
    with pytest.raises(ConfigError, match="only json and jsonb") as caught:
        approve(pipeline, platform, "orders", Answer(casts={"v": "variant"}), actor="ann")
    assert caught.value.code == "schema.wrong_answer"
    assert state(gate, "public.orders") is GateState.HELD


def test_killed_before_the_gate_opened_the_same_call_opens_it(
    gate: Gate, catalog: Catalog, pipeline: PipelineConfig, platform: PlatformConfig
) -> None:
    for _ in range(2):
        approve(pipeline, platform, "orders", Answer(), actor="ann")
    gate.hold(["public.orders"], f"{HOLD_MARK}: …", "apply run")
    again = approve(pipeline, platform, "orders", Answer(), actor="ann")
    assert (again.schema_id, again.opened) == (None, ("public.orders",))
    gate.hold(["public.orders"], "counting stock", "bob")
    with pytest.raises(ConfigError):
        approve(pipeline, platform, "orders", Answer(), actor="ann")
    assert state(gate, "public.orders") is GateState.HELD


def test_a_pipeline_that_stopped_goes_on_with_the_approval(
    gate: Gate, pipeline: PipelineConfig, platform: PlatformConfig
) -> None:
    code = "apply.schema_incompatible"
    hold_others(gate, pipeline, platform, "public.orders", code, "apply")
    assert state(gate, "public.customers") is GateState.OPEN
    stopping = pipeline.model_copy(update={"stop_on_incompatible_schema": True})
    hold_others(gate, stopping, platform, "public.orders", "apply.cast_failed", "apply")
    assert state(gate, "public.customers") is GateState.OPEN
    hold_others(gate, stopping, platform, "public.orders", code, "apply")
    assert state(gate, "public.customers") is GateState.HELD
    # The key was taken out meanwhile: what it closed opens all the same.
    opened = approve(pipeline, platform, "orders", Answer(), actor="ann").opened
    assert opened == ("public.customers", "public.orders")


@pytest.mark.parametrize(
    ("platform_says", "pipeline_says", "stops"),
    [
        ("true", None, True),
        ("true", "false", False),
        ("true", "true", True),
        ("false", "true", True),
        (None, "true", True),
        ("false", None, False),
        (None, None, False),
    ],
)
def test_either_file_stops_the_pipeline_and_the_pipelines_own_word_wins(
    gate: Gate, tmp_path: Path, platform_says: str | None, pipeline_says: str | None, stops: bool
) -> None:
    def written(name: str, text: str, says: str | None) -> Path:
        line = "" if says is None else f"stop_on_incompatible_schema: {says}\n"
        (tmp_path / name).write_text(text + line)
        return tmp_path / name

    tables = "tables: [public.orders, public.customers]"
    shop = f"pipeline_id: shop\nsource: {{database: d, password: p, {tables}}}\n"
    loaded = load_pipeline(written("pipeline.yaml", shop, pipeline_says))
    platform = load_platform(written("platform.yaml", "version: 1\n", platform_says))
    code = "apply.schema_incompatible"
    hold_others(gate, loaded, platform, "public.orders", code, "apply")
    assert (state(gate, "public.customers") is GateState.HELD) is stops


def test_a_word_is_about_the_change_that_was_shown(
    gate: Gate, catalog: Catalog, pipeline: PipelineConfig, platform: PlatformConfig
) -> None:
    (first,) = control.held(pipeline, platform)
    assert first.left_by is None
    approve(pipeline, platform, "orders", Answer(), actor="bob", shown=first.schema_id)
    # Another change took its place while a form was open: its answer is none about this one.
    for give in (
        lambda: approve(pipeline, platform, "orders", Answer(), actor="ann", shown=first.schema_id),
        lambda: leave_held(pipeline, platform, "orders", reason="", shown=first.schema_id),
    ):
        with pytest.raises(ConfigError) as caught:
            give()
        assert caught.value.code == "schema.another_change"
    (second,) = control.held(pipeline, platform)
    with acting_as(Caller("ann", Surface.AIRFLOW)):
        left = leave_held(pipeline, platform, "orders", reason="wait", shown=second.schema_id)
    assert left.from_position == second.first_used
    (still,) = control.held(pipeline, platform)
    assert (still.left_by, still.approvable) == ("ann", True)
    (entry, *_) = AuditTrail(catalog, pipeline).entries()
    assert (entry.action, entry.actor, entry.surface) == ("leave held", "ann", "airflow")
    approve(pipeline, platform, "orders", Answer(), actor="ann", shown=second.schema_id)
    with pytest.raises(ConfigError) as caught:
        leave_held(pipeline, platform, "orders", reason="late")
    assert caught.value.code == "schema.nothing_held"


def test_answers_as_people_write_them() -> None:
    assert Answer.written(["a = b"], ["v=decimal(12,2)"], "x") == Answer(
        {"a": "b"}, {"v": "decimal(12,2)"}, "x"
    )
    with pytest.raises(ConfigError) as caught:
        Answer.written(["a="], None, "")
    assert caught.value.code == "schema.wrong_answer"
