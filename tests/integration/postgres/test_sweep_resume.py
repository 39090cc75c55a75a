"""Killed sweeps: resumed by chunk, finished, or given up."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support.stack import Stack
from tidegate import faults
from tidegate.jobs.abandon import abandon_sweep
from tidegate.lake import positions
from tidegate.lake.gate import GateState, TableGate

pytestmark = [pytest.mark.spark, pytest.mark.postgres, pytest.mark.faults]

TABLE = "public.orders"
ROWS = 6000


@pytest.fixture
def orders(source_db: Any, stack: Callable[..., Stack]) -> Stack:
    source_db.sql(
        "CREATE TABLE orders (id int PRIMARY KEY, v text, big text)",
        f"INSERT INTO orders SELECT g, 'v' || g, 'b' FROM generate_series(1, {ROWS}) g",
    )
    return stack(TABLE)


def source_rows(made: Stack) -> list[tuple[Any, ...]]:
    rows = made.db.rows("SELECT id, v, big FROM orders")
    return sorted(map(tuple, rows), key=repr)


def change_everywhere(made: Stack) -> None:
    """Changes in chunks that were read before and in chunks that were not."""
    made.db.sql(
        "UPDATE orders SET v = 'changed' WHERE id % 500 = 0",
        "DELETE FROM orders WHERE id % 700 = 0",
        f"INSERT INTO orders VALUES (-5, 'first', 'b'), ({ROWS + 5}, 'last', 'b')",
        f"UPDATE orders SET id = {ROWS} + 100 WHERE id = 3",
        f"UPDATE orders SET id = -100 WHERE id = {ROWS} - 1",
    )


def test_a_sweep_killed_between_chunks_goes_on_where_it_was(orders: Stack, tmp_path: Path) -> None:
    killed = run_elsewhere(orders, tmp_path, "sweep.after_chunk")
    assert killed == faults.EXIT_STATUS
    gate = orders.state(TABLE)
    assert (gate.state, gate.run) == (GateState.SWEEPING, "killed")
    assert orders.table(TABLE).current_snapshot() is None
    change_everywhere(orders)
    result = orders.swept(run="other")
    assert result.resumed
    assert orders.state(TABLE).state is GateState.OPEN
    assert orders.lake(TABLE, "id", "v", "big") == source_rows(orders)
    assert positions.applied(orders.table(TABLE)) == result.position
    cuts = {info.summary.get("tidegate.cut") for info in positions.history(orders.table(TABLE))}
    assert len(cuts - {None}) == 2


def test_rows_that_moved_between_chunks_with_values_nobody_sent_are_read_anew(
    orders: Stack, fault: Callable[[str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The log does not repeat unchanged TOASTed values. One row moves from a chunk that is read
    later into one that was read before: no chunk has it. Another's old key is taken by a new row,
    whose value must not become the other's."""
    orders.db.sql(
        "ALTER TABLE orders ALTER big SET STORAGE EXTERNAL",
        f"UPDATE orders SET big = repeat(id::text, 2000) WHERE id > {ROWS} - 10",
    )
    fault("sweep.after_chunk")
    with pytest.raises(faults.Fault):
        orders.sweep(run="died")
    monkeypatch.delenv("TIDEGATE_FAULT")
    orders.db.sql(
        f"UPDATE orders SET id = -1 WHERE id = {ROWS}",
        f"UPDATE orders SET id = {ROWS} + 50 WHERE id = {ROWS} - 1",
        f"INSERT INTO orders VALUES ({ROWS} - 1, 'newcomer', repeat('another', 2000))",
    )
    result = orders.swept(run="next")
    assert not result.resumed
    assert orders.lake(TABLE, "id", "v", "big") == source_rows(orders)


@pytest.mark.parametrize("point", ["sweep.after_gate", "sweep.after_branch", "sweep.after_audit"])
def test_a_sweep_that_died_elsewhere_is_finished_by_the_next(
    orders: Stack, fault: Callable[[str], None], monkeypatch: pytest.MonkeyPatch, point: str
) -> None:
    fault(point)
    with pytest.raises(faults.Fault):
        orders.sweep(run="died")
    monkeypatch.delenv("TIDEGATE_FAULT")
    assert orders.state(TABLE).run == "died"
    change_everywhere(orders)
    orders.swept(run="next")
    assert orders.lake(TABLE, "id", "v", "big") == source_rows(orders)
    assert orders.state(TABLE).state is GateState.OPEN


