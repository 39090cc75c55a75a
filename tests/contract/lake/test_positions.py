"""Positions through rewrites, foreign writes, rollback and expiry (I1)."""

from __future__ import annotations

from datetime import UTC, datetime

import pyarrow as pa
import pytest
from pyiceberg.catalog import Catalog
from pyiceberg.table import Table
from pyiceberg.table.snapshots import Operation
from pyiceberg.table.update import AddSnapshotUpdate

from tidegate.envelope.position import boundary
from tidegate.errors import FatalError
from tidegate.lake import commits
from tidegate.lake.expiry import expire
from tidegate.lake.positions import applied, history, state
from tidegate.names import POSITION_PROPERTY, RUN_PROPERTY, STEP_PROPERTY

ROWS = pa.table({"n": pa.array([1], pa.int64())})


@pytest.fixture
def table(catalog: Catalog) -> Table:
    catalog.create_namespace("shop")
    return catalog.create_table(("shop", "orders"), ROWS.schema)


def apply_to(table: Table, lsn: int) -> int:
    facts = {
        POSITION_PROPERTY: str(boundary("e1", lsn)),
        STEP_PROPERTY: "apply",
        RUN_PROPERTY: "r1",
    }
    return commits.append_files(
        table, commits.write_files(table, ROWS), facts, commits.head_id(table)
    )


def rewrite(table: Table) -> int:
    """What Spark's compaction leaves: a replace snapshot without our properties."""
    transaction = table.transaction()
    producer = transaction.update_snapshot().overwrite()
    for task in table.scan().plan_files():
        producer.delete_data_file(task.file)
    for file in commits.write_files(table, table.scan().to_arrow()):
        producer.append_data_file(file)
    producer.commit()
    for update in transaction._updates:
        if isinstance(update, AddSnapshotUpdate) and update.snapshot.summary is not None:
            object.__setattr__(update.snapshot.summary, "operation", Operation.REPLACE)
    transaction.commit_transaction()
    head = commits.head_id(table)
    assert head is not None
    return head


def test_a_table_without_snapshots_stands_nowhere(table: Table) -> None:
    assert applied(table) is None
    assert applied(table, "no_such_branch") is None
    assert history(table) == []


def test_a_table_that_never_had_a_position_stands_nowhere(table: Table) -> None:
    table.append(ROWS)
    assert applied(table) is None


def test_the_newest_stamp_counts(table: Table) -> None:
    apply_to(table, 10)
    apply_to(table, 20)
    assert applied(table) == boundary("e1", 20)


def test_compaction_is_looked_through_and_is_not_foreign(table: Table) -> None:
    stamped = apply_to(table, 10)
    rewrite(table)
    found = state(table)
    assert found is not None
    assert (found.position, found.snapshot_id, found.foreign) == (boundary("e1", 10), stamped, ())
    last = history(table)[-1]
    assert (last.operation, last.position, last.stamped) == ("replace", boundary("e1", 10), False)


def test_a_foreign_write_is_reported_and_keeps_the_position(table: Table) -> None:
    apply_to(table, 10)
    table.append(ROWS)
    foreign = commits.head_id(table)
    found = state(table)
    assert found is not None
    assert found.position == boundary("e1", 10)
    assert found.foreign == (foreign,)
    assert [info.foreign for info in history(table)] == [False, True]
    apply_to(table, 20)
    found = state(table)
    assert found is not None
    assert found.foreign == ()


def test_rollback_takes_the_position_back_with_the_data(table: Table) -> None:
    first = apply_to(table, 10)
    apply_to(table, 20)
    table.manage_snapshots().set_current_snapshot(first).commit()
    assert applied(table) == boundary("e1", 10)
    assert [info.on_main for info in history(table)] == [True, False]


def test_a_branch_has_its_own_position(table: Table) -> None:
    first = apply_to(table, 10)
    table.manage_snapshots().create_branch(first, "sweep_r2").commit()
    apply_to(table, 20)
    assert applied(table, "sweep_r2") == boundary("e1", 10)
    assert applied(table) == boundary("e1", 20)


def test_an_expired_stamp_is_an_error_never_a_start_from_zero(table: Table) -> None:
    apply_to(table, 10)
    rewrite(table)
    expire(table, before=datetime.now(UTC))
    with pytest.raises(FatalError) as caught:
        applied(table)
    assert caught.value.code == "lake.position_lost"
    assert "sweep" in caught.value.hint


def test_a_stamp_after_compaction_survives_expiry(table: Table) -> None:
    apply_to(table, 10)
    head = rewrite(table)
    facts = {POSITION_PROPERTY: str(boundary("e1", 10)), STEP_PROPERTY: "stamp"}
    commits.append_files(table, (), facts, head)
    removed = expire(table, before=datetime.now(UTC))
    assert removed.snapshots == 2
    assert applied(table) == boundary("e1", 10)
    assert table.scan().to_arrow().num_rows == 1


def test_history_names_step_and_run(table: Table) -> None:
    snapshot_id = apply_to(table, 10)
    (info,) = history(table)
    assert (info.snapshot_id, info.parent_id) == (snapshot_id, None)
    assert (info.step, info.run, info.operation) == ("apply", "r1", "append")
    assert info.summary["added-records"] == "1"


def test_a_chunk_of_a_sweep_does_not_inherit_mains_position(table: Table) -> None:
    apply_to(table, 10)
    commits.append_files(table, (), {STEP_PROPERTY: "chunk"}, commits.head_id(table))
    assert history(table)[-1].position is None
