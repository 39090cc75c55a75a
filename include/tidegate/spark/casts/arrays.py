r"""One-dimensional PostgreSQL arrays: ``{1,NULL,"a \"quoted\" one"}``.

Spark evaluates lambdas over elements node by node, never in compiled code. So arrays as most rows
have them take a way without any, which proves itself as it goes, and only the others are taken
apart element by element.

The patterns use possessive quantifiers throughout: Java runs those in a loop, while the usual ones
recurse per repetition and overflow the stack on long elements.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from pyspark.sql import Column
from pyspark.sql import functions as F

from tidegate.schema.types import Kind, LogicalType
from tidegate.spark.casts.result import CastResult, Flags, plain

_QUOTED: Final = r'"(?:[^"\\]|\\.)*+"'
_BARE: Final = r'[^",{}\\\s]++'
_EASY: Final = r'"[^"\\,]*+"'
"""Quoted, but a comma still only separates elements and nothing is escaped."""


def _array_of(quoted: str) -> str:
    element = f"(?:{quoted}|{_BARE})"
    return rf"(?s)\A\{{(?:{element}(?:,{element})*+)?+\}}\z"


_ARRAY: Final = _array_of(_QUOTED)
_EASY_ARRAY: Final = _array_of(_EASY)
_EMPTY: Final = "{}"
_PRINTED_AS_READ: Final = (Kind.INT, Kind.LONG, Kind.DECIMAL)
"""Elements that Spark prints as PostgreSQL does (or else they go the long way)."""


def array(
    text: Column, type_: LogicalType, cast_element: Callable[[Column], CastResult]
) -> CastResult:
    """More dimensions and shifted bounds (``[2:3]={…}``) do not match, and so have failed."""
    assert type_.element is not None
    kind = type_.element.kind
    if kind is Kind.STRING:
        return _texts(text)
    elements = _elements(text)
    values = F.transform(elements, lambda element: cast_element(element).value).cast(type_.spark)
    value = F.when(text.rlike(_ARRAY), values)
    if kind in _PRINTED_AS_READ:
        parts = F.split(_inside(text), ",")
        parsed = parts.try_cast(type_.spark)
        # NULL prints as NULL, which is no part's text: arrays with one go the long way.
        proven = _in_braces(text) & (parsed.cast("array<string>") == parts)
        value = F.when(proven, parsed).otherwise(value)

    def judge(known: Column) -> Flags:
        def any_element(flag: int) -> Column:
            found = F.exists(
                elements, lambda one: cast_element(one).judge(cast_element(one).value)[flag]
            )
            return suspect & F.coalesce(found, F.lit(False))

        suspect = F.coalesce(F.exists(known, cast_element(text).suspect), F.lit(False))
        no_array = text.isNotNull() & known.isNull()
        return no_array | any_element(0), any_element(1)

    return CastResult(value, judge)


def _texts(text: Column) -> CastResult:
    """Elements cannot fail. Those of an easy array are what stands between its commas."""
    parts = F.split(_inside(text), ",")
    bare = F.split(F.replace(_inside(text), F.lit('"'), F.lit("")), ",")
    unquoted = F.transform(
        parts, lambda part: F.when(F.upper(part) != "NULL", F.btrim(part, F.lit('"')))
    )
    easy = (
        F.when(text == _EMPTY, F.array().cast("array<string>"))
        .when(~F.contains(F.upper(text), F.lit("NULL")), bare)
        .otherwise(unquoted)
    )
    value = F.when(text.rlike(_EASY_ARRAY), easy).when(text.rlike(_ARRAY), _elements(text))
    return plain(text, value)


def _elements(text: Column) -> Column:
    tokens = F.regexp_extract_all(text, F.lit(f"(?s)({_QUOTED}|{_BARE})"), F.lit(1))
    return F.transform(tokens, _element)


def _element(token: Column) -> Column:
    quoted = token.startswith('"')
    unescaped = F.regexp_replace(_inside(token), r"(?s)\\(.)", "$1")
    return F.when(quoted, unescaped).when(F.upper(token) != "NULL", token)


def _in_braces(text: Column) -> Column:
    return text.startswith("{") & text.endswith("}")


def _inside(text: Column) -> Column:
    """Without the first and the last character."""
    return text.substr(F.lit(2), F.length(text) - 2)
