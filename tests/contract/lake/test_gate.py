"""The gate with real processes: leases, takeover, durable states, a journal that stays small."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyiceberg.catalog import Catalog

from tests.support.lake import LEASE_SECONDS
from tidegate.config.pipeline import PipelineConfig
from tidegate.config.platform import PlatformConfig
from tidegate.control.gates import show
from tidegate.envelope.position import boundary
from tidegate.errors import ConfigError, HeldError, RetriableError
from tidegate.lake.catalog import open_catalog
from tidegate.lake.change_log import ChangeLog
from tidegate.lake.gate import Gate, GateState
from tidegate.lake.gate_fold import EventKind
from tidegate.lake.gate_journal import CHECKPOINT_EVENTS

ORDERS, CUSTOMERS = "public.orders", "public.customers"


@pytest.fixture
def gate(catalog: Catalog, pipeline: PipelineConfig, platform: PlatformConfig) -> Gate:
    return Gate(catalog, pipeline, platform.gate)


@pytest.fixture
def rival(platform: PlatformConfig, pipeline: PipelineConfig) -> Iterator[Gate]:
    """Another process's view, as far as one process can have one."""
    with open_catalog(platform, pipeline) as catalog:
        yield Gate(catalog, pipeline, platform.gate)


HOLDER = """
import json, sys
from tidegate.config.pipeline import PipelineConfig
from tidegate.config.platform import PlatformConfig
from tidegate.lake.catalog import open_catalog
from tidegate.lake.gate import Gate

platform = PlatformConfig.model_validate_json(sys.argv[1])
pipeline = PipelineConfig.model_validate(json.loads(sys.argv[2]))
gate = Gate(open_catalog(platform, pipeline), pipeline, platform.gate)
if sys.argv[3] == "sweep":
    gate.begin_sweep("other", ["public.orders"], "test")
lease = gate.lease("other", ["public.orders"], sys.argv[3])
print(lease.token, flush=True)
sys.stdin.readline()
try:
    lease.check()
    print("held", flush=True)
except Exception as error:
    print(error.code, flush=True)
"""


@pytest.fixture
def holder(platform: PlatformConfig, pipeline: PipelineConfig) -> Iterator[object]:
    """Starts a process that takes a lease on orders."""
    started: list[subprocess.Popen[str]] = []

    def start(purpose: str) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [
                sys.executable,
                "-c",
                HOLDER,
                platform.model_dump_json(),
                json.dumps(
                    {
                        "pipeline_id": "shop",
                        "source": {
                            "password": "unused",
                            "database": "shop",
                            "tables": [CUSTOMERS, ORDERS],
                        },
                    }
                ),
                purpose,
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": "include"},
        )
        started.append(process)
        assert process.stdout is not None
        assert process.stdout.readline().strip()
        return process

    yield start
    for process in started:
        process.kill()
        process.communicate()


def test_without_a_journal_every_gate_is_open(gate: Gate) -> None:
    assert {name: g.state for name, g in gate.states().items()} == {
        CUSTOMERS: GateState.OPEN,
        ORDERS: GateState.OPEN,
    }
    assert gate.timeline() == []


def test_a_hold_lasts_until_someone_opens(gate: Gate, rival: Gate) -> None:
    gate.hold([ORDERS], "schema changed", "ann")
    held = rival.states([ORDERS])[ORDERS]
    assert (held.state, held.reason, held.actor) == (GateState.HELD, "schema changed", "ann")
    with pytest.raises(HeldError) as caught:
        rival.lease("r1", [ORDERS, CUSTOMERS], "apply", wait_seconds=0)
    assert caught.value.code == "gate.closed"
    rival.open([ORDERS], "fixed", "bob")
    assert gate.states()[ORDERS].state is GateState.OPEN


def test_an_unknown_table_is_refused_with_the_known_ones(gate: Gate) -> None:
    with pytest.raises(ConfigError, match=r"public\.ordres"):
        gate.hold(["public.ordres"], "why", "me")


def test_one_writer_per_table_others_wait(gate: Gate, rival: Gate) -> None:
    with gate.lease("r1", [ORDERS], "apply") as lease:
        lease.check()
        assert rival.states()[ORDERS].lease is not None
        with pytest.raises(HeldError) as caught:
            rival.lease("r2", [ORDERS], "maintain", wait_seconds=0)
        assert caught.value.code == "gate.busy"
        with rival.lease("r3", [CUSTOMERS], "apply", wait_seconds=0):
            pass
    with rival.lease("r2", [ORDERS], "maintain", wait_seconds=0) as second:
        second.check()
    assert rival.states()[ORDERS].lease is None


def test_a_lease_is_renewed_while_its_process_lives(gate: Gate, rival: Gate) -> None:
    with gate.lease("r1", [ORDERS], "apply") as lease:
        with pytest.raises(HeldError):
            rival.lease("r2", [ORDERS], "apply", wait_seconds=2.2 * LEASE_SECONDS)
        lease.check()


