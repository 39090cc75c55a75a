"""The audit between a swept branch and its publication.

Built-in checks first (row count and sums of integer keys as the source itself computes them at the
cut, keys unique and not null), then the user's suite. One failed check publishes nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from tidegate.config.sinks import Expectation
from tidegate.connectors.cut import KeyFacts
from tidegate.errors import DataError
from tidegate.names import quote_spark
from tidegate.spark.expectations import Verdict, run_suite

_ROW_COUNT: Final = "row_count"
SPARSE: Final = 32
"""Key values per row up to which bitmaps are used: 4 bytes a row at most."""
SMALL: Final = 100_000
"""Rows up to which shuffling costs more than one task's counting."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """What the branch must hold, as the source counted it at the cut."""

    rows: int
    key: tuple[str, ...]  # empty for a table without one
    keys: Mapping[str, KeyFacts] = field(default_factory=dict)  # integer key columns


@dataclass(frozen=True, slots=True)
class Audit:
    """Every check with its outcome."""

    verdicts: tuple[Verdict, ...]

    @property
    def passed(self) -> bool:
        return all(verdict.passed for verdict in self.verdicts)

    @property
    def complete(self) -> bool:
        """Whether the number of rows is right."""
        return all(verdict.passed for verdict in self.verdicts if verdict.name == _ROW_COUNT)

    @property
    def failures(self) -> tuple[str, ...]:
        return tuple(f"{v.name}: {v.detail}" for v in self.verdicts if not v.passed)


def column(name: str) -> Column:
    """A column by its exact name, whatever characters it holds."""
    return F.col(quote_spark(name))


def audit(frame: DataFrame, wanted: Wanted, expectations: Sequence[Expectation]) -> Audit:
    """Check the rows that a sweep is about to publish."""
    if wanted.rows <= SMALL:
        frame = frame.coalesce(1)
    if wanted.key and wanted.rows:
        verdicts = _keyed(frame, wanted)
    else:
        verdicts = [_count(frame.count(), wanted)]
    # The suite is slow next to the built-in checks: no reason to run it on a table known bad.
    if all(verdict.passed for verdict in verdicts):
        verdicts += run_suite(frame, expectations)
    return Audit(tuple(verdicts))


def _keyed(frame: DataFrame, wanted: Wanted) -> list[Verdict]:
    found = (_by_bitmap if _dense(wanted) else _by_shuffle)(frame, wanted)
    verdicts = [
        _count(found.rows, wanted),
        Verdict("keys_not_null", not found.nulls, f"{found.nulls} rows have a null key"),
    ]
    if not found.nulls:
        twice = found.rows - found.distinct
        verdicts.append(Verdict("keys_unique", not twice, f"{twice} rows have a key twice"))
    for (name, facts), own in zip(wanted.keys.items(), found.totals, strict=True):
        same = int(own or 0) == facts.total
        verdicts.append(Verdict(f"key_sum({name})", same, "differs from the source's"))
    return verdicts


@dataclass(frozen=True, slots=True)
class _Found:
    """The keys of the branch in numbers."""

    rows: int
    nulls: int
    distinct: int
    totals: tuple[int | None, ...]


def _dense(wanted: Wanted) -> bool:
    """Whether the key is one integer column without wide gaps, by the source's word."""
    facts = wanted.keys.get(wanted.key[0]) if len(wanted.key) == 1 else None
    if facts is None or facts.low is None or facts.high is None:
        return False
    return facts.high - facts.low < wanted.rows * SPARSE


def _by_bitmap(frame: DataFrame, wanted: Wanted) -> _Found:
    """One pass, and no shuffle of every key: 64 keys share a word, one bit each.

    Spark's own bitmap aggregates sort their input; these run as compiled hash aggregates, twice as
    fast. Sums go by halves of the key, which cannot overflow within a word's rows.
    """
    key = column(wanted.key[0]).cast("bigint")
    bit = F.call_function("shiftleft", F.lit(1).cast("bigint"), key.bitwiseAND(63).cast("int"))
    words = frame.groupBy(F.shiftright(key, 6).alias("_cdc_word")).agg(
        F.count(F.lit(1)).alias("_cdc_rows"),
        F.count(key).alias("_cdc_keys"),
        F.bit_or(bit).alias("_cdc_bits"),
        F.sum(F.shiftright(key, 32)).alias("_cdc_high"),
        F.sum(key.bitwiseAND(0xFFFFFFFF)).alias("_cdc_low"),
    )
    total = F.col("_cdc_high").cast("decimal(38,0)") * (1 << 32) + F.col("_cdc_low")
    summed = (F.col("_cdc_rows"), F.col("_cdc_keys"), F.bit_count("_cdc_bits"), total)
    rows, keys, distinct, sum_of_keys = words.agg(
        *(F.coalesce(F.sum(one), F.lit(0)) for one in summed)
    ).collect()[0]
    return _Found(rows, rows - keys, distinct, (sum_of_keys,))


def _by_shuffle(frame: DataFrame, wanted: Wanted) -> _Found:
    keys = [column(name) for name in wanted.key]
    no_key = reduce(Column.__or__, (key.isNull() for key in keys))
    sums = [F.sum(column(name).cast("decimal(38,0)")) for name in wanted.keys]
    # One query for few rows, whose cost is planning it; many go the way that was benchmarked.
    few = wanted.rows <= SMALL
    distinct = F.count_distinct(*keys) if few else F.lit(None)
    found = frame.agg(F.count(F.lit(1)), F.count_if(no_key), distinct, *sums).collect()[0]
    rows, nulls, keys_seen = found[:3]
    if not few and not nulls:
        keys_seen = frame.select(*keys).distinct().count()
    return _Found(rows, nulls, keys_seen or 0, tuple(found[3:]))


def _count(rows: int, wanted: Wanted) -> Verdict:
    return Verdict(
        _ROW_COUNT,
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
