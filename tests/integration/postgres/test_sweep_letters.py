"""Rows that a sweep cannot take: letters at the cut, durable before the rest is published (I7)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.support.postgres import SourceDatabase
from tests.support.stack import Stack
from tidegate import faults
from tidegate.config.platform import DlqConfig
from tidegate.control import dead_letters
from tidegate.control.dead_letters import LetterRow
from tidegate.jobs.apply import run_apply
from tidegate.jobs.capture import run_capture
from tidegate.jobs.redrive import TableRedrive, run_redrive
from tidegate.jobs.rollback import run_rollback
from tidegate.jobs.verdict import TableVerdict
from tidegate.jobs.verify import run_verify
from tidegate.lake.dead_letter_choice import Choice
from tidegate.lake.gate import GateState

pytestmark = [pytest.mark.spark, pytest.mark.postgres]

TABLE = "public.items"
ROWS = 4500
"""Five chunks, two commits."""
BAD = (7, 1500, 4400)


def policy(name: str, **lake: Any) -> dict[str, Any]:
    return {**lake, "tables": {TABLE: {"columns": {"due": {"policy": name}}}}}


@pytest.fixture
def items(source_db: SourceDatabase, stack: Callable[..., Stack]) -> Callable[..., Stack]:
    def make(rows: int = ROWS, **lake: Any) -> Stack:
        source_db.sql(
            "CREATE TABLE items (id int PRIMARY KEY, due date, price numeric(38,2), note text)",
            "INSERT INTO items SELECT i, '2020-01-01', 1.25, 'a' || i"
            f" FROM generate_series(1, {rows}) i",
        )
        return stack(TABLE, lake=policy("reject", **lake))

    return make


def spoil(made: Stack, *keys: int) -> None:
    made.db.sql(f"UPDATE items SET due = 'infinity' WHERE id IN ({', '.join(map(str, keys))})")


def waiting(made: Stack) -> list[LetterRow]:
    found = dead_letters.find(made.pipeline, made.platform, None, Choice()).letters
    return sorted(found, key=lambda letter: (letter.position, int(letter.key[0] or 0)))


def keys(made: Stack) -> list[int]:
    return [int(letter.key[0] or 0) for letter in waiting(made)]


def catch_up(made: Stack) -> Any:
    run_capture(made.pipeline, made.platform)
    return run_apply(made.spark, made.pipeline, made.platform, run="apply").tables[0]


def redrive(made: Stack) -> TableRedrive:
    return run_redrive(made.spark, made.pipeline, made.platform).tables[0]


def verify(made: Stack, **options: Any) -> TableVerdict:
    return run_verify(made.spark, made.pipeline, made.platform, **options).tables[0]


def set_policy(made: Stack, name: str) -> None:
    """As a user edits the pipeline's file."""
    sinks = [{"sink_id": "lake", "sink_type": "iceberg", "iceberg": policy(name)}]
    made.pipeline = made.db.pipeline(TABLE, sinks=sinks)


