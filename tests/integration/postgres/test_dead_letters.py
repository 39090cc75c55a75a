"""Dead letters and sweeps: a published sweep has read the rows anew (DESIGN §7)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.support.postgres import SourceDatabase
from tests.support.stack import Stack
from tidegate import faults
from tidegate.control import dead_letters
from tidegate.errors import HeldError
from tidegate.jobs.apply import run_apply
from tidegate.jobs.capture import run_capture
from tidegate.jobs.verify import run_verify
from tidegate.lake.dead_letter_choice import Choice

pytestmark = [pytest.mark.spark, pytest.mark.postgres]

TABLE = "public.items"
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
) -> None:
    source_db.sql(
        "CREATE TABLE items (id int PRIMARY KEY, due date)",
        "INSERT INTO items SELECT i, '2020-01-01' FROM generate_series(1, 100) i",
    )
    made = stack(TABLE, lake=REJECT)
    made.swept()
    source_db.sql("UPDATE items SET due = 'infinity' WHERE id = 7")
    assert catch_up(made).parked == 1
    with pytest.raises(HeldError, match="1 dead letters"):
        made.sweep(TABLE, where="id >= 1 and id < 50")
    # The row cannot be swept either: nothing is published, the letter stays.
    assert made.sweep(TABLE).tables[0].error is not None
    assert waiting(made) == 1
    made.gate.open([TABLE], "a try", "test")
    source_db.sql("UPDATE items SET due = '2021-07-07' WHERE id = 7")
    assert catch_up(made).parked == 1
    # Nor is it mended by key: the letters would change it again.
    (kept,) = run_verify(made.spark, made.pipeline, made.platform, repair=True).tables
    assert (kept.status, kept.different) == ("different", 1)
    assert kept.error is not None and kept.error.code == "repair.dead_letters"
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
