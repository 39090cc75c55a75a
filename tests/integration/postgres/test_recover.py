"""A slot that PostgreSQL really invalidated: what is lost, and the one command back."""

from __future__ import annotations

import runpy
from argparse import ArgumentParser
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path

import pytest

from tests.support.postgres import SourceDatabase
from tests.support.stack import Stack
from tidegate import faults
from tidegate.config.platform import LakeConfig, PlatformConfig
from tidegate.control.status import status
from tidegate.errors import ConfigError, FatalError
from tidegate.jobs.capture import run_capture
from tidegate.jobs.deploy import deploy
from tidegate.jobs.door import Call
from tidegate.lake.audit_trail import AuditTrail
from tidegate.lake.catalog import open_catalog
from tidegate.observability.progress import silent
from tidegate.testing.postgres_server import PostgresServer, running

pytestmark = pytest.mark.postgres

DOOR = Path(__file__).parents[3] / "spark_jobs" / "sweep_tables.py"
ITEMS, MORE = "public.items", "public.more"
_numbers = count(1)


@pytest.fixture(scope="module", params=[16])
def small_server(request: pytest.FixtureRequest) -> Iterator[PostgresServer]:
    """A server whose slots may retain next to nothing."""
    config = {"max_slot_wal_keep_size": "1MB", "min_wal_size": "32MB"}
    with running(request.param, config=config) as server:
        yield server


@pytest.fixture
def source_db(small_server: PostgresServer) -> Iterator[SourceDatabase]:
    """In place of the session's: other tests' slots must not be lost."""
    name = small_server.create_database(f"lost{next(_numbers)}")
    database = SourceDatabase(small_server, name)
    yield database
    database.drop()


def lose_slot(db: SourceDatabase) -> None:
    """As a long pause of capture does: WAL goes on, checkpoints remove what is over the limit."""
    query = f"SELECT wal_status FROM pg_replication_slots WHERE database = '{db.name}'"
    for _ in range(20):
        db.sql("SELECT pg_logical_emit_message(false, 'filler', 'x')", "SELECT pg_switch_wal()")
        db.sql("CHECKPOINT")
        if db.value(query) == "lost":
            return
    raise AssertionError(f"the slot is still {db.value(query)}")


@pytest.mark.parametrize("small_server", [16, 18], indirect=True)
def test_a_lost_slot_is_made_anew_by_a_new_epoch_only(
    source_db: SourceDatabase, platform: PlatformConfig, tmp_path: Path
) -> None:
    from tidegate.jobs.recover import find_loss

    source_db.sql("CREATE TABLE items (id int PRIMARY KEY)")
    pipeline = source_db.pipeline(ITEMS)
    first = deploy(pipeline, platform)
    assert not find_loss(pipeline, platform).any
    lose_slot(source_db)
    with pytest.raises(FatalError) as caught:
        run_capture(pipeline, platform)
    assert caught.value.code == "capture.slot_lost"
    assert "tidegate recover" in caught.value.hint
    with pytest.raises(ConfigError, match="slot_lost"):
        deploy(pipeline, platform)
    loss = find_loss(pipeline, platform)
    assert "invalidated" in (loss.log or "")
    assert loss.tables == {}, "never swept: that is a first sweep"
    guard = status(pipeline, platform).guard
    assert guard is not None
    assert (guard.verdict, guard.releasable) == ("act", False), "a capture cannot help any more"
    assert "recover" in (guard.findings[0].next or "")

    # Through the door that the sweep Dag's switch opens, the same; a dry run needs no session.
    door = runpy.run_path(str(DOOR))
    parser = ArgumentParser()
    door["options"](parser)
    options = parser.parse_args(["--lost-only", "--dry-run"])
    plan = door["job"](Call(pipeline, platform, "r1", None, options, silent))
    assert (plan.status, plan.log) == ("planned", loss.log)
    # A dead slot of somebody else's is theirs to drop.
    home = LakeConfig(home=str(tmp_path / "elsewhere"))
    with pytest.raises(ConfigError) as refused:
        deploy(pipeline, platform.model_copy(update={"lake": home}), new_epoch=True)
    assert refused.value.code == "deploy.slot_exists"

    renewed = deploy(pipeline, platform, new_epoch=True)
    assert f"lost slot {pipeline.slot_name} dropped" in renewed.actions
    assert renewed.start is not None and first.start is not None
    assert renewed.start.partition("/")[0] != first.start.partition("/")[0]
    source_db.sql("INSERT INTO items VALUES (1)")
    assert run_capture(pipeline, platform).rows == 1
    assert not find_loss(pipeline, platform).any


