"""The audit between a swept branch and its publication.

Built-in checks first (row count and sums of integer keys as the source itself computes them at the
cut, keys unique and not null), then the user's suite. One failed check publishes nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from typing import Any, Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from tidegate.config.sinks import Expectation
from tidegate.errors import DataError
from tidegate.names import quote_spark
from tidegate.spark.expectations import Verdict, run_suite

SPARSE: Final = 32
"""Key values per row up to which bitmaps are used: 4 bytes a row at most."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """What the branch must hold, as the source counted it at the cut."""

    rows: int
    key: tuple[str, ...]  # empty for a table without one
    key_sums: Mapping[str, int] = field(default_factory=dict)  # of integer key columns


@dataclass(frozen=True, slots=True)
class Audit:
    """Every check with its outcome."""

    verdicts: tuple[Verdict, ...]

    @property
    def passed(self) -> bool:
        return all(verdict.passed for verdict in self.verdicts)

    @property
    def failures(self) -> tuple[str, ...]:
        return tuple(f"{v.name}: {v.detail}" for v in self.verdicts if not v.passed)


def column(name: str) -> Column:
    """A column by its exact name, whatever characters it holds."""
    return F.col(quote_spark(name))


def audit(frame: DataFrame, wanted: Wanted, expectations: Sequence[Expectation]) -> Audit:
    """Check the rows that a sweep is about to publish."""
    verdicts = _keyed(frame, wanted) if wanted.key else [_count(frame.count(), wanted)]
    # The suite is slow next to the built-in checks: no reason to run it on a table known bad.
    if all(verdict.passed for verdict in verdicts):
        verdicts += run_suite(frame, expectations)
    return Audit(tuple(verdicts))


def _keyed(frame: DataFrame, wanted: Wanted) -> list[Verdict]:
    keys = [column(name) for name in wanted.key]
    no_key = reduce(Column.__or__, (key.isNull() for key in keys))
    sums = [F.sum(column(name).cast("decimal(38,0)")) for name in wanted.key_sums]
    found = frame.agg(
        F.count(F.lit(1)), F.count_if(no_key), F.min(keys[0]), F.max(keys[0]), *sums
    ).collect()[0]
    rows, nulls, low, high = found[:4]
    verdicts = [
        _count(rows, wanted),
        Verdict("keys_not_null", not nulls, f"{nulls} rows have a null key"),
    ]
    if not nulls:
        twice = rows - _distinct(frame, keys, rows, low, high)
        verdicts.append(Verdict("keys_unique", not twice, f"{twice} rows have a key twice"))
    for (name, total), own in zip(wanted.key_sums.items(), found[4:], strict=True):
        same = int(own or 0) == total
        verdicts.append(Verdict(f"key_sum({name})", same, "differs from the source's"))
    return verdicts


def _distinct(frame: DataFrame, keys: Sequence[Column], rows: int, low: Any, high: Any) -> int:
    """How many keys there are. Integer keys without wide gaps are counted in bitmaps, which need
    no shuffle of every key."""
    if len(keys) == 1 and isinstance(low, int) and high - low < rows * SPARSE:
        key = keys[0].cast("bigint")
        buckets = frame.groupBy(F.bitmap_bucket_number(key)).agg(
            F.bitmap_count(F.bitmap_construct_agg(F.bitmap_bit_position(key))).alias("_cdc_n")
        )
        return int(buckets.agg(F.sum("_cdc_n")).collect()[0][0] or 0)
    return frame.select(*keys).distinct().count()


def _count(rows: int, wanted: Wanted) -> Verdict:
    return Verdict(
        "row_count",
        rows == wanted.rows,
        f"the source has {wanted.rows} rows at the cut, the branch {rows}",
    )


def failed(table: str, branch: str, outcome: Audit) -> DataError:
    """What a sweep raises when its audit says no."""
    return DataError(
        "sweep.audit_failed",
        f"{table}: the audit failed, nothing was published: {'; '.join(outcome.failures)}",
        hint=f"look at branch {branch}, mend the source or the expectation, sweep again;"
        " or `tidegate gate open` to let increments flow on without this sweep",
    )
