"""Dates and timestamps as PostgreSQL prints them with ``DateStyle = ISO``.

The lake holds the years 1 to 9999, which is what every reader of Iceberg tables can show.
``infinity``, BC and years beyond are outside and follow the column's policy.
"""

from __future__ import annotations

from typing import Final

from pyspark.sql import Column
from pyspark.sql import functions as F

from tidegate.schema.types import Kind, LogicalType, Policy
from tidegate.spark.casts.result import CastResult, Flags, null_by_policy

_DAY: Final = r"-[0-9]{2}-[0-9]{2}"
_TIME: Final = r" [0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]{1,6})?"
_OFFSET: Final = r"[+-][0-9]{2}(?::[0-9]{2}(?::[0-9]{2})?)?"

_INNER_YEAR: Final = r"(?!0000|0001|9999)[0-9]{4}"
_EDGE_YEAR: Final = r"(?:0001|9999)"

_TAILS: Final = {
    Kind.DATE: _DAY,
    Kind.TIMESTAMP: _DAY + _TIME,
    Kind.TIMESTAMPTZ: _DAY + _TIME + _OFFSET,
}
_FIRST: Final = {
    Kind.DATE: "0001-01-01",
    Kind.TIMESTAMP: "0001-01-01 00:00:00",
    Kind.TIMESTAMPTZ: "0001-01-01 00:00:00+00:00",
}
_LAST: Final = {
    Kind.DATE: "9999-12-31",
    Kind.TIMESTAMP: "9999-12-31 23:59:59.999999",
    Kind.TIMESTAMPTZ: "9999-12-31 23:59:59.999999+00:00",
}


_ABSENT: Final = r"\A(?:0000-[0-9]{2}-[0-9]{2}|[0-9]{4}-00-[0-9]{2}|[0-9]{4}-[0-9]{2}-00)(?: |\z)"


def calendar(text: Column, type_: LogicalType, policy: Policy) -> CastResult:
    """As MySQL prints them. A date without day, month or year has no nearest one: NULL, counted,
    under every policy but ``reject``."""
    tail = _TAILS[type_.kind]
    year = r"(?!0000)[0-9]{4}"
    exact = F.when(text.rlike(rf"\A{year}{tail}\z"), text.try_cast(type_.spark))
    absent = F.coalesce(text.rlike(_ABSENT), F.lit(False))
    return null_by_policy(text, exact, absent, policy)


def datetime(text: Column, type_: LogicalType, policy: Policy) -> CastResult:
    """The pattern leaves Spark's parser nothing to guess; it still refuses February 30."""
    tail = _TAILS[type_.kind]
    first = F.lit(_FIRST[type_.kind]).cast(type_.spark)
    last = F.lit(_LAST[type_.kind]).cast(type_.spark)
    parsed = text.try_cast(type_.spark)
    early = (text == "-infinity") | text.rlike(rf"\A[0-9]{{4,}}{tail} BC\z")
    late = (text == "infinity") | text.rlike(rf"\A[1-9][0-9]{{4,}}{tail}\z")
    value = F.when(text.rlike(rf"\A{_INNER_YEAR}{tail}\z"), parsed)
    edge = F.when(text.rlike(rf"\A{_EDGE_YEAR}{tail}\z"), parsed)
    if type_.kind is Kind.TIMESTAMPTZ:
        # An offset can carry the first and the last day of the range out of it.
        early |= edge < first
        late |= edge > last
        edge = F.when((edge >= first) & (edge <= last), edge)
    outside = F.coalesce(early | late, F.lit(False))
    exact = F.coalesce(value, edge)  # the edges are only looked at where the years between fail
    if policy is not Policy.CLAMP:
        return null_by_policy(text, exact, outside, policy)

    def at_an_end(known: Column) -> Column:
        return F.coalesce((known == first) | (known == last), F.lit(False))

    def judge(known: Column) -> Flags:
        return text.isNotNull() & known.isNull(), at_an_end(known) & outside

    clamped = F.coalesce(exact, F.when(early, first).when(late, last))
    return CastResult(clamped, judge, lambda known: known.isNull() | at_an_end(known))