def test_a_sweep_that_failed_says_so_and_keeps_the_reason_from_before(orders: Stack) -> None:
    """The source's connections end as the first chunk is read: another attempt may succeed."""
    orders.gate.hold([TABLE], "another key", "test")

    def end_connections(stage: str, *_: object, **__: object) -> None:
        if not stage.startswith("gate"):
            orders.db.sql(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                " WHERE application_name LIKE 'tidegate%' AND datname = current_database()"
            )

    failed = orders.sweep(run="failing", progress=end_connections).tables[0]
    assert failed.error is not None
    state = orders.state(TABLE)
    assert (state.state, state.run) == (GateState.SWEEPING, "failing")
    assert state.failed is not None and failed.error.code in str(state.failed.reason)
    assert state.before is not None and state.before.reason == "another key"
    orders.swept(run="next")
    assert orders.state(TABLE) == TableGate(GateState.OPEN)


def test_a_sweep_that_died_after_publishing_only_opens_its_gate(
    orders: Stack, fault: Callable[[str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    fault("sweep.after_publish")
    with pytest.raises(faults.Fault):
        orders.sweep(run="died")
    monkeypatch.delenv("TIDEGATE_FAULT")
    before = orders.table(TABLE).current_snapshot()
    assert orders.state(TABLE).state is GateState.SWEEPING
    result = orders.swept(run="next")
    assert result.status == "opened"
    assert orders.table(TABLE).current_snapshot() == before
    assert orders.state(TABLE).state is GateState.OPEN
    assert list(orders.table(TABLE).metadata.refs) == ["main"]


def test_an_abandoned_sweep_leaves_no_branch_and_an_open_gate(
    orders: Stack, fault: Callable[[str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    first = orders.swept()
    fault("sweep.after_chunk")
    with pytest.raises(faults.Fault):
        orders.sweep(run="died")
    monkeypatch.delenv("TIDEGATE_FAULT")
    assert "sweep_died" in orders.table(TABLE).metadata.refs
    ended = abandon_sweep(
        orders.spark, orders.pipeline, orders.platform, actor="test", reason="not needed"
    )
    assert ended == (TABLE,)
    assert list(orders.table(TABLE).metadata.refs) == ["main"]
    head = orders.table(TABLE).current_snapshot()
    assert head is not None
    assert head.snapshot_id == first.snapshot_id
    assert orders.state(TABLE).state is GateState.OPEN


def test_without_resume_a_killed_sweep_starts_over(
    orders: Stack, fault: Callable[[str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    fault("sweep.after_chunk")
    with pytest.raises(faults.Fault):
        orders.sweep(run="died")
    monkeypatch.delenv("TIDEGATE_FAULT")
    change_everywhere(orders)
    result = orders.swept(run="next", resume=False)
    assert not result.resumed
    assert orders.lake(TABLE, "id", "v", "big") == source_rows(orders)


def run_elsewhere(made: Stack, directory: Path, point: str) -> int:
    """Sweep in a process of its own, with a JVM of its own, that dies at ``point``."""
    facts = directory / "facts.json"
    source = made.pipeline.source.model_dump(mode="json")
    source["password"] = made.pipeline.source.password.get_secret_value()
    pipeline = made.pipeline.model_dump(mode="json") | {"source": source}
    facts.write_text(json.dumps([pipeline, made.platform.model_dump(mode="json")]))
    script = textwrap.dedent(
        """
        import json, sys
        from tidegate.config.pipeline import PipelineConfig
        from tidegate.config.platform import PlatformConfig
        from tidegate.jobs.sweep import run_sweep
        from tidegate.spark.session import spark_session
        facts = json.load(open(sys.argv[1]))
        pipeline = PipelineConfig.model_validate(facts[0])
        platform = PlatformConfig.model_validate(facts[1])
        spark = spark_session(platform, pipeline)
        run_sweep(spark, pipeline, platform, run="killed")
        """
    )
    paths = [path for path in sys.path if path]
    environment = {
        **os.environ,
        "TIDEGATE_FAULT": point,
        "PYTHONPATH": os.pathsep.join(paths),
    }
    done = subprocess.run(
        [sys.executable, "-c", script, str(facts)], env=environment, check=False, timeout=400
    )
    return done.returncode
