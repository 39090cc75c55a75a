"""Coverage: what comparisons of parts of a table add up to."""

from __future__ import annotations

import itertools
import json
from datetime import UTC, datetime

from tidegate.envelope.position import boundary
from tidegate.lake.coverage import Coverage
from tidegate.schema.keyspace import BUCKETS, PLACES, bucket_arcs, place_arcs

AT = datetime(2026, 1, 2, tzinfo=UTC)
EVERY = range(BUCKETS)


def sampled(coverage: Coverage, share: float, lsn: int) -> tuple[Coverage, tuple[int, ...]]:
    buckets = coverage.next(share)
    return coverage.after(buckets, (), boundary("e1", lsn), AT), buckets


def test_samples_rotate_until_everything_is_covered_and_then_begin_with_the_oldest() -> None:
    coverage, taken, shares = Coverage(), [], []
    for run in range(20):
        coverage, buckets = sampled(coverage, 0.05, run + 1)
        taken.append(set(buckets))
        shares.append(coverage.percent)
    assert set().union(*taken) == set(EVERY)
    assert all(not one & other for one, other in itertools.pairwise(taken))
    assert shares == sorted(shares) and shares[0] < 5.2 and shares[-1] == 100.0
    assert coverage.oldest is not None and coverage.newest is not None
    assert coverage.oldest.position == str(boundary("e1", 1))
    assert coverage.newest.position == str(boundary("e1", 20))
    assert set(coverage.next(0.05)) <= taken[0] | taken[1]


def test_the_rotation_does_not_depend_on_clock_or_position() -> None:
    coverage, first = sampled(Coverage(), 0.5, 7)
    coverage, second = sampled(coverage, 0.5, 7)
    assert not set(first) & set(second)
    _, third = sampled(coverage, 0.5, 7)
    assert third == first


def test_a_difference_takes_its_bucket_out_until_it_is_found_equal() -> None:
    coverage = Coverage().after(EVERY, (), boundary("e1", 1), AT)
    coverage = coverage.after(EVERY, (3, 5), boundary("e1", 2), AT)
    assert (coverage.percent, coverage.differing) == (99.8, {3, 5})
    assert {3, 5} <= set(coverage.next(0.002))  # what is not proven comes first
    coverage = coverage.after((3,), (), boundary("e1", 3), AT)
    assert coverage.differing == {5}
    assert coverage.runs == 2


def test_rows_left_out_are_not_proven_and_do_not_stop_the_rotation() -> None:
    waiting = frozenset(range(100))
    coverage = Coverage().after(EVERY, (), boundary("e1", 1), AT)
    taken: list[set[int]] = []
    for run in range(20):
        buckets = coverage.next(0.05)
        coverage = coverage.after(buckets, (), boundary("e1", run + 2), AT, waiting)
        taken.append(set(buckets))
    assert set().union(*taken) == set(EVERY)
    assert (coverage.differing, set(coverage.proven)) == (set(), set(EVERY) - waiting)
    again = coverage.after(EVERY, (), boundary("e1", 30), AT)
    assert (again.percent, again.left_out) == (100.0, {})


def test_only_what_covers_all_keys_can_be_told_in_other_buckets() -> None:
    coverage, _ = sampled(Coverage(), 0.5, 1)
    assert coverage.under(None) is coverage
    assert coverage.under(7) == Coverage(width=7)
    whole, _ = sampled(coverage, 0.5, 2)
    told = whole.under(7)
    assert (told.percent, told.width, told.oldest) == (100.0, 7, whole.oldest)
    assert told.newest == whole.oldest


def test_coverage_is_the_same_after_it_was_stored() -> None:
    coverage, _ = sampled(Coverage(), 0.3, 1)
    coverage, _ = sampled(coverage, 0.3, 2)
    coverage = coverage.after((0, 2, 4), (2,), boundary("e1", 3), AT, (4, 9)).under(None)
    assert coverage.left_out == {4: 3, 9: 1}
    text = json.dumps(coverage.to_dict())
    assert Coverage.from_dict(json.loads(text)) == coverage
    assert len(text) < 1000


def test_arcs_are_merged_and_cover_what_they_name() -> None:
    assert bucket_arcs(EVERY) == ((0, PLACES),)
    assert bucket_arcs((1, 0, 3)) == ((0, 128), (192, 256))
    assert place_arcs((7, 5, 6, 9)) == ((5, 8), (9, 10))