def test_a_lease_that_cannot_be_released_does_not_hide_the_works_own_error(
    gate: Gate, platform: PlatformConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    def locked() -> None:
        raise RetriableError("lake.catalog_locked", "locked", hint="wait")

    lease = gate.lease("r1", [ORDERS], "apply")
    with pytest.raises(ValueError, match="the work"), lease:
        monkeypatch.setattr(lease, "release", locked)
        raise ValueError("the work")
    monkeypatch.undo()
    lease.release()


def test_a_killed_owner_on_this_host_is_taken_over_at_once(gate: Gate, holder) -> None:  # type: ignore[no-untyped-def]
    process = holder("apply")
    with pytest.raises(HeldError):
        gate.lease("r1", [ORDERS], "apply", wait_seconds=0)
    process.kill()
    process.wait()
    began = time.monotonic()
    with gate.lease("r1", [ORDERS], "apply", wait_seconds=0) as lease:
        lease.check()
    assert time.monotonic() - began < LEASE_SECONDS


def test_a_paused_owner_is_taken_over_after_the_lease_and_learns_it(gate: Gate, holder) -> None:  # type: ignore[no-untyped-def]
    process = holder("apply")
    os.kill(process.pid, signal.SIGSTOP)
    began = time.monotonic()
    with gate.lease("r1", [ORDERS], "apply") as lease:
        assert time.monotonic() - began >= LEASE_SECONDS
        os.kill(process.pid, signal.SIGCONT)
        answer, _ = process.communicate("\n", timeout=60)
        assert answer.strip() == "gate.lease_lost"
        lease.check()


def test_a_sweep_outlives_its_process_until_resumed_or_abandoned(gate: Gate, holder) -> None:  # type: ignore[no-untyped-def]
    process = holder("sweep")
    process.kill()
    process.wait()
    assert gate.states()[ORDERS].state is GateState.SWEEPING
    for purpose in ("apply", "maintain"):
        with pytest.raises(HeldError) as caught:
            gate.lease("r1", [ORDERS], purpose, wait_seconds=0)
        assert caught.value.code == "gate.closed"
    with pytest.raises(HeldError) as caught:
        gate.begin_sweep("r1", [ORDERS], "me", wait_seconds=0)
    assert caught.value.code == "gate.sweeping"
    with pytest.raises(HeldError):
        gate.open([ORDERS], "please", "me")
    # Resumed by a new process under the same run:
    gate.begin_sweep("other", [ORDERS], "me", wait_seconds=0)
    with gate.lease("other", [ORDERS], "sweep", wait_seconds=0) as lease:
        lease.check()
    gate.end_sweep("other", [ORDERS], "published")
    assert gate.states()[ORDERS].state is GateState.OPEN


def test_an_abandoned_sweeper_that_lives_on_cannot_publish(gate: Gate, holder) -> None:  # type: ignore[no-untyped-def]
    process = holder("sweep")
    gate.open([ORDERS], "took too long", "ann", abandon=True)
    assert gate.states()[ORDERS].state is GateState.OPEN
    answer, _ = process.communicate("\n", timeout=60)
    assert answer.strip() == "gate.lease_lost"


def test_abandon_by_run_names_its_tables(gate: Gate) -> None:
    gate.begin_sweep("r1", [ORDERS, CUSTOMERS], "me")
    assert set(gate.abandon("r1", "ann", "no longer wanted")) == {ORDERS, CUSTOMERS}
    assert gate.abandon("r1", "ann", "again") == ()


def test_begin_sweep_closes_first_and_then_waits_for_the_apply_in_flight(
    gate: Gate, rival: Gate
) -> None:
    lease = gate.lease("r1", [ORDERS], "apply")
    try:
        with pytest.raises(HeldError) as caught:
            rival.begin_sweep("r2", [ORDERS], "me", wait_seconds=0.1)
        assert caught.value.code == "gate.busy"
        assert gate.states()[ORDERS].state is GateState.OPEN
    finally:
        lease.release()
    rival.begin_sweep("r2", [ORDERS], "me", wait_seconds=0)
    assert gate.states()[ORDERS].run == "r2"


def test_a_sweep_remembers_what_was_captured_when_it_began(
    catalog: Catalog, pipeline: PipelineConfig, gate: Gate
) -> None:
    log = ChangeLog(catalog, pipeline)
    log.create(boundary("e1", 10))
    gate.begin_sweep("r1", [ORDERS], "me")
    log.commit_idle(boundary("e1", 50))
    gate.begin_sweep("r1", [ORDERS], "me")
    assert gate.states()[ORDERS].floor == boundary("e1", 10)


def test_a_failed_sweep_of_a_held_table_leaves_it_held(gate: Gate) -> None:
    gate.hold([ORDERS], "type changed", "apply")
    gate.begin_sweep("r1", [ORDERS], "me")
    gate.end_sweep("r1", [ORDERS], "failed")
    assert gate.states()[ORDERS].reason == "type changed"


def test_a_sweep_that_failed_says_so_until_it_goes_on_or_is_given_up(
    gate: Gate, rival: Gate, platform: PlatformConfig, pipeline: PipelineConfig
) -> None:
    gate.hold([ORDERS], "another key", "apply")
    gate.begin_sweep("r1", [ORDERS], "me", reason="swept by hand")
    gate.fail_sweep("r1", [ORDERS, CUSTOMERS], "the source went away")
    gate.fail_sweep("r2", [ORDERS], "not its sweep")
    for _ in range(2):
        shown = show(pipeline, platform, [ORDERS]).gates[0]
        assert (shown.state, shown.reason) == ("sweeping", "swept by hand")
        assert shown.failed is not None and shown.failed.reason == "the source went away"
        assert shown.failed.resume.startswith("tidegate sweep ")
        assert shown.failed.abandon.endswith(f"--table {ORDERS} --abandon")
        assert shown.before is not None and shown.before.reason == "another key"
        gate.checkpoint()
    assert gate.states()[CUSTOMERS].failed is None
    rival.begin_sweep("r1", [ORDERS], "me")  # the next attempt
    assert gate.states()[ORDERS].failed is None
    gate.fail_sweep("r1", [ORDERS], "again")
    gate.abandon([ORDERS], "me", "no use")
    state = gate.states()[ORDERS]
    assert (state.state, state.reason, state.failed) == (GateState.HELD, "another key", None)


def test_a_hold_on_top_of_a_hold_keeps_the_first_reason(gate: Gate) -> None:
    gate.hold([ORDERS], "another key", "apply")
    for reason in ("the audit failed", "the audit failed", "permission denied"):
        gate.begin_sweep("r1", [ORDERS], "me")
        gate.end_sweep("r1", [ORDERS], "sweep.audit_failed")
        gate.hold([ORDERS], reason, "sweep")
        state = gate.states()[ORDERS]
        assert state.reason == reason
        assert state.before is not None and state.before.reason == "another key"
    gate.open([ORDERS], "mended", "me")
    gate.hold([ORDERS], "later", "me")
    assert gate.states()[ORDERS].before is None


def test_the_timeline_tells_what_happened_without_renewals(gate: Gate) -> None:
    with gate.lease("r1", [ORDERS], "apply"):
        gate.hold([CUSTOMERS], "why", "ann")
    kinds = [event.kind for event in gate.timeline()]
    assert kinds == [EventKind.ACQUIRE, EventKind.HOLD, EventKind.RELEASE]
    assert [event.kind for event in gate.timeline(limit=1)] == [EventKind.RELEASE]


def journal_files(catalog: Catalog, gate: Gate) -> tuple[int, int]:
    table = catalog.load_table(gate.identifier)
    live = len(list(table.scan().plan_files()))
    where = Path(table.location().removeprefix("file://"))
    return live, sum(1 for path in where.rglob("*") if path.is_file())


def test_the_journal_stays_small_over_hundreds_of_events(
    catalog: Catalog,
    pipeline: PipelineConfig,
    platform: PlatformConfig,
    gate: Gate,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from datetime import timedelta

    from tidegate.lake import ledger

    monkeypatch.setattr(ledger, "READ_GRACE", timedelta(0))
    gate.begin_sweep("r0", [CUSTOMERS], "me")
    for number in range(120):
        gate.hold([ORDERS], f"reason {number}", "me")
        gate.open([ORDERS], "again", "me")
    gate.hold([ORDERS], "the last", "me")
    live, _ = journal_files(catalog, gate)
    assert live <= CHECKPOINT_EVENTS + 1
    gate.checkpoint()
    live, files = journal_files(catalog, gate)
    assert live == 1
    assert files < 60
    fresh = Gate(catalog, pipeline, platform.gate)
    states = fresh.states()
    assert states[ORDERS].reason == "the last"
    assert states[CUSTOMERS].run == "r0"
    assert len(fresh.timeline(limit=10_000)) == 242
    # An instance whose view is older than the checkpoint goes on from it.
    gate.open([ORDERS], "done", "me")
    assert fresh.states()[ORDERS].state is GateState.OPEN


def test_an_old_view_survives_a_checkpoint_by_another(gate: Gate, rival: Gate) -> None:
    gate.hold([ORDERS], "one", "me")
    assert rival.states()[ORDERS].reason == "one"
    gate.hold([ORDERS], "two", "me")
    gate.checkpoint()
    gate.hold([ORDERS], "three", "me")
    assert rival.states()[ORDERS].reason == "three"
    rival.open([ORDERS], "fine", "me")
    assert gate.states()[ORDERS].state is GateState.OPEN


def test_a_dropped_journal_starts_over(gate: Gate, rival: Gate) -> None:
    gate.hold([ORDERS], "one", "me")
    assert rival.states()[ORDERS].state is GateState.HELD
    assert gate.drop()
    assert rival.states()[ORDERS].state is GateState.OPEN
    gate.hold([CUSTOMERS], "two", "me")
    assert rival.states()[CUSTOMERS].state is GateState.HELD
    assert rival.states()[ORDERS].state is GateState.OPEN
