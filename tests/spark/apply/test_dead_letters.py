"""Changes that cannot be applied: they wait with all that follows in the same rows, the rest goes
on, and nothing of it is lost or doubled whoever dies when (I3, I7)."""

from __future__ import annotations

from typing import Any

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
from tidegate import faults
from tidegate.config.platform import DlqConfig, PlatformConfig
from tidegate.config.sinks import IcebergSink, SinkConfig, TableOptions, WriteMode
from tidegate.control import dead_letters as control
from tidegate.control.status import status
from tidegate.jobs.apply import Status, TableResult
from tidegate.jobs.maintain import run_maintain
from tidegate.jobs.redrive import TableRedrive, run_redrive
from tidegate.jobs.rollback import run_rollback
from tidegate.lake.audit_trail import AuditTrail
from tidegate.lake.catalog import load
from tidegate.lake.dead_letter_choice import Choice, choose
from tidegate.lake.dead_letter_fold import Letter
from tidegate.lake.dead_letters import DeadLetters
from tidegate.lake.gate import GateState
from tidegate.lake.positions import history

pytestmark = pytest.mark.spark

TABLE = "public.one"
COLUMNS = (number("id", key=0), text("note"), money("price"))
BAD = "1.239"
"""No decimal(12,2) takes it."""
NAN = "NaN"
"""Taken by the policy ``null``, not by ``reject``."""


def made(
    spark: SparkSession,
    platform: PlatformConfig,
    options: TableOptions | None = None,
    **limits: Any,
) -> tuple[LakeLab, ModelTable]:
    own = platform.model_copy(update={"dlq": DlqConfig(**limits)})
    lab = LakeLab(spark, own, {TABLE: options or TableOptions()})
    return lab, lab.add(schema(TABLE, *COLUMNS))


def strict(policy: str, **options: Any) -> TableOptions:
    return TableOptions.model_validate({"columns": {"price": {"policy": policy}}, **options})


def change_options(lab: LakeLab, options: TableOptions) -> None:
    """As a user edits the pipeline's file."""
    sink = SinkConfig(
        sink_id="lake", sink_type="iceberg", iceberg=IcebergSink(tables={TABLE: options})
    )
    lab.pipeline = lab.pipeline.model_copy(update={"sinks": (sink,)})


def step(lab: LakeLab) -> TableResult:
    """Commit, capture, apply."""
    lab.tables[TABLE].commit()
    lab.capture()
    return lab.apply().tables[0]


def letters(lab: LakeLab) -> list[Letter]:
    table = load(lab.catalog, lab.target(lab.tables[TABLE]).identifier)
    return DeadLetters(lab.catalog, lab.pipeline).waiting(TABLE, table)


def roles(lab: LakeLab) -> list[tuple[str, str | None]]:
    return [(letter.role.value, letter.key[0]) for letter in letters(lab)]


def redrive(lab: LakeLab, choice: Choice | None = None) -> TableRedrive:
    return run_redrive(lab.spark, lab.pipeline, lab.platform, choice=choice).tables[0]


def die_at(monkeypatch: pytest.MonkeyPatch, point: str) -> None:
    faults._hits.clear()
    monkeypatch.setenv("TIDEGATE_FAULT", f"{point}@raise")


def test_a_bad_row_waits_with_its_changes_and_the_rest_goes_on(
    spark: SparkSession, spark_platform: PlatformConfig
) -> None:
    lab, one = made(spark, spark_platform)
    for key in ("1", "2", "3"):
        one.insert(key, BIG + key, "1.00")
    step(lab)
    one.update(one.find("2"), price=BAD)
    one.update(one.find("3"), price="3.00")
    result = step(lab)
    assert (result.status, result.parked, result.updated) == (Status.APPLIED, 1, 1)
    assert lab.gate.states()[TABLE].state is GateState.OPEN
    (letter,) = letters(lab)
    assert (letter.key, letter.op, letter.code, letter.attempts) == (
        ("2",),
        "u",
        "apply.cast_failed",
        1,
    )
    assert "price" in letter.message and BAD not in letter.message
    detail = control.show(lab.pipeline, lab.platform, letter.event_id)
    assert (detail.before, detail.unchanged) == (None, ("note",))
    assert detail.after == {"id": "2", "note": None, "price": BAD}
    known = [control.find(lab.pipeline, lab.platform, None, choose(keys=[key])) for key in "23"]
    assert [len(found.letters) for found in known] == [1, 0]
    assert status(lab.pipeline, lab.platform, ask_source=False).tables[0].dead_letters == 1
    # Its next change, a move of another row onto its old key's neighbour, and the moved row's next
    # change wait; the TOASTed note that nobody sent again is not lost.
    one.update(one.find("2"), id="20")
    one.update(one.find("1"), id="2", price="2.00")
    one.update(one.find("2"), price="2.50")
    one.insert("4", "new", "4.00")
    result = step(lab)
    assert (result.parked, result.inserted) == (3, 1)
    assert roles(lab) == [("failed", "2"), ("waiting", "2"), ("waiting", "1"), ("waiting", "2")]
    assert ("1", BIG + "1", "1.00") in lab.rows(one) and ("4", "new", "4.00") in lab.rows(one)
    # Not mended yet: tried again, nothing changes but the count.
    assert (redrive(lab).applied, [one.attempts for one in letters(lab)]) == (0, [2, 2, 2, 2])
    # Mended at the source; that change waits, too, until the letters are redriven.
    one.update(one.find("20"), price="2.24")
    assert step(lab).parked == 1
    done = redrive(lab, Choice(keys=frozenset({("2",)})))
    assert (done.status, done.tried, done.applied, done.still_waiting) == ("redriven", 5, 5, 0)
    assert letters(lab) == []
    check_upsert(lab, one)
    assert lab.refs(one) == {"main"}
    assert redrive(lab).status == "nothing"
    told = AuditTrail(lab.catalog, lab.pipeline).entries()
    assert [(e.action, e.outcome, e.details["still_waiting"]) for e in told] == [
        ("redrive", "done", 0),
        ("redrive", "done", 4),
    ]


