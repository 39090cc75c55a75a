"""The cast of a column: one per text rule and lake type."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from pyspark.sql import Column as SparkColumn
from pyspark.sql import functions as F

from tidegate.errors import FatalError
from tidegate.schema.table import Column
from tidegate.schema.types import Kind, LogicalType, Policy, TextRule
from tidegate.spark.casts.arrays import array
from tidegate.spark.casts.datetimes import calendar, datetime
from tidegate.spark.casts.numbers import decimal, floating, integer
from tidegate.spark.casts.result import CastResult, always, plain
from tidegate.spark.casts.variants import variant

_HEX: Final = r"\A\\x[0-9a-fA-F]*+\z"

_ELEMENT_RULES: Final = {
    Kind.BOOLEAN: TextRule.PG_BOOL,
    Kind.INT: TextRule.PG_NUMBER,
    Kind.LONG: TextRule.PG_NUMBER,
    Kind.FLOAT: TextRule.PG_NUMBER,
    Kind.DOUBLE: TextRule.PG_NUMBER,
    Kind.DECIMAL: TextRule.PG_NUMBER,
    Kind.DATE: TextRule.PG_DATETIME,
    Kind.TIMESTAMP: TextRule.PG_DATETIME,
    Kind.TIMESTAMPTZ: TextRule.PG_DATETIME,
    Kind.BINARY: TextRule.PG_BYTEA,
}


def cast(column: Column, text: SparkColumn) -> CastResult:
    """``text``, as the log path prints values of ``column``, to the column's lake type.

    NULL stays NULL, neither failed nor adjusted. Safe to evaluate on any text: nothing raises.
    """
    return _cast(column.type, column.rule, column.policy, text)


def _cast(type_: LogicalType, rule: TextRule, policy: Policy, text: SparkColumn) -> CastResult:
    if type_.kind is Kind.STRING:  # the source's own text, whatever the rule
        return always(text)
    by_text_alone = _BY_TEXT_ALONE.get((rule, type_.kind))
    if by_text_alone is not None:
        return by_text_alone(text)
    match rule, type_.kind:
        case TextRule.PG_NUMBER, Kind.INT | Kind.LONG:
            return integer(text, type_)
        case TextRule.PG_NUMBER, Kind.FLOAT | Kind.DOUBLE:
            return floating(text, type_)
        case TextRule.PG_NUMBER, Kind.DECIMAL:
            return decimal(text, type_, policy)
        case TextRule.PG_DATETIME, Kind.DATE | Kind.TIMESTAMP | Kind.TIMESTAMPTZ:
            return datetime(text, type_, policy)
        case TextRule.MYSQL_DATETIME, Kind.DATE | Kind.TIMESTAMP | Kind.TIMESTAMPTZ:
            return calendar(text, type_, policy)
        case TextRule.PG_ARRAY, Kind.LIST if type_.element is not None:
            element = type_.element
            own = _ELEMENT_RULES.get(element.kind, TextRule.PLAIN)
            return array(text, type_, lambda one: _cast(element, own, policy, one))
    raise FatalError(
        "cast.no_rule",
        f"there is no cast from {rule.value} text to {type_}",
        hint="the schema history was written by another version of Tidegate; sweep the table again",
    )


def _boolean(text: SparkColumn) -> CastResult:
    return plain(text, F.when(text == "t", F.lit(True)).when(text == "f", F.lit(False)))


def _bytea(text: SparkColumn) -> CastResult:
    whole_bytes = F.length(text) % 2 == 0
    digits = text.substr(F.lit(3), F.length(text))
    return plain(text, F.when(text.rlike(_HEX) & whole_bytes, F.unhex(digits)))


_BY_TEXT_ALONE: Final[dict[tuple[TextRule, Kind], Callable[[SparkColumn], CastResult]]] = {
    (TextRule.PG_BOOL, Kind.BOOLEAN): _boolean,
    (TextRule.PG_BYTEA, Kind.BINARY): _bytea,
    (TextRule.PLAIN, Kind.VARIANT): variant,
}
"""Casts that neither the type's own numbers nor a policy have a say in."""