def test_what_cannot_be_taken_waits_and_the_rest_is_published(items: Callable[..., Stack]) -> None:
    made = items()
    spoil(made, *BAD)
    swept = made.swept()
    assert (swept.rows, swept.parked) == (ROWS, 3)
    assert {"row_count", "key_sum(id)"} <= set(swept.checks)
    assert len(made.lake(TABLE, "id")) == ROWS - 3
    found = waiting(made)
    assert [letter.key for letter in found] == [(str(key),) for key in BAD]
    assert {(one.op, one.position, one.code) for one in found} == {
        ("r", str(swept.position), "apply.cast_failed")
    }
    assert "due" in found[0].message and "infinity" not in found[0].message
    shown = dead_letters.show(made.pipeline, made.platform, found[0].event_id)
    assert shown.after == {"id": "7", "due": "infinity", "price": "1.25", "note": "a7"}
    proven = verify(made)
    assert (proven.status, proven.waiting, proven.source_rows) == ("equal", 3, ROWS - 3)
    assert 99 < proven.coverage < 100
    # Later changes of those rows wait behind them; a correction ends the wait, once redriven.
    made.db.sql(
        "UPDATE items SET due = '2021-07-07' WHERE id IN (7, 8)",
        "DELETE FROM items WHERE id = 4400",
    )
    assert catch_up(made).parked == 2
    assert made.lake(TABLE, "id", where="id in (7, 4400)") == []
    again = redrive(made)
    assert (again.tried, again.applied, again.still_waiting) == (5, 4, 1)
    assert [str(day) for _, day in made.lake(TABLE, "id", "due", where="id in (7, 8)")] == [
        "2021-07-07",
        "2021-07-07",
    ]
    assert keys(made) == [1500]
    assert waiting(made)[0].attempts == 2
    set_policy(made, "null")
    assert redrive(made).still_waiting == 0
    assert made.lake(TABLE, "id", "due", where="id = 1500") == [(1500, None)]
    proven = verify(made)
    assert (proven.status, proven.waiting, proven.coverage) == ("equal", 0, 100.0)


def test_what_differs_beside_them_is_found_and_mended(items: Callable[..., Stack]) -> None:
    made = items(rows=50)
    spoil(made, 7)
    snapshot = made.swept().snapshot_id
    again = redrive(made)  # in vain: nothing is committed
    assert (again.applied, again.still_waiting, again.snapshot_id) == (0, 1, snapshot)
    assert (waiting(made)[0].attempts, made.table(TABLE).metadata.current_snapshot_id) == (
        2,
        snapshot,
    )
    target = made.pipeline.targets[0]
    made.spark.sql(f"DELETE FROM lake.{target.namespace}.{target.name} WHERE id = 9")
    found = verify(made)
    assert (found.status, found.missing, found.waiting) == ("different", 1, 1)
    assert [difference.key for difference in found.first] == [{"id": "9"}]
    mended = verify(made, repair=True)
    assert (mended.status, mended.repaired, mended.error) == ("repaired", 1, None)
    assert keys(made) == [7]


