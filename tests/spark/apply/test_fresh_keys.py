"""Rows under keys that the lake cannot have are appended; the rest of the batch is merged."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from tests.spark.apply.lake_lab import LakeLab, check_upsert
from tests.support.changes import BIG, ModelTable, money, number, schema, text
from tidegate.config.platform import PlatformConfig
from tidegate.config.sinks import TableOptions
from tidegate.jobs.apply import TableResult
from tidegate.lake.catalog import load
from tidegate.lake.positions import SnapshotInfo, history
from tidegate.spark import modes

pytestmark = pytest.mark.spark

NUMBERED, NAMED = "public.numbered", "public.named"


@pytest.fixture
def lab(
    spark: SparkSession, spark_platform: PlatformConfig, monkeypatch: pytest.MonkeyPatch
) -> LakeLab:
    monkeypatch.setattr(modes, "FRESH_ROWS", 1)
    made = LakeLab(spark, spark_platform, {NUMBERED: TableOptions(), NAMED: TableOptions()})
    made.add(schema(NUMBERED, number("id", key=0), text("note"), money("price")))
    made.add(schema(NAMED, text("code", key=0), number("part", key=1), text("note")))
    return made


def applied(lab: LakeLab, model: ModelTable) -> tuple[TableResult, list[SnapshotInfo]]:
    """Apply what the model did; the result, and the snapshots it made."""
    model.commit()
    target = lab.target(model)
    table = load(lab.catalog, target.identifier)
    assert table is not None
    before = len(history(table))
    captured = lab.capture()
    result = lab.apply()
    check_upsert(lab, model)
    assert lab.position(model) == captured
    assert lab.refs(model) == {"main"}
    table.refresh()
    (own,) = (entry for entry in result.tables if entry.table == model.name)
    return own, history(table)[before:]


def counts(result: TableResult) -> tuple[int, int, int]:
    return result.inserted, result.updated, result.deleted


def filled(lab: LakeLab) -> ModelTable:
    model = lab.tables[NUMBERED]
    for i in range(1, 6):
        model.insert(str(i), f"note {i}", f"{i}.00")
    applied(lab, model)
    return model


def test_a_batch_of_new_keys_is_one_append(lab: LakeLab) -> None:
    model = filled(lab)
    model.insert("6", "six", "6.00")
    model.insert("7", "seven", "7.00")
    model.update(model.rows[-1], note="seven again")
    model.insert("8", "never arrives", None)
    model.delete(model.rows[-1])
    result, made = applied(lab, model)
    assert counts(result) == (2, 0, 0)
    assert [info.operation for info in made] == ["append"]


def test_old_keys_are_merged_before_new_ones_are_appended(lab: LakeLab) -> None:
    """Only the second snapshot says where the table stands (I1)."""
    model = filled(lab)
    model.update(model.rows[0], note="changed")
    model.delete(model.rows[1])
    model.insert("9", "new", None)
    result, made = applied(lab, model)
    assert counts(result) == (1, 1, 1)
    assert [info.stamped for info in made] == [False, True]


def test_rows_that_move_onto_new_keys_leave_their_old_ones(lab: LakeLab) -> None:
    model = filled(lab)
    model.update(model.rows[0], id="50")
    model.update(model.rows[1], id="51")
    model.update(model.rows[0], id="1")  # and one comes back
    result, _ = applied(lab, model)
    assert counts(result) == (1, 1, 1)


def test_rows_that_move_onto_new_keys_take_along_what_was_not_sent(lab: LakeLab) -> None:
    """The merge takes away the rows that the append has their values from."""
    model = lab.tables[NUMBERED]
    for i in range(1, 4):
        model.insert(str(i), f"{BIG}{i}", None)
    applied(lab, model)
    for row in (*model.rows,):
        model.update(row, id=f"6{row[0]}")
    result, made = applied(lab, model)
    assert counts(result) == (3, 0, 3)
    assert [info.stamped for info in made] == [False, True]


def test_after_a_truncate_every_key_is_new(lab: LakeLab) -> None:
    model = filled(lab)
    model.truncate()
    model.insert("3", "again", "3.00")
    result, made = applied(lab, model)
    assert (result.truncated, counts(result)) == (True, (1, 0, 0))
    assert made[-1].operation == "append"


def test_keys_of_several_columns_and_texts(lab: LakeLab) -> None:
    """The first key column decides; an equal one may be in the lake."""
    model = lab.tables[NAMED]
    for code, part in (("a", "1"), ("m", "1"), ("m", "2")):
        model.insert(code, part, "first")
    applied(lab, model)
    model.update(model.rows[2], note="changed")
    model.insert("m", "3", "merged")
    model.insert("é", "1", "beyond every letter")
    model.insert("𝄞", "1", "beyond the basic plane")
    result, _ = applied(lab, model)
    assert counts(result) == (3, 1, 0)
