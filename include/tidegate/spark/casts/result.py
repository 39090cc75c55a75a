"""What a cast says about one value."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from pyspark.sql import Column
from pyspark.sql import functions as F

from tidegate.schema.types import Policy

Flags = tuple[Column, Column]
"""``failed`` and ``adjusted``, never NULL."""


@dataclass(frozen=True, slots=True)
class CastResult:
    """The value of a text, and what became of it."""

    value: Column
    """NULL where ``text`` is NULL or has failed."""
    judge: Callable[[Column], Flags]
    """The flags, given a column that holds ``value`` already: Spark would parse every text again
    for each flag otherwise."""
    suspect: Callable[[Column], Column] = Column.isNull
    """Whether a flag may be set at all, by a value alone."""

    @property
    def failed(self) -> Column:
        """The text is not an exact value of the type."""
        return self.judge(self.value)[0]

    @property
    def adjusted(self) -> Column:
        """The type cannot hold the value; ``value`` is what the policy says instead."""
        return self.judge(self.value)[1]


def always(value: Column) -> CastResult:
    """A cast that cannot fail."""
    return CastResult(value, lambda _: (F.lit(False), F.lit(False)))


def plain(text: Column, value: Column) -> CastResult:
    """``value`` is NULL exactly where ``text`` is NULL or wrong."""
    return CastResult(value, lambda known: (text.isNotNull() & known.isNull(), F.lit(False)))


def null_by_policy(text: Column, exact: Column, outside: Column, policy: Policy) -> CastResult:
    """NULL, counted, where ``outside`` says the type cannot hold the value."""
    if policy is Policy.REJECT:
        return plain(text, exact)

    def judge(known: Column) -> Flags:
        missing = text.isNotNull() & known.isNull()
        return missing & ~outside, missing & outside

    return CastResult(exact, judge)
