"""What a cast says about one value."""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import Column
from pyspark.sql import functions as F

from tidegate.schema.types import Policy


@dataclass(frozen=True, slots=True)
class CastResult:
    """Three expressions over one text: its value, and two flags that are never NULL."""

    value: Column
    failed: Column
    """The text is not an exact value of the type; ``value`` is NULL."""
    adjusted: Column
    """The type cannot hold the value; ``value`` is what the policy says instead."""


def plain(text: Column, value: Column) -> CastResult:
    """``value`` is NULL exactly where ``text`` is NULL or wrong."""
    return CastResult(value, text.isNotNull() & value.isNull(), F.lit(False))


def by_policy(
    text: Column, exact: Column, outside: Column, clamped: Column, policy: Policy
) -> CastResult:
    """``exact`` where the type holds the value; the policy's answer where ``outside`` is true.

    ``clamped`` is the nearest value that can be held, NULL where there is none.
    """
    beyond = text.isNotNull() & exact.isNull() & F.coalesce(outside, F.lit(False))
    if policy is Policy.REJECT:
        return plain(text, exact)
    wrong = text.isNotNull() & exact.isNull() & ~beyond
    if policy is Policy.NULL:
        return CastResult(exact, wrong, beyond)
    return CastResult(F.when(beyond, clamped).otherwise(exact), wrong, beyond)
