"""What is proven, how samples add up to it, and what withdraws it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.support.stack import Stack
from tidegate.config.verify import Extent
from tidegate.control.records import VerifiedThrough
from tidegate.control.status import status
from tidegate.jobs.apply import run_apply
from tidegate.jobs.capture import run_capture
from tidegate.jobs.maintain import run_maintain
from tidegate.jobs.rollback import run_rollback
from tidegate.jobs.verify import run_verify
from tidegate.spark.publish import spark_name

pytestmark = [pytest.mark.spark, pytest.mark.postgres]

TABLE = "public.places"
SETUP = (
    "CREATE TABLE places (country text, id int, name text, PRIMARY KEY (country, id))",
    "INSERT INTO places SELECT 'é' || g % 7, g, 'place ' || g FROM generate_series(1, 1500) g",
)
SAMPLE = 0.4
AT_ONCE = {"expire_snapshots_older_than_seconds": 0, "retain_last": 1}


def proof(made: Stack) -> VerifiedThrough:
    (table,) = status(made.pipeline, made.platform, ask_source=False).tables
    assert table.verified_through is not None
    return table.verified_through


def test_samples_add_up_and_sweeps_writes_and_rollbacks_withdraw(
    source_db: Any, stack: Callable[..., Stack]
) -> None:
    source_db.sql(*SETUP)
    made = stack(TABLE, lake={"maintenance": AT_ONCE})
    swept = made.swept()
    rows, shares = [], []
    for number in range(3):
        made.db.sql(f"UPDATE places SET name = 'round {number}' WHERE id % 5 = {number}")
        result = run_verify(made.spark, made.pipeline, made.platform, extent=Extent(SAMPLE))
        (table,) = result.tables
        assert (table.status, table.first, table.error) == ("equal", (), None)
        rows.append(table.source_rows)
        shares.append(table.coverage)
        if not number:
            first = str(result.position)
    # Each took about its share; the third took the rest and the oldest of the first.
    assert all(1500 * SAMPLE * 0.7 < count < 1500 * SAMPLE * 1.3 for count in rows)
    assert (shares[0], shares[2]) == (40.0, 100.0)
    known = proof(made)
    assert (known.position, known.coverage, known.runs) == (first, 100.0, 3)
    assert known.last_position == str(result.position)
    # Upkeep expires the snapshots the proof was made on, and carries it over.
    run_maintain(made.spark, made.pipeline, made.platform, force=True)
    assert made.table(TABLE).snapshot_by_id(known.snapshot_id or 0) is None
    assert (proof(made).coverage, proof(made).withdrawn) == (100.0, None)
    # Another program's write ends it, and so does a sweep; what was swept is proven anew.
    made.spark.sql(f"DELETE FROM {spark_name(made.pipeline.targets[0])} WHERE id = 3")
    assert (proof(made).coverage, proof(made).position) == (0.0, None)
    made.swept()
    assert "swept" in str(proof(made).withdrawn)
    base = made.table(TABLE).current_snapshot()
    assert base is not None and base.snapshot_id != swept.snapshot_id
    made.db.sql("DELETE FROM places WHERE id = 4")
    run_verify(made.spark, made.pipeline, made.platform)
    assert (proof(made).coverage, proof(made).withdrawn) == (100.0, None)
    # A TRUNCATE comes by the log like any change.
    made.db.sql("TRUNCATE places", "INSERT INTO places VALUES ('é', 1, 'new')")
    run_capture(made.pipeline, made.platform)
    run_apply(made.spark, made.pipeline, made.platform, run="truncated")
    assert len(made.lake(TABLE, "id")) == 1
    assert (proof(made).coverage, proof(made).withdrawn) == (100.0, None)
    # A rollback takes the proof back with the rows.
    run_rollback(made.spark, made.pipeline, made.platform, TABLE, base.snapshot_id)
    assert proof(made).coverage == 0.0
    assert "rolled back" in str(proof(made).withdrawn)