@pytest.mark.spark
def test_only_what_is_lost_is_swept_and_a_kill_changes_nothing(
    source_db: SourceDatabase,
    stack: Callable[..., Stack],
    fault: Callable[[str], None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from tidegate.jobs.apply import run_apply
    from tidegate.jobs.recover import find_loss, run_recover

    source_db.sql(
        "CREATE TABLE items (id int PRIMARY KEY, v text)",
        "CREATE TABLE more (id int PRIMARY KEY, v text)",
        "INSERT INTO items SELECT g, 'v' FROM generate_series(1, 50) g",
        "INSERT INTO more SELECT g, 'v' FROM generate_series(1, 2500) g",
    )
    made = stack(ITEMS, MORE)
    # One table after the other: a fault within this process would let the one beside it finish.
    spark = made.platform.spark.model_copy(update={"table_parallelism": 1})
    arguments = (made.spark, made.pipeline, made.platform.model_copy(update={"spark": spark}))
    assert not made.sweep().failed
    assert run_recover(*arguments).status == "nothing lost"

    # A sweep dies after its first chunk; then the slot is lost, and with it changes of that chunk.
    fault("sweep.after_chunk")
    with pytest.raises(faults.Fault):
        made.sweep(MORE, run="died")
    monkeypatch.delenv("TIDEGATE_FAULT")
    source_db.sql("DELETE FROM more WHERE id <= 10", "INSERT INTO items VALUES (51, 'unseen')")
    lose_slot(source_db)
    plan = run_recover(*arguments, dry_run=True)
    assert plan.status == "planned"
    assert [(t.table, t.status) for t in plan.tables] == [(ITEMS, "planned"), (MORE, "planned")]
    assert all("invalidated" in table.reason for table in plan.tables)

    # Killed between the old slot and the new one, the loss is the same.
    fault("deploy.after_drop")
    with pytest.raises(faults.Fault):
        run_recover(*arguments)
    assert list(find_loss(made.pipeline, made.platform).tables) == [ITEMS, MORE]
    # Killed after the first table: only the other one is still lost.
    fault("sweep.after_open")
    with pytest.raises(faults.Fault):
        run_recover(*arguments)
    monkeypatch.delenv("TIDEGATE_FAULT")
    left = find_loss(made.pipeline, made.platform)
    assert left.log is None
    assert len(left.tables) == 1
    assert "stands in epoch" in next(iter(left.tables.values()))

    done = run_recover(*arguments)
    assert (done.status, [t.table for t in done.tables]) == ("recovered", list(left.tables))
    source_db.sql("UPDATE items SET v = 'after' WHERE id = 1")
    run_capture(made.pipeline, made.platform)
    applied = run_apply(*arguments, run="a1")
    assert [table.error for table in applied.tables] == [None, None]
    for table in (ITEMS, MORE):
        rows = [tuple(row) for row in source_db.rows(f"SELECT id, v FROM {table}")]
        assert made.lake(table, "id", "v") == sorted(rows, key=repr)

    trail = AuditTrail(open_catalog(made.platform, made.pipeline), made.pipeline)
    assert [(entry.action, entry.outcome) for entry in reversed(trail.entries())] == [
        ("deploy", "done"),
        ("sweep", "done"),
        ("sweep", "begun"),
        ("new epoch", "begun"),
        ("new epoch", "done"),
        ("sweep", "begun"),
        ("sweep", "done"),
    ]
