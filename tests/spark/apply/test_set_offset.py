"""Positions set by hand: what is replayed gives the same rows, what is skipped never comes (I1)."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from tests.spark.apply.lake_lab import LakeLab, check_upsert
from tests.support.changes import ModelTable, money, number, schema, text
from tidegate import faults
from tidegate.config.platform import PlatformConfig
from tidegate.config.sinks import TableOptions
from tidegate.control.audit import audit
from tidegate.control.running import start, stop
from tidegate.envelope.position import Position
from tidegate.errors import HeldError, TidegateError
from tidegate.jobs.set_offset import run_set_offset

pytestmark = pytest.mark.spark
ORDERS = "public.orders"


@pytest.fixture
def lab(spark: SparkSession, spark_platform: PlatformConfig) -> LakeLab:
    lab = LakeLab(spark, spark_platform, {ORDERS: TableOptions()})
    lab.add(schema(ORDERS, number("id", key=0), text("note"), money("price")))
    return lab


def grown(lab: LakeLab, model: ModelTable) -> list[Position]:
    """Two applied batches that insert, update, move and delete; the boundary before each."""
    cuts = [lab.clock.position]
    for key in ("1", "2", "3"):
        model.insert(key, f"~{key}", "1.00")
    model.commit()
    lab.capture()
    lab.apply()
    cuts.append(lab.clock.position)
    model.update(model.find("1"), price="2.00")
    model.update(model.find("2"), id="20", note="two")
    model.delete(model.find("3"))
    model.commit()
    lab.capture()
    lab.apply()
    return cuts


def test_a_replay_gives_the_same_rows_and_a_skip_leaves_changes_out(
    lab: LakeLab, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = lab.tables[ORDERS]
    cuts = grown(lab, model)
    check_upsert(lab, model)
    stood = lab.position(model)
    assert stood is not None

    def moved(to: Position, **how: object) -> object:
        return run_set_offset(lab.spark, lab.pipeline, lab.platform, ORDERS, to, **how)  # type: ignore[arg-type]

    for point in ("offset.after_stamp", "offset.after_publish"):
        monkeypatch.setenv("TIDEGATE_FAULT", f"{point}@raise")
        with pytest.raises(faults.Fault):
            moved(cuts[1])
        monkeypatch.delenv("TIDEGATE_FAULT")
        expected = stood if point == "offset.after_stamp" else cuts[1]
        assert lab.position(model) == expected, "set as a whole, or not at all"
        assert lab.refs(model) == {"main"}

    back = run_set_offset(lab.spark, lab.pipeline, lab.platform, ORDERS, str(cuts[0]))
    assert (back.status, back.direction, back.changes) == ("set", "replay", 3)
    assert lab.position(model) == cuts[0]
    check_upsert(lab, model)
    stop(lab.pipeline, lab.platform, reason="not yet")
    with pytest.raises(HeldError) as stopped:
        lab.apply()
    assert stopped.value.code == "pipeline.stopped"
    start(lab.pipeline, lab.platform, reason="now")
    lab.apply()
    assert lab.position(model) == stood
    check_upsert(lab, model)

    model.update(model.find("1"), id="10")  # its note is not sent, and 1 is gone afterwards
    model.commit()
    lab.capture()
    lab.apply()
    check_upsert(lab, model)
    with pytest.raises(TidegateError) as wrong:
        moved(cuts[1])
    assert wrong.value.code == "offsets.unsent_values"

    model.insert("9", "late", None)
    model.commit()
    head = lab.capture()
    with pytest.raises(TidegateError) as unsaid:
        moved(head)
    assert unsaid.value.code == "offsets.needs_skip"
    with pytest.raises(HeldError) as overtaken:
        moved(head, skip=True, expect=str(cuts[0]))
    assert overtaken.value.code == "offsets.moved"
    moved(head, skip=True, reason="a test order")
    lab.apply()
    assert lab.position(model) == head
    assert "9" not in {row[0] for row in lab.rows(model)}, "skipped for good"
    told = audit(lab.pipeline, lab.platform).entries[0]
    assert (told.action, told.outcome, told.details["direction"]) == ("set offset", "done", "skip")
    assert told.details["reason"] == "a test order"
