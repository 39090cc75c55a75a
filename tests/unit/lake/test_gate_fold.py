"""The gate's fold: whatever is appended in whatever order, a table has at most one owner."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tidegate.errors import FatalError
from tidegate.lake.gate_fold import (
    APPLY,
    SWEEP,
    Event,
    EventKind,
    Fold,
    GateState,
    replay,
    step,
)

AT = datetime(2026, 1, 1, tzinfo=UTC)
TABLES = ("public.a", "public.b", "public.c")
TOKENS = ("t1", "t2", "t3", "t4")
RUNS = ("r1", "r2")


def events(*given_events: Event) -> list[Event]:
    return [replace(event, seq=i) for i, event in enumerate(given_events, start=1)]


def acquire(token: str, purpose: str, *tables: str, run: str = "r1", evicts=()) -> Event:
    return Event(
        EventKind.ACQUIRE,
        AT,
        tables=tables,
        run=run,
        token=token,
        purpose=purpose,
        owner="host:1:1",
        evicts=tuple(evicts),
    )


def sweep(run: str, *tables: str, floor: str | None = None) -> Event:
    return Event(EventKind.SWEEP, AT, tables=tables, run=run, actor="me", floor=floor)


def hold(*tables: str) -> Event:
    return Event(EventKind.HOLD, AT, tables=tables, reason="why", actor="me")


@st.composite
def any_event(draw: st.DrawFn) -> Event:
    return Event(
        kind=draw(st.sampled_from([k for k in EventKind if k is not EventKind.CHECKPOINT])),
        at=AT,
        tables=tuple(draw(st.sets(st.sampled_from(TABLES), min_size=1))),
        run=draw(st.sampled_from(RUNS)),
        token=draw(st.sampled_from(TOKENS)),
        renewal=draw(st.integers(0, 3)),
        purpose=draw(st.sampled_from([APPLY, SWEEP, "maintain"])),
        owner="host:1:1",
        reason="why",
        actor="me",
        outcome=draw(st.sampled_from(["published", "failed"])),
        evicts=tuple(
            draw(
                st.lists(
                    st.tuples(st.sampled_from(TOKENS), st.integers(0, 2)),
                    max_size=2,
                    unique_by=lambda e: e[0],
                )
            )
        ),
    )


@settings(max_examples=250, deadline=None)
@given(st.lists(any_event(), max_size=40))
def test_no_interleaving_gives_a_table_two_live_owners(raw: list[Event]) -> None:
    fold = Fold()
    for event in events(*raw):
        before = fold
        fold = step(fold, event)
        for table in TABLES:
            owners = fold.leases_on([table])
            assert len(owners) <= 1
            # Who owned a table keeps it unless it released, or was evicted or abandoned by name.
            was = before.leases_on([table])
            if was and owners and was[0].token != owners[0].token:
                assert event.kind is EventKind.ACQUIRE
                assert (was[0].token, was[0].renewal) in event.evicts
            if owners and owners[0].purpose == SWEEP:
                assert not was or was[0].token == owners[0].token or event.evicts


@settings(max_examples=120, deadline=None)
@given(st.lists(any_event(), max_size=30), st.integers(0, 30))
def test_a_checkpoint_anywhere_leaves_the_same_state(raw: list[Event], where: int) -> None:
    plain = replay(events(*raw))
    head, tail = raw[:where], raw[where:]
    fold = replay(events(*head))
    mark = Event(EventKind.CHECKPOINT, AT, seq=fold.seq + 1, state=fold.to_json())
    rest = [replace(e, seq=mark.seq + i) for i, e in enumerate(tail, start=1)]
    folded = replay([*events(*head), mark, *rest])
    assert (folded.tables, folded.leases) == (plain.tables, plain.leases)


def test_an_apply_needs_open_gates_and_gets_all_of_its_tables_or_none() -> None:
    fold = replay(events(hold("public.a"), acquire("t1", APPLY, "public.a", "public.b")))
    assert not fold.leases
    fold = replay(events(hold("public.a"), acquire("t1", APPLY, "public.b")))
    assert fold.leases["t1"].tables == ("public.b",)


def test_a_sweep_lease_needs_its_own_runs_sweep() -> None:
    assert not replay(events(acquire("t1", SWEEP, "public.a"))).leases
    other = events(sweep("r2", "public.a"), acquire("t1", SWEEP, "public.a", run="r1"))
    assert not replay(other).leases
    own = events(sweep("r1", "public.a"), acquire("t1", SWEEP, "public.a", run="r1"))
    assert "t1" in replay(own).leases


def test_maintenance_may_work_on_a_held_table_but_not_on_a_swept_one() -> None:
    assert replay(events(hold("public.a"), acquire("t1", "maintain", "public.a"))).leases
    swept = events(sweep("r1", "public.a"), acquire("t1", "maintain", "public.a"))
    assert not replay(swept).leases


def test_a_takeover_counts_only_if_no_renewal_came_in_between() -> None:
    renew = Event(EventKind.RENEW, AT, run="r1", token="t1", renewal=1)
    taken = acquire("t2", APPLY, "public.a", run="r2", evicts=[("t1", 0)])
    silent = replay(events(acquire("t1", APPLY, "public.a"), taken))
    assert set(silent.leases) == {"t2"}
    alive = replay(events(acquire("t1", APPLY, "public.a"), renew, taken))
    assert set(alive.leases) == {"t1"}


def test_two_sweeps_of_one_table_do_not_both_begin() -> None:
    fold = replay(events(sweep("r1", "public.a"), sweep("r2", "public.a", "public.b")))
    assert fold.tables["public.a"].run == "r1"
    assert fold.state("public.b") is GateState.OPEN


def test_a_resumed_sweep_keeps_its_first_floor() -> None:
    fold = replay(events(sweep("r1", "public.a", floor="f1"), sweep("r1", "public.a", floor="f2")))
    assert fold.tables["public.a"].floor == "f1"


@pytest.mark.parametrize(
    ("outcome", "state"), [("published", GateState.OPEN), ("failed", GateState.HELD)]
)
def test_a_sweep_of_a_held_table_opens_it_only_by_publishing(
    outcome: str, state: GateState
) -> None:
    end = Event(EventKind.END, AT, tables=("public.a",), run="r1", outcome=outcome)
    fold = replay(events(hold("public.a"), sweep("r1", "public.a"), end))
    assert fold.state("public.a") is state
    if state is GateState.HELD:
        assert fold.tables["public.a"].reason == "why"


def test_hold_and_open_do_not_touch_a_sweep() -> None:
    opened = Event(EventKind.OPEN, AT, tables=("public.a",))
    fold = replay(events(sweep("r1", "public.a"), hold("public.a"), opened))
    assert fold.sweeping("public.a", "r1")


def test_abandoning_takes_the_table_out_of_a_living_sweepers_lease() -> None:
    tables = ("public.a", "public.b")
    abandon = Event(EventKind.ABANDON, AT, tables=("public.a",), actor="me")
    fold = replay(events(sweep("r1", *tables), acquire("t1", SWEEP, *tables), abandon))
    assert fold.state("public.a") is GateState.OPEN
    assert fold.leases["t1"].tables == ("public.b",)


def test_a_gap_in_the_journal_is_an_error() -> None:
    with pytest.raises(FatalError) as caught:
        step(Fold(seq=3), replace(hold("public.a"), seq=5))
    assert caught.value.code == "gate.journal_broken"


def test_a_checkpoint_of_the_first_version_is_read() -> None:
    before = ["why", "me", AT.isoformat()]
    table = {"state": "sweeping", "run": "r1", "reason": None, "actor": "me"}
    table |= {"since": AT.isoformat(), "floor": None, "held_before": before}
    text = json.dumps({"version": 1, "tables": {"public.a": table}, "leases": []})
    fold = replay([Event(EventKind.CHECKPOINT, AT, seq=7, state=text)])
    state = fold.tables["public.a"]
    assert (state.held_before, state.failed, state.earlier) == (tuple(before), None, None)
    assert Fold.from_json(fold.seq, fold.to_json()) == fold


def test_a_checkpoint_of_another_version_is_refused() -> None:
    mark = Event(EventKind.CHECKPOINT, AT, seq=1, state='{"version": 99}')
    with pytest.raises(FatalError) as caught:
        replay([mark])
    assert caught.value.code == "gate.format_unknown"
