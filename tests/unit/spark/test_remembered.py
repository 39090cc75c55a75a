"""Expressions are built once per JVM."""

from __future__ import annotations

import pytest
from pyspark import SparkContext

from tidegate.schema.table import Column
from tidegate.schema.types import Kind, LogicalType, TextRule
from tidegate.spark.remembered import remembered
from tidegate.spark.typed import _nameless


def test_equal_facts_are_built_once_in_a_jvm_and_anew_in_the_next(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    built: list[tuple[int, ...]] = []

    @remembered
    def build(places: tuple[int, ...]) -> object:
        built.append(places)
        return object()

    monkeypatch.setattr(SparkContext, "_gateway", object())
    first, other = build((1, 2)), build((2, 1))
    assert (build((1, 2)), build((2, 1))) == (first, other)
    assert built == [(1, 2), (2, 1)]
    monkeypatch.setattr(SparkContext, "_gateway", object())
    assert build((1, 2)) is not first
    assert built == [(1, 2), (2, 1), (1, 2)]


def test_a_failure_is_not_kept() -> None:
    tries: list[int] = []

    @remembered
    def build(number: int) -> int:
        tries.append(number)
        if len(tries) == 1:
            raise ValueError("not yet")
        return number

    with pytest.raises(ValueError, match="not yet"):
        build(7)
    assert build(7) == 7


def column(name: str, type_: LogicalType, **facts: object) -> Column:
    return Column(name, "anything", type_, TextRule.PG_NUMBER, **facts)  # type: ignore[arg-type]


def test_columns_that_differ_in_names_alone_are_built_alike_and_no_others() -> None:
    money = LogicalType(Kind.DECIMAL, 12, 2)
    one = _nameless(column("price", money, number=3))
    assert _nameless(column("total", money, number=9, nullable=False)) == one
    assert _nameless(column("price", LogicalType(Kind.DECIMAL, 12, 3), number=3)) != one
    assert _nameless(column("price", money, key=0)) != one
    assert _nameless(column("price", money, given="0.00")) != one
