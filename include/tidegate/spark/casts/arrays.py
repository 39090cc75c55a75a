r"""One-dimensional PostgreSQL arrays: ``{1,NULL,"a \"quoted\" one"}``.

The patterns use possessive quantifiers throughout: Java runs those in a loop, while the usual ones
recurse per repetition and overflow the stack on long elements.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from pyspark.sql import Column
from pyspark.sql import functions as F

from tidegate.schema.types import LogicalType
from tidegate.spark.casts.result import CastResult, Flags

_QUOTED: Final = r'"(?:[^"\\]|\\.)*+"'
_BARE: Final = r'[^",{}\\\s]++'
_ELEMENT: Final = f"(?:{_QUOTED}|{_BARE})"
_ARRAY: Final = rf"(?s)\A\{{(?:{_ELEMENT}(?:,{_ELEMENT})*+)?+\}}\z"


def array(
    text: Column, type_: LogicalType, cast_element: Callable[[Column], CastResult]
) -> CastResult:
    """More dimensions and shifted bounds (``[2:3]={…}``) do not match, and so have failed."""
    tokens = F.regexp_extract_all(text, F.lit(f"(?s)({_ELEMENT})"), F.lit(1))
    elements = F.transform(tokens, _element)
    values = F.transform(elements, lambda element: cast_element(element).value)

    def judge(known: Column) -> Flags:
        def any_element(flag: int) -> Column:
            found = F.exists(
                elements, lambda one: cast_element(one).judge(cast_element(one).value)[flag]
            )
            return known.isNotNull() & F.coalesce(found, F.lit(False))

        no_array = text.isNotNull() & known.isNull()
        return no_array | any_element(0), any_element(1)

    return CastResult(F.when(text.rlike(_ARRAY), values.cast(type_.spark)), judge)


def _element(token: Column) -> Column:
    quoted = token.startswith('"')
    inner = token.substr(F.lit(2), F.length(token) - 2)
    unescaped = F.regexp_replace(inner, r"(?s)\\(.)", "$1")
    return F.when(quoted, unescaped).when(F.upper(token) != "NULL", token)