@pytest.mark.parametrize("mode", [WriteMode.HISTORY, WriteMode.APPEND])
def test_every_version_counts_where_versions_are_kept(
    spark: SparkSession, spark_platform: PlatformConfig, mode: WriteMode
) -> None:
    lab, one = made(spark, spark_platform, strict("reject", write_mode=mode))
    check = check_history if mode is WriteMode.HISTORY else check_append
    one.insert("1", "a", "1.00")
    one.insert("2", "b", "2.00")
    step(lab)
    one.update(one.find("1"), price=NAN)
    one.update(one.find("1"), price="1.50")  # good, but not before the one in front of it
    one.delete(one.find("2"))
    assert step(lab).parked == 2
    assert roles(lab) == [("failed", "1"), ("waiting", "1")]
    change_options(lab, strict("null", write_mode=mode))
    assert redrive(lab).applied == 2
    for version in one.versions:  # what the policy makes of it
        version.row[:] = [None if value == NAN else value for value in version.row]
    one.appended = [tuple(None if v == NAN else v for v in row) for row in one.appended]
    check(lab, one)


def test_rollback_takes_parking_and_resolving_back_with_the_rows(
    spark: SparkSession, spark_platform: PlatformConfig
) -> None:
    lab, one = made(spark, spark_platform, strict("reject"))
    one.insert("1", "a", "1.00")
    step(lab)
    one.update(one.find("1"), price=NAN)
    one.insert("2", "b", "2.00")
    step(lab)
    change_options(lab, strict("null"))
    assert redrive(lab).applied == 1
    table = load(lab.catalog, lab.target(one).identifier)
    assert table is not None
    first, parked, _ = [s.snapshot_id for s in history(table) if s.on_main][-3:]
    assert letters(lab) == []
    run_rollback(lab.spark, lab.pipeline, lab.platform, TABLE, parked)
    assert roles(lab) == [("failed", "1")]
    assert redrive(lab).applied == 1
    assert (letters(lab), lab.rows(one)) == ([], [("1", "a", None), ("2", "b", "2.00")])
    # To before it was parked: the log decides anew, and by now the policy takes the value.
    run_rollback(lab.spark, lab.pipeline, lab.platform, TABLE, first)
    assert letters(lab) == []
    assert lab.apply().tables[0].parked == 0
    assert (letters(lab), lab.rows(one)) == ([], [("1", "a", None), ("2", "b", "2.00")])


@pytest.mark.parametrize(
    "point", ["apply.after_commit", "apply.after_letters", "apply.after_publish"]
)
def test_whoever_dies_when_a_change_is_a_letter_once_and_applied_once(
    spark: SparkSession,
    spark_platform: PlatformConfig,
    monkeypatch: pytest.MonkeyPatch,
    point: str,
) -> None:
    lab, one = made(spark, spark_platform, strict("reject", write_mode=WriteMode.APPEND))
    one.insert("1", "a", NAN)
    one.insert("2", "b", "2.00")
    one.commit()
    lab.capture()
    die_at(monkeypatch, point)
    with pytest.raises(faults.Fault):
        lab.apply()
    monkeypatch.delenv("TIDEGATE_FAULT")
    lab.gate.open([TABLE], "dead", "test", abandon=True)
    lab.apply()
    assert roles(lab) == [("failed", "1")]
    assert [row[0] for row in lab.rows(one)] == ["2"]
    change_options(lab, strict("null", write_mode=WriteMode.APPEND))
    die_at(monkeypatch, point)
    with pytest.raises(faults.Fault):
        redrive(lab)
    monkeypatch.delenv("TIDEGATE_FAULT")
    redrive(lab)
    assert letters(lab) == []
    assert [row[0] for row in lab.rows(one)] == ["1", "2"]  # append mode would show a second one


