"""Dead letters from a real source: sweeps make them moot, values that are too large become some."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest

from tests.support.log_events import Ear
from tests.support.postgres import SourceDatabase
from tests.support.stack import Stack
from tidegate import faults
from tidegate.config.platform import CaptureConfig, DlqConfig
from tidegate.control import dead_letters
from tidegate.envelope.position import Position
from tidegate.errors import HeldError
from tidegate.jobs.apply import run_apply
from tidegate.jobs.capture import run_capture
from tidegate.jobs.redrive import run_redrive
from tidegate.jobs.verify import run_verify
from tidegate.lake.dead_letter_choice import Choice
from tidegate.observability import events

pytestmark = [pytest.mark.spark, pytest.mark.postgres]

TABLE = "public.items"
FRAME = re.compile(r"tidegate/[a-z_/]+\.py:\d+ in [A-Za-z_<>]+")
REJECT = {"tables": {TABLE: {"columns": {"due": {"policy": "reject"}}}}}


def waiting(made: Stack) -> int:
    return len(dead_letters.find(made.pipeline, made.platform, None, Choice()).letters)


def catch_up(made: Stack) -> Any:
    run_capture(made.pipeline, made.platform)
    return run_apply(made.spark, made.pipeline, made.platform, run="apply").tables[0]


def test_a_sweep_supersedes_letters_with_its_snapshot_and_not_before(
    source_db: SourceDatabase,
    stack: Callable[..., Stack],
    fault: Callable[[str], None],
    monkeypatch: pytest.MonkeyPatch,
    said: Ear,
) -> None:
    source_db.sql(
        "CREATE TABLE items (id int PRIMARY KEY, due date)",
        "INSERT INTO items SELECT i, '2020-01-01' FROM generate_series(1, 100) i",
    )
    made = stack(TABLE, lake=REJECT)
    made.swept()
    source_db.sql("UPDATE items SET due = 'infinity' WHERE id = 7")
    assert catch_up(made).parked == 1
    (letter,) = dead_letters.find(made.pipeline, made.platform, None, Choice()).letters
    facts = dead_letters.show(made.pipeline, made.platform, letter.event_id).headers
    stack = facts.pop("dlq.stacktrace").splitlines()
    assert stack and all(FRAME.fullmatch(line) for line in stack), "code, and no value"
    assert "tidegate/spark/apply.py" in stack[0]
    assert facts == {
        "dlq.source_topic": "cdc.public.items",
        "dlq.source_partition": "0",
        "dlq.source_offset": str(Position.parse(letter.position).lsn),
        "dlq.error_type": "apply.cast_failed",
        "dlq.error_message": "due cannot take its value exactly",
        "dlq.timestamp": letter.first_seen.isoformat(),
        "dlq.sink_id": "lake",
    }
    quiet = made.platform.model_copy(update={"dlq": DlqConfig(include_headers=False)})
    assert dead_letters.show(made.pipeline, quiet, letter.event_id).headers == {}
    with pytest.raises(HeldError, match="1 dead letters"):
        made.sweep(TABLE, where="id >= 1 and id < 50")
    # The row cannot be swept either: a letter of the sweep takes the place of the log's.
    assert made.swept(TABLE).parked == 1
    told = [(one.fields["code"], one.fields["rows"]) for one in said.of(events.SINK_WRITE_ERROR)]
    assert told == [("apply.cast_failed", 1)] * 2, "the log's, then the sweep's"
    assert waiting(made) == 1
    source_db.sql("UPDATE items SET due = '2021-07-07' WHERE id = 7")
    assert catch_up(made).parked == 1
    # Nor is it mended by key: the letters would change it again.
    (kept,) = run_verify(made.spark, made.pipeline, made.platform, repair=True).tables
    assert (kept.status, kept.waiting, kept.repaired) == ("equal", 2, 0)
    fault("sweep.after_audit")
    with pytest.raises(faults.Fault):
        made.sweep(TABLE)
    assert waiting(made) == 2
    fault("sweep.after_publish")
    with pytest.raises(faults.Fault):
        made.sweep(TABLE)
    monkeypatch.delenv("TIDEGATE_FAULT")
    assert waiting(made) == 0
    made.swept()
    source_db.sql("UPDATE items SET due = '2022-07-07' WHERE id = 7")
    assert catch_up(made).parked == 0
    verdict = run_verify(made.spark, made.pipeline, made.platform)
    assert verdict.equal, verdict


def test_a_value_that_is_too_large_is_a_letter_and_no_sweep_chokes_on_it(
    source_db: SourceDatabase, stack: Callable[..., Stack]
) -> None:
    source_db.sql("CREATE TABLE items (id int PRIMARY KEY, n int, v text, b bytea)")
    made = stack(TABLE)
    small = CaptureConfig(max_value_bytes=64 * 1024)
    made.platform = made.platform.model_copy(update={"capture": small})
    made.swept()
    source_db.sql(
        "INSERT INTO items VALUES (1, 1, repeat('x', 64 * 1024), 'b')",
        "INSERT INTO items VALUES (2, 1, repeat('x', 64 * 1024 + 1), 'b')",
        "INSERT INTO items VALUES (3, 1, 'v', (SELECT decode(string_agg(md5(i::text), ''), 'hex')"
        " FROM generate_series(1, 3000) i))",  # hex is twice as long
        "UPDATE items SET n = 2 WHERE id = 2",
    )
    assert catch_up(made).parked == 3
    found = dead_letters.find(made.pipeline, made.platform, None, Choice()).letters
    assert [(letter.key, letter.code) for letter in found] == [
        (("2",), "apply.value_too_large"),
        (("3",), "apply.value_too_large"),
        (("2",), "apply.value_too_large"),  # compressed it stays in the row, and is sent again
    ]
    assert found[0].message.startswith("v is larger") and found[1].message.startswith("b is larger")
    assert made.lake(TABLE, "id", "n") == [(1, 1)]
    usual = made.platform
    made.platform = usual.model_copy(update={"dlq": DlqConfig(enabled=False)})
    refused = made.sweep(TABLE).tables[0].error
    assert refused is not None and refused.code == "sweep.value_too_large"
    assert "v (1 rows), b (1 rows)" in refused.message
    made.platform = usual
    assert made.swept(TABLE).parked == 2
    assert made.lake(TABLE, "id", "n") == [(1, 1)]
    found = dead_letters.find(made.pipeline, made.platform, None, Choice()).letters
    assert {(letter.key, letter.op, letter.code) for letter in found} == {
        (("2",), "r", "apply.value_too_large"),
        (("3",), "r", "apply.value_too_large"),
    }
    (second,) = (letter for letter in found if letter.key == ("2",))
    shown = dead_letters.show(made.pipeline, made.platform, second.event_id)
    assert shown.after == {"id": "2", "n": "2", "v": None, "b": "\\x62"}
    assert shown.unchanged == ("v",)
    assert shown.headers["dlq.error_type"] == "apply.value_too_large"
    assert "tidegate/spark/sweep_parking.py" in shown.headers["dlq.stacktrace"]
    assert run_verify(made.spark, made.pipeline, made.platform).tables[0].waiting == 2
    source_db.sql("UPDATE items SET v = 'w' WHERE id = 2", "DELETE FROM items WHERE id = 3")
    assert catch_up(made).parked == 2
    (redriven,) = run_redrive(made.spark, made.pipeline, made.platform).tables
    assert (redriven.applied, redriven.still_waiting) == (4, 0)
    assert made.lake(TABLE, "id", "n") == [(1, 1), (2, 2)]
    assert run_verify(made.spark, made.pipeline, made.platform).equal
