"""Integers, floats and decimals as PostgreSQL prints them."""

from __future__ import annotations

from typing import Final

from pyspark.sql import Column
from pyspark.sql import functions as F

from tidegate.schema.types import LogicalType, Policy
from tidegate.spark.casts.result import CastResult, null_by_policy, plain

_INTEGER: Final = r"\A-?[0-9]{1,19}\z"
_FLOAT: Final = r"\A-?[0-9]+(?:\.[0-9]+)?(?:e[+-]?[0-9]+)?\z"
_SHORT_FLOAT: Final = r"\A-?[0-9]{1,30}(?:\.[0-9]{1,30})?\z"  # neither huge nor tiny
_NOT_ZERO: Final = r"\A-?[0.]*[1-9]"
_NOT_FINITE: Final = ("NaN", "Infinity", "-Infinity")


def integer(text: Column, type_: LogicalType) -> CastResult:
    """Out of range is NULL from ``try_cast``, and so has failed.

    What prints as it was read is exact; only other spellings need the pattern, which costs more.
    """
    parsed = text.try_cast(type_.spark)
    canonical = parsed.cast("string") == text
    return plain(text, F.when(canonical, parsed).when(text.rlike(_INTEGER), parsed))


def floating(text: Column, type_: LogicalType) -> CastResult:
    """The nearest float is exact (PostgreSQL prints the shortest text that reads back as itself);
    a finite text that would become infinite, or zero without being zero, is not."""
    parsed = text.try_cast(type_.spark)
    infinite = F.abs(parsed) == F.lit("Infinity").cast(type_.spark)
    vanished = (parsed == 0) & text.rlike(_NOT_ZERO)
    value = (
        F.when(text.rlike(_SHORT_FLOAT), parsed)
        .when(text.rlike(_FLOAT), F.when(~infinite & ~vanished, parsed))
        .when(text.isin(*_NOT_FINITE), parsed)
    )
    return plain(text, value)


def decimal(text: Column, type_: LogicalType, policy: Policy) -> CastResult:
    """Digits beyond precision or scale fail unless they are zeros.

    A decimal has no NaN and no infinity, and none of its values is near to them: both other
    policies than ``reject`` make them NULL, counted.
    """
    whole, scale = type_.precision - type_.scale, type_.scale
    pattern = rf"\A-?(?=[0-9])0*[0-9]{{0,{whole}}}(?:\.[0-9]{{0,{scale}}}0*)?\z"
    exact = F.when(text.rlike(pattern), text.try_cast(type_.spark))
    not_finite = F.coalesce(text.isin(*_NOT_FINITE), F.lit(False))
    return null_by_policy(text, exact, not_finite, policy)