def test_a_flood_holds_the_table_and_applies_nothing(
    spark: SparkSession, spark_platform: PlatformConfig
) -> None:
    lab, one = made(spark, spark_platform, max_dead_letters=2)
    for key in ("1", "2", "3"):
        one.insert(key, "a", BAD)
    one.insert("4", "b", "4.00")
    result = step(lab)
    assert result.status is Status.HELD and result.error is not None
    assert result.error.code == "apply.too_many_dead_letters"
    assert "price" in result.error.message and BAD not in str(result.error)
    assert (lab.rows(one), letters(lab), lab.refs(one)) == ([], [], {"main"})
    assert lab.gate.states()[TABLE].state is GateState.HELD
    # A share of a batch that is large enough to have one.
    lab, one = made(spark, spark_platform, max_dead_letter_ratio=0.02)
    for key in range(200):
        one.insert(str(key), "a", BAD if key < 5 else "1.00")
    error = step(lab).error
    assert error is not None and "5 of the 200 changes" in error.message


def test_without_dead_letters_a_bad_row_holds_its_table(
    spark: SparkSession, spark_platform: PlatformConfig
) -> None:
    lab, one = made(spark, spark_platform, enabled=False)
    one.insert("1", "a", BAD)
    error = step(lab).error
    assert error is not None and error.code == "apply.cast_failed"
    assert letters(lab) == []


def test_a_truncate_makes_letters_moot_where_nothing_older_is_kept(
    spark: SparkSession, spark_platform: PlatformConfig
) -> None:
    lab, one = made(spark, spark_platform)
    one.insert("1", "a", BAD)
    step(lab)
    one.truncate()
    one.insert("1", "again", "1.00")
    one.insert("2", "bad", BAD)
    assert step(lab).parked == 1
    assert roles(lab) == [("failed", "2")]
    assert lab.rows(one) == [("1", "again", "1.00")]
    lab, one = made(spark, spark_platform, TableOptions(soft_delete=True))
    one.insert("1", "a", BAD)
    step(lab)
    one.truncate()
    result = step(lab)
    assert result.status is Status.HELD and result.error is not None
    assert result.error.code == "apply.truncate_behind_letters"
    run_discard(lab, {letter.event_id for letter in letters(lab)})
    (told,) = AuditTrail(lab.catalog, lab.pipeline).entries()
    assert (told.action, told.outcome, told.details) == ("discard", "done", {"letters": 1})
    lab.gate.open([TABLE], "discarded", "test")
    assert lab.apply().tables[0].status is Status.APPLIED
    assert lab.rows(one) == []


def run_discard(lab: LakeLab, event_ids: set[str]) -> None:
    control.discard(lab.pipeline, lab.platform, None, choose(event_ids), actor="test")


def test_soft_deleted_rows_and_keys_that_do_not_cast(
    spark: SparkSession, spark_platform: PlatformConfig
) -> None:
    lab, one = made(spark, spark_platform, TableOptions(soft_delete=True))
    one.insert("1", "a", BAD)
    one.delete(one.find("1"))
    one.insert("1.5", "no such key", "1.00")
    one.insert("2", "b", "2.00")
    assert step(lab).parked == 3
    assert roles(lab) == [("failed", "1"), ("waiting", "1"), ("failed", "1.5")]
    run_discard(lab, {letter.event_id for letter in letters(lab) if letter.role == "failed"})
    assert redrive(lab).applied == 1  # the delete of a row that never was
    one.rows.remove(one.find("1.5"))
    one.versions = [v for v in one.versions if v.key not in (("1",), ("1.5",))]
    check_soft(lab, one)


def test_letters_outlive_the_snapshots_that_parked_them(
    spark: SparkSession, spark_platform: PlatformConfig
) -> None:
    keep = {"expire_snapshots_older_than_seconds": 0, "retain_last": 1}
    lab, one = made(spark, spark_platform, strict("reject", maintenance=keep))
    one.insert("1", "a", NAN)
    step(lab)
    one.insert("2", "b", "2.00")
    step(lab)
    run_maintain(lab.spark, lab.pipeline, lab.platform, force=True)
    table = load(lab.catalog, lab.target(one).identifier)
    assert table is not None and len(table.metadata.snapshots) == 1
    assert roles(lab) == [("failed", "1")]
    change_options(lab, strict("null", maintenance=keep))
    assert redrive(lab).applied == 1
    run_maintain(lab.spark, lab.pipeline, lab.platform, force=True)
    assert letters(lab) == []
    assert lab.rows(one) == [("1", "a", None), ("2", "b", "2.00")]
