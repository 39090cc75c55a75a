"""Directed cases of apply: each a situation a source can bring about."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from tests.spark.apply.lake_lab import (
    LakeLab,
    check_append,
    check_history,
    check_soft,
    check_upsert,
)
from tests.support.changes import BIG, ModelTable, money, number, schema, text
from tidegate.config.platform import PlatformConfig
from tidegate.config.sinks import TableOptions, WriteMode
from tidegate.control.status import lag
from tidegate.envelope.position import Position
from tidegate.jobs.apply import Status
from tidegate.lake.catalog import load
from tidegate.lake.gate import GateState
from tidegate.lake.positions import history
from tidegate.lake.reports import Reports
from tidegate.schema.table import Column
from tidegate.schema.types import Kind, LogicalType, TextRule

pytestmark = pytest.mark.spark

COLUMNS = (number("id", key=0), text("note"), money("price"))


@pytest.fixture
def lab(spark: SparkSession, spark_platform: PlatformConfig) -> LakeLab:
    """Tables one and two, both plain."""
    return make_lab(
        spark, spark_platform, {"public.one": TableOptions(), "public.two": TableOptions()}
    )


def make_lab(
    spark: SparkSession, platform: PlatformConfig, options: dict[str, TableOptions]
) -> LakeLab:
    lab = LakeLab(spark, platform, options)
    for name in options:
        lab.add(schema(name, *COLUMNS))
    return lab


def of(lab: LakeLab, name: str) -> ModelTable:
    return lab.tables[f"public.{name}"]


def test_idle_run_commits_nothing_and_takes_no_lease(lab: LakeLab) -> None:
    one = of(lab, "one")
    one.insert("1", "a", "1.00")
    one.commit()
    lab.capture()
    lab.apply()
    before = (lab.snapshots(one), lab.snapshots(of(lab, "two")), len(lab.gate.timeline()))
    reports = len(Reports(lab.catalog, lab.pipeline).recent("apply"))
    lab.clock.commit()  # other tables of the source moved, ours did not
    captured = lab.capture()
    result = lab.apply()
    assert [table.status for table in result.tables] == [Status.UNCHANGED] * 2
    assert [table.to_position for table in result.tables] == [captured] * 2
    assert before == (lab.snapshots(one), lab.snapshots(of(lab, "two")), len(lab.gate.timeline()))
    assert len(Reports(lab.catalog, lab.pipeline).recent("apply")) == reports == 1


def test_quiet_table_keeps_its_position_until_asked(lab: LakeLab) -> None:
    one, two = of(lab, "one"), of(lab, "two")
    began = lab.position(two)
    one.insert("1", "a", "1.00")
    one.commit()
    captured = lab.capture()
    statuses = [table.status for table in lab.apply().tables]
    assert statuses == [Status.APPLIED, Status.UNCHANGED]
    assert (lab.position(one), lab.position(two)) == (captured, began)
    behind = lag(lab.pipeline, lab.platform, ask_source=False).tables
    assert [(table.bytes, table.seconds) for table in behind] == [(0, 0.0), (0, 0.0)]
    lab.apply(stamp_quiet=True)
    assert lab.position(two) == captured


def test_truncate_and_what_follows_is_one_published_snapshot(lab: LakeLab) -> None:
    one = of(lab, "one")
    for key in ("1", "2", "3"):
        one.insert(key, "old", None)
    one.commit()
    lab.capture()
    lab.apply()
    one.insert("4", "gone with the truncate", None)
    one.truncate()
    one.insert("2", "new", "2.00")
    one.commit()
    lab.capture()
    result = lab.apply().tables[0]
    assert (result.status, result.truncated, result.inserted) == (Status.APPLIED, True, 1)
    check_upsert(lab, one)
    table = load(lab.catalog, lab.target(one).identifier)
    assert table is not None
    published = [entry.snapshot_id for entry in table.history()]
    # Intermediate snapshots were never main and carry no position (I5).
    between = [s for s in history(table) if s.snapshot_id not in published]
    assert between and not any(snapshot.stamped for snapshot in between)
    assert lab.refs(one) == {"main"}


def test_truncate_alone_empties_the_table_and_moves_the_position(lab: LakeLab) -> None:
    one = of(lab, "one")
    one.insert("1", "a", None)
    one.commit()
    lab.capture()
    lab.apply()
    one.truncate()
    one.commit()
    captured = lab.capture()
    lab.apply()
    assert lab.rows(one) == []
    assert lab.position(one) == captured


def test_deferred_key_swap_keeps_both_rows(
    spark: SparkSession, spark_platform: PlatformConfig
) -> None:
    lab = LakeLab(spark, spark_platform, {"public.one": TableOptions()})
    one = lab.add(schema("public.one", *COLUMNS), full=True)
    one.insert("1", BIG + "first", "1.00")
    one.insert("2", BIG + "second", "2.00")
    one.commit()
    lab.capture()
    lab.apply()
    first, second = one.find("1"), one.find("2")
    one.update(first, id="2")
    one.update(second, id="1")
    one.commit()
    lab.capture()
    assert lab.apply().tables[0].status is Status.APPLIED
    check_upsert(lab, one)
    assert lab.rows(one) == [("1", BIG + "second", "2.00"), ("2", BIG + "first", "1.00")]


def test_gaps_follow_a_row_through_many_keys_and_batches(lab: LakeLab) -> None:
    one = of(lab, "one")
    one.insert("1", BIG + "kept", "1.00")
    one.insert("2", BIG + "other", "2.00")
    one.commit()
    lab.capture()
    lab.apply()
    row = one.find("1")
    for key in ("10", "11", "12", "13", "14"):
        one.update(row, id=key)
    other = one.find("2")
    one.update(other, id="1", price="3.00")
    one.update(row, id="2", price="4.00")
    one.commit()
    lab.capture()
    lab.apply()
    check_upsert(lab, one)
    assert lab.rows(one) == [("1", BIG + "other", "3.00"), ("2", BIG + "kept", "4.00")]


def test_row_with_a_gap_is_never_invented(lab: LakeLab) -> None:
    one = of(lab, "one")
    one.rows.append(["7", BIG + "only the source has it", None])  # the lake never saw it
    one.update(one.find("7"), price="7.00")
    one.commit()
    before = lab.position(one)
    lab.capture()
    result = lab.apply().tables[0]
    assert result.status is Status.HELD
    assert result.error is not None and result.error.code == "apply.row_missing"
    assert (lab.rows(one), lab.position(one)) == ([], before)
    assert lab.gate.states()["public.one"].state is GateState.HELD


def test_policy_adjustments_are_counted(lab: LakeLab) -> None:
    one = of(lab, "one")
    one.insert("1", "a", "NaN")
    one.insert("2", "b", "Infinity")
    one.insert("3", "c", "3.00")
    one.commit()
    lab.capture()
    result = lab.apply().tables[0]
    assert (result.status, result.adjusted) == (Status.APPLIED, {"price": 2})
    assert lab.rows(one) == [("1", "a", None), ("2", "b", None), ("3", "c", "3.00")]


def test_added_and_widened_columns_flow_in_one_batch(lab: LakeLab) -> None:
    one = of(lab, "one")
    narrow = schema("public.two", number("id", key=0), number("size", type_=LogicalType(Kind.INT)))
    del lab.tables["public.two"]
    lab.spark.sql(f"DROP TABLE lake.{lab.pipeline.namespace}.two PURGE")
    two = lab.add(narrow)
    two.insert("1", "2147483647")
    two.commit()
    lab.capture([one, two])
    two.evolve(
        schema("public.two", number("id", key=0), number("size"), text("extra")), default=None
    )
    two.insert("2", "2147483648", "x")
    two.update(two.find("1"), extra="y")
    two.commit()
    lab.capture([one, two])
    assert lab.apply().tables[1].status is Status.APPLIED
    check_upsert(lab, two)
    assert lab.rows(two) == [("1", "2147483647", "y"), ("2", "2147483648", "x")]


def test_incompatible_schema_holds_its_table_with_a_diff(lab: LakeLab) -> None:
    one, two = of(lab, "one"), of(lab, "two")
    changed = Column("price", "text", LogicalType(Kind.STRING), TextRule.PLAIN)
    one.evolve(schema("public.one", COLUMNS[0], COLUMNS[1], changed))
    one.insert("1", "a", "a lot")
    one.commit()
    two.insert("1", "a", "1.00")
    two.commit()
    lab.capture()
    first, second = lab.apply().tables
    assert (first.status, second.status) == (Status.HELD, Status.APPLIED)
    assert first.error is not None and first.error.code == "apply.schema_incompatible"
    assert "price" in first.error.message and "decimal(12, 2)" in first.error.message
    held = lab.gate.states()["public.one"]
    assert held.state is GateState.HELD and held.reason and "price" in held.reason


def test_closed_gates_and_missing_tables_are_told_apart(lab: LakeLab) -> None:
    one, two = of(lab, "one"), of(lab, "two")
    for model in (one, two):
        model.insert("1", "a", None)
        model.commit()
    lab.capture()
    lab.gate.begin_sweep("sweep-1", ["public.one"], "test")
    lab.spark.sql(f"DROP TABLE lake.{lab.pipeline.namespace}.two PURGE")
    first, second = lab.apply().tables
    assert (first.status, second.status) == (Status.WAITING, Status.MISSING)
    assert first.reason is not None and "sweep-1" in first.reason
    assert lab.rows(one) == []


def test_another_epoch_fails_with_the_way_back(lab: LakeLab) -> None:
    lab.log.begin_epoch(Position("model-2", lab.clock.position.place))
    first = lab.apply().tables[0]
    assert first.status is Status.FAILED
    assert first.error is not None and first.error.code == "apply.epoch_changed"
    assert "sweep" in first.error.hint


def test_until_stops_at_a_boundary_and_the_rest_follows(lab: LakeLab) -> None:
    one = of(lab, "one")
    one.insert("1", "a", None)
    one.commit()
    stop = lab.clock.position
    one.update(one.find("1"), note="b")
    one.commit()
    lab.capture()
    assert lab.apply(until=stop).tables[0].to_position == stop
    assert (lab.rows(one), lab.position(one)) == ([("1", "a", None)], stop)
    lab.apply()
    check_upsert(lab, one)


def test_soft_delete_does_not_depend_on_how_the_log_is_cut(
    spark: SparkSession, spark_platform: PlatformConfig
) -> None:
    soft = TableOptions(soft_delete=True)
    lab = make_lab(spark, spark_platform, {"public.one": soft})
    one = of(lab, "one")
    one.insert("1", "deleted in the same batch", None)
    one.insert("2", "stays", None)
    one.delete(one.find("1"))
    one.commit()
    lab.capture()
    lab.apply()
    check_soft(lab, one)
    one.insert("1", "again", None)
    one.delete(one.find("2"))
    one.commit()
    one.truncate()
    one.commit()
    lab.capture()
    lab.apply()
    flags = lab.rows(one, "_cdc_deleted")
    assert [row[-1] for row in flags] == ["true", "true"]


def test_keyless_table_in_append_mode(spark: SparkSession, spark_platform: PlatformConfig) -> None:
    append = TableOptions(write_mode=WriteMode.APPEND)
    lab = LakeLab(spark, spark_platform, {"public.log": append})
    log = lab.add(schema("public.log", text("line"), number("size")), full=True)
    log.insert("a", "1")
    log.insert("a", "1")
    log.commit()
    log.truncate()
    log.insert(BIG, "3")
    log.commit()
    log.update(log.rows[0], size="4")
    log.delete(log.rows[0])
    log.commit()
    lab.capture()
    assert lab.apply().tables[0].inserted == 6
    check_append(lab, log)


def test_history_of_a_truncated_table(spark: SparkSession, spark_platform: PlatformConfig) -> None:
    mode = TableOptions(write_mode=WriteMode.HISTORY)
    lab = make_lab(spark, spark_platform, {"public.one": mode})
    one = of(lab, "one")
    one.insert("1", "a", None)
    one.insert("2", BIG + "b", None)
    one.commit()
    lab.capture()
    lab.apply()
    one.update(one.find("2"), price="2.00")
    one.truncate()
    one.insert("1", "c", None)
    one.truncate()
    one.insert("1", "d", None)
    one.commit()
    captured = lab.capture()
    lab.apply()
    check_history(lab, one)
    assert lab.position(one) == captured