def test_they_count_with_the_snapshot_whoever_dies_when(
    items: Callable[..., Stack], fault: Callable[[str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    made = items()
    spoil(made, *BAD)
    # Letters of the first commit, none, the letters of the second commit, all of them durable.
    for point in (
        "sweep.after_letters",
        "sweep.after_chunk:2",
        "sweep.after_letters:2",
        "sweep.after_audit",
    ):
        fault(point)
        with pytest.raises(faults.Fault):
            made.sweep(run=point)
        assert waiting(made) == []
        assert made.table(TABLE).current_snapshot() is None
    fault("sweep.after_publish")
    with pytest.raises(faults.Fault):
        made.sweep()
    monkeypatch.delenv("TIDEGATE_FAULT")
    assert keys(made) == list(BAD)
    assert made.swept().status == "opened"
    assert keys(made) == list(BAD)
    first = made.table(TABLE).current_snapshot()
    assert first is not None
    # Another sweep makes them moot, a rollback takes that back.
    made.db.sql("UPDATE items SET due = '2020-02-02' WHERE id IN (7, 4400)")
    assert made.swept().parked == 1
    assert keys(made) == [1500]
    run_rollback(made.spark, made.pipeline, made.platform, TABLE, first.snapshot_id)
    assert keys(made) == list(BAD)
    assert catch_up(made).parked == 2
    assert (redrive(made).still_waiting, keys(made)) == (1, [1500])
    assert verify(made).status == "equal"


def test_killed_before_its_letters_were_durable_a_sweep_does_not_lose_their_rows(
    items: Callable[..., Stack], fault: Callable[[str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    made = items()
    spoil(made, 7)
    fault("sweep.after_chunk")
    with pytest.raises(faults.Fault):
        made.sweep(run="killed")
    monkeypatch.delenv("TIDEGATE_FAULT")
    assert made.swept().parked == 1
    assert keys(made) == [7]
    assert verify(made).status == "equal"


@pytest.mark.parametrize("mode", ["history", "soft_delete"])
def test_what_was_there_before_is_neither_ended_nor_doubled(
    mode: str, items: Callable[..., Stack]
) -> None:
    lake = {"soft_delete": True} if mode == "soft_delete" else {"write_mode": mode}
    made = items(rows=50, **lake)
    made.swept()
    spoil(made, 7)
    made.db.sql("DELETE FROM items WHERE id = 8", "UPDATE items SET note = 'b' WHERE id = 9")
    assert made.swept().parked == 1
    row = made.lake(TABLE, "id", "_cdc_deleted", where="id = 7")
    # An older version stays, as it does behind a letter of the log; replaced rows are replaced.
    assert row == ([(7, False)] if mode == "history" else [])
    gone = made.lake(TABLE, "id", "_cdc_deleted", where="id = 8")
    assert gone == [(8, True)]
    found = verify(made)
    assert (found.status, found.waiting) == ("equal", 1)
    made.db.sql("UPDATE items SET due = '2021-07-07' WHERE id = 7")
    assert catch_up(made).parked == 1
    left = redrive(made).still_waiting
    # Every version counts in history: what could not be taken is still wrong.
    assert left == (2 if mode == "history" else 0)
    if left:
        (wrong, _) = waiting(made)
        dead_letters.discard(
            made.pipeline,
            made.platform,
            None,
            Choice(event_ids=frozenset({wrong.event_id})),
            actor="test",
        )
        assert redrive(made).still_waiting == 0
    found = verify(made)
    assert (found.status, found.waiting) == ("equal", 0)


def test_rows_without_a_key_are_letters_each(
    source_db: SourceDatabase, stack: Callable[..., Stack]
) -> None:
    source_db.sql(
        "CREATE TABLE items (due date, note text)",
        "ALTER TABLE items REPLICA IDENTITY FULL",
        "INSERT INTO items VALUES ('infinity', 'a'), ('infinity', 'a'), ('2020-01-01', 'b')",
    )
    made = stack(TABLE, lake=policy("reject", write_mode="append"))
    assert made.swept().parked == 2
    found = dead_letters.find(made.pipeline, made.platform, None, Choice()).letters
    assert len({letter.event_id for letter in found}) == 2
    source_db.sql("INSERT INTO items VALUES ('2020-01-02', 'c')")
    assert catch_up(made).parked == 0  # without a key nothing waits behind another
    sinks = [
        {
            "sink_id": "lake",
            "sink_type": "iceberg",
            "iceberg": policy("null", write_mode="append"),
        }
    ]
    made.pipeline = source_db.pipeline(TABLE, sinks=sinks)
    assert redrive(made).still_waiting == 0
    assert made.lake(TABLE, "note") == [("a",), ("a",), ("b",), ("c",)]


@pytest.mark.parametrize(
    ("limits", "code"),
    [
        ({"max_dead_letters": 2}, "sweep.too_many_dead_letters"),
        ({"max_dead_letter_ratio": 0.0005}, "sweep.too_many_dead_letters"),
        ({"enabled": False}, "sweep.inexact_values"),
    ],
)
def test_a_flood_publishes_nothing(
    limits: dict[str, Any], code: str, items: Callable[..., Stack]
) -> None:
    made = items()
    made.platform = made.platform.model_copy(update={"dlq": DlqConfig(**limits)})
    spoil(made, *BAD)
    (refused,) = made.sweep().tables
    assert refused.error is not None and refused.error.code == code
    assert "due (" in refused.error.message
    assert made.table(TABLE).current_snapshot() is None
    assert made.state(TABLE).state is GateState.HELD
    assert waiting(made) == []
