r"""JSON documents as variants: equal as JSON values, or failed (I6).

Spark's parser takes what a variant cannot hold and says nothing: ``1e2`` and numbers of more than
38 digits become floats, ``-0`` becomes 0, half of a surrogate pair becomes ``?``. The pattern lets
none of these through. Two values under one key, more than 1,000 levels, a string of more than 20
million characters and what is larger than 128 MiB as a variant are NULL from the parser itself.

White space, the order of keys and zeros at the end of a fraction are no part of a variant.

The text is one valid document: its source has checked it (``schema.contract.holds_documents``).
Spark reads the first value of a text; that nothing follows it the pattern only sees by its ends.

Possessive quantifiers throughout, as for arrays: Java runs those in a loop.
"""

from __future__ import annotations

from typing import Final

from pyspark.sql import Column
from pyspark.sql import functions as F

from tidegate.spark.casts.result import CastResult, plain

_SPACE: Final = r"[ \t\n\r]*+"
_HEX: Final = "[0-9a-fA-F]"
_PAIR: Final = rf"u[dD][89abAB]{_HEX}{{2}}\\u[dD][c-fC-F]{_HEX}{{2}}"
_ESCAPE: Final = rf'\\(?:["\\/bfnrt]|u(?![dD][89a-fA-F]){_HEX}{{4}}|{_PAIR})'
_STRING: Final = rf'"(?:[^"\\]++|{_ESCAPE})*+"'
_ZERO: Final = r"0(?:\.0*+)?+(?![0-9])"
_NUMBER: Final = (
    rf"(?:-(?!{_ZERO}))?+(?:0(?:\.[0-9]{{1,38}}+)?+|[1-9](?:\.?[0-9]){{0,37}}+)(?![0-9.eE])"
)
"""At most 38 digits, not counting a zero before the point and those that follow it, and at most 38
after the point. What is no number at all the parser refuses."""
_SCALAR: Final = f"(?:{_STRING}|{_NUMBER}|true|false|null)"
_REST: Final = rf"(?:{_SPACE}(?:[\[\]{{}}:,]|{_SCALAR}))*+"
_EXACT: Final = rf"\A{_SPACE}(?:{_SCALAR}|\[{_REST}(?<=\])|\{{{_REST}(?<=\}})){_SPACE}\z"


def variant(text: Column) -> CastResult:
    """A JSON ``null`` is a value; it is not NULL."""
    return plain(text, F.when(text.rlike(_EXACT), F.try_parse_json(text)))
