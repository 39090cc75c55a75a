"""What a row is known by in a table without a key: all of its values.

The identity is the SHA-256 of the row's values as texts, of which different values never share one:
a float prints every digit that it takes (``-0.0`` is not ``0.0``, and there is one NaN), an instant
its microseconds, bytes their hex digits, a document its canonical text. NULL is the text of
nothing, so that NULLs are equal. The texts are of the *lake's* values: what two rows of the source
differ in, but their lake rows do not, nobody can tell apart any more, nor needs to.
"""

from __future__ import annotations

from collections.abc import Iterable

from pyspark.sql import Column as Expr
from pyspark.sql import functions as F
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    StringType,
    TimestampNTZType,
    TimestampType,
    VariantType,
)

from tidegate.errors import FatalError

_PRINTED = (
    BooleanType, IntegerType, LongType, DecimalType, FloatType, DoubleType, DateType, StringType,
)  # fmt: skip


def row_identity(values: Iterable[tuple[Expr, DataType]]) -> Expr:
    """The identity of a row of these values, in this order."""
    return F.sha2(F.to_json(F.array(*(value_text(value, type_) for value, type_ in values))), 256)


def value_text(value: Expr, type_: DataType) -> Expr:
    """A text that no other value of the type has; NULL of NULL."""
    match type_:
        case VariantType():
            return F.to_json(value)
        case BinaryType():
            return F.hex(value)
        case TimestampType() | TimestampNTZType():
            # to_json and other printers cut to milliseconds. Sessions are in UTC.
            return F.unix_micros(value.cast("timestamp")).cast("string")
        case ArrayType(elementType=element):
            return F.to_json(F.transform(value, lambda one: value_text(one, element)))
        case _ if isinstance(type_, _PRINTED):
            return value.cast("string")
    raise FatalError(
        "apply.no_identity",
        f"rows cannot be told apart by a column of type {type_.simpleString()}",
        hint="give the column another type in the pipeline's file (docs/reference/types.md)",
    )
