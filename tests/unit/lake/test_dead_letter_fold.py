"""Which records count, and what they leave waiting."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from tidegate.envelope.position import Position, lsn_place
from tidegate.lake.dead_letter_fold import Lineage, Record, fold, open_batches, prunable

BEGAN = datetime(2026, 1, 1, tzinfo=UTC)


def record(seq: int, kind: str, event: str | None = None, batch: str | None = None) -> Record:
    known = Record(seq, BEGAN + timedelta(minutes=seq), f"run-{seq}", kind, "public.t", batch)
    if kind == "parked" and event is not None:
        place = lsn_place(int(event), 1)
        known = replace(known, position=Position("e", place), key=(event,), new_key=(event,))
    return replace(known, event_id=event)


def settled(seq: int, batch: str, snapshot: int) -> Record:
    return replace(record(seq, "settled", batch=batch), snapshot_id=snapshot)


def ids(records: list[Record], lineage: Lineage) -> list[str]:
    return [letter.event_id for letter in fold(records, lineage)]


def test_a_letter_counts_once_its_batch_is_part_of_main() -> None:
    records = [record(1, "parked", "7", "A")]
    assert ids(records, Lineage()) == []
    assert ids(records, Lineage({"A": 10}, frozenset({10}))) == ["7"]


def test_letters_come_in_log_order() -> None:
    records = [record(1, "parked", "9", "A"), record(2, "parked", "7", "A")]
    assert ids(records, Lineage({"A": 10}, frozenset({10}))) == ["7", "9"]


def test_a_resolution_ends_with_the_snapshot_that_a_rollback_takes_back() -> None:
    records = [
        record(1, "parked", "7", "A"),
        record(2, "applied", "7", "B"),
        settled(3, "A", 10),
        settled(4, "B", 11),
    ]
    assert ids(records, Lineage({"A": 10, "B": 11}, frozenset({10, 11}))) == []
    # Rolled back to 10; 11 is still there, on no branch.
    assert ids(records, Lineage({"A": 10}, frozenset({10, 11}))) == ["7"]


def test_parking_ends_with_a_rollback_too_so_that_the_replay_decides() -> None:
    records = [record(1, "parked", "7", "A"), settled(2, "A", 10)]
    assert ids(records, Lineage({}, frozenset({9, 10}))) == []


def test_settled_records_outlive_their_snapshot() -> None:
    records = [record(1, "parked", "7", "A"), settled(2, "A", 10)]
    assert ids(records, Lineage({}, frozenset({12}))) == ["7"]
    assert ids([*records, record(3, "void", batch="A")], Lineage({}, frozenset({12}))) == []


def test_a_sweep_supersedes_what_was_parked_before_it_and_nothing_later() -> None:
    records = [
        record(1, "parked", "7", "A"),
        record(2, "superseded", batch="S"),
        record(3, "parked", "9", "B"),
    ]
    assert ids(records, Lineage({"A": 1, "B": 3}, frozenset({1, 3}))) == ["7", "9"]
    assert ids(records, Lineage({"A": 1, "S": 2, "B": 3}, frozenset({1, 2, 3}))) == ["9"]


def test_discarding_counts_at_once_and_a_new_attempt_is_counted() -> None:
    at = Lineage({"A": 1}, frozenset({1}))
    records = [record(1, "parked", "7", "A"), record(2, "tried", "7")]
    (letter,) = fold(records, at)
    assert (letter.attempts, letter.first_seen, letter.last_seen) == (
        2,
        BEGAN + timedelta(minutes=1),
        BEGAN + timedelta(minutes=2),
    )
    assert ids([*records, record(3, "discarded", "7")], at) == []


def test_open_batches_are_those_nothing_is_noted_of_and_those_rolled_back() -> None:
    records = [
        record(1, "parked", "1", "A"),
        record(2, "parked", "2", "B"),
        settled(3, "B", 11),
        record(4, "parked", "3", "C"),
        record(5, "void", batch="C"),
        record(6, "parked", "4", "D"),
        settled(7, "D", 13),
    ]
    at = Lineage({"A": 10, "B": 11}, frozenset({10, 11, 13}))
    assert open_batches(records, at) == ["A", "D"]
    # D's snapshot expired while it was part of main: nothing is open about it.
    assert open_batches(records, Lineage({"A": 10, "B": 11}, frozenset({10, 11}))) == ["A"]


def test_records_are_dropped_only_when_no_rollback_can_need_them() -> None:
    records = [
        record(1, "parked", "7", "A"),
        settled(2, "A", 10),
        record(3, "applied", "7", "B"),
        settled(4, "B", 11),
        record(5, "parked", "8", "X"),
        record(6, "void", batch="X"),
        record(7, "parked", "9", "A"),
    ]
    both = Lineage({"A": 10, "B": 11}, frozenset({10, 11}))
    assert prunable(records, {"public.t": both}) == {5, 6}
    # 10 and 11 expired: letter 7 is over, letter 9 of batch A still waits.
    later = Lineage({}, frozenset({12}))
    assert prunable(records, {"public.t": later}) == {1, 3, 4, 5, 6}
    left = [r for r in records if r.seq not in prunable(records, {"public.t": later})]
    assert ids(left, later) == ids(records, later) == ["9"]


def test_a_superseding_sweep_that_expired_takes_everything_before_it_along() -> None:
    records = [
        record(1, "parked", "7", "A"),
        settled(2, "A", 10),
        record(3, "superseded", batch="S"),
        settled(4, "S", 11),
    ]
    assert prunable(records, {"public.t": Lineage({}, frozenset({12}))}) == {1, 2, 3, 4}
