"""Buckets of keys: stripes of numbers, the same by range and one by one."""

from __future__ import annotations

import pytest

from tidegate.schema.keyspace import BUCKETS, MOST_ROUNDS, Striping

LARGEST = 2**63 - 1


def bucket(number: int, width: int) -> int:
    return number // width % BUCKETS


@pytest.mark.parametrize(
    ("low", "high", "width"), [(1, 5000, None), (-700, 9000, 3), (5, 5, None), (-30, -2, None)]
)
def test_every_number_is_in_the_ranges_of_its_bucket_and_of_no_other(
    low: int, high: int, width: int | None
) -> None:
    stripes = Striping.over("id", low, high, width)
    assert stripes is not None
    part = (0, 1, 2, 17, BUCKETS - 1)
    ranges = stripes.ranges(part)
    assert list(ranges) == sorted(ranges)
    first, last = stripes.ends
    assert first <= low and high <= last
    for number in range(low, high + 1):
        named = any(start <= number <= end for start, end in ranges)
        assert named == (bucket(number, stripes.width) in part)


def test_all_buckets_are_one_range_and_a_sample_is_its_share_of_dense_numbers() -> None:
    stripes = Striping.over("id", 1, 5_000_000)
    assert stripes is not None
    assert len(stripes.ranges(range(BUCKETS))) == 1
    ((start, end),) = stripes.ranges(range(52))
    assert 0.05 < (end - start + 1) / 5_000_000 < 0.052


def test_stripes_stay_while_a_table_grows_and_are_made_anew_when_it_outgrew_them() -> None:
    first = Striping.over("id", 1, 1024)
    assert first is not None and first.width == 1
    assert Striping.over("id", 1, 1024 * MOST_ROUNDS, 1) == Striping("id", 1, 1, 1024 * MOST_ROUNDS)
    grown = Striping.over("id", 1, 1024 * MOST_ROUNDS + 1, 1)
    assert grown is not None and grown.width > 1


def test_numbers_at_the_ends_of_64_bits_have_stripes_unless_they_lie_too_far_apart() -> None:
    near = Striping.over("id", LARGEST - 9, LARGEST)
    assert near is not None
    assert near.ranges(range(BUCKETS))[-1][1] == near.ends[1] == LARGEST
    assert Striping.over("id", -LARGEST - 1, LARGEST) is None
