"""The audit between a swept branch and its publication.

Built-in checks first (row count at the cut, keys unique and not null, the keys that were read are
the keys that were written), then the user's suite. One failed check publishes nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from tidegate.config.sinks import Expectation
from tidegate.errors import DataError
from tidegate.names import quote_spark
from tidegate.spark.expectations import Verdict, run_suite


@dataclass(frozen=True, slots=True)
class Wanted:
    """What the branch must hold."""

    rows: int  # at the cut, counted by the source
    key: tuple[str, ...]  # empty for a table without one
    fingerprint: int | None = None
    """:func:`fingerprint_of` the keys that were read; None where changes were drained since."""


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


def fingerprint_of(keys: Sequence[Column]) -> Column:
    """An order-independent digest of rows' keys (0 for no rows).

    Duplicates cancel out; the count and the uniqueness check see those.
    """
    if not keys:
        return F.lit(0).cast("bigint")
    return F.coalesce(F.bit_xor(F.xxhash64(*keys)), F.lit(0))


def audit(frame: DataFrame, wanted: Wanted, expectations: Sequence[Expectation]) -> Audit:
    """Check the rows that a sweep is about to publish."""
    verdicts = _keyed(frame, wanted) if wanted.key else [_count(frame.count(), wanted)]
    # The suite is slow next to the built-in checks: no reason to run it on a table known bad.
    if all(verdict.passed for verdict in verdicts):
        verdicts += run_suite(frame, expectations)
    return Audit(tuple(verdicts))


def _keyed(frame: DataFrame, wanted: Wanted) -> list[Verdict]:
    keys = [column(name) for name in wanted.key]
    has_null = F.lit(False)
    for key in keys:
        has_null = has_null | key.isNull()
    per_key = frame.groupBy(*keys).agg(
        F.count(F.lit(1)).alias("_cdc_n"),
        F.sum(F.when(has_null, 1).otherwise(0)).alias("_cdc_nulls"),
    )
    found = per_key.agg(
        F.coalesce(F.sum("_cdc_n"), F.lit(0)).alias("rows"),
        F.coalesce(F.sum("_cdc_nulls"), F.lit(0)).alias("nulls"),
        F.count_if(F.col("_cdc_n") > 1).alias("doubled"),
        fingerprint_of(keys).alias("fingerprint"),
    ).collect()[0]
    verdicts = [
        _count(found["rows"], wanted),
        Verdict("keys_not_null", not found["nulls"], f"{found['nulls']} rows have a null key"),
        Verdict("keys_unique", not found["doubled"], f"{found['doubled']} keys occur twice"),
    ]
    if wanted.fingerprint is not None:
        same = found["fingerprint"] == wanted.fingerprint
        detail = "the keys written are not the keys read"
        verdicts.append(Verdict("keys_as_read", same, detail))
    return verdicts


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
