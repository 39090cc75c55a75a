"""Lake values in the words of the source, so that any reader's rows can be compared with it.

A text is what PostgreSQL prints with ISO dates, UTC, hex bytea: ``t``, ``1.50``, ``2024-02-29``,
``2024-02-29 12:00:00.5+00``, ``\\x00ff``. Floats are compared as numbers of their width.
"""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa

from tidegate.schema.types import Kind, LogicalType
from tidegate.testing.conformance.cases import Text

Row = tuple[Any, ...]


def rows_of(table: pa.Table) -> list[Row]:
    """Every row of what a reader gave, as texts; lists become tuples."""
    columns = [
        [text_of(field.type, value) for value in column.to_pylist()]
        for field, column in zip(table.schema, table.columns, strict=True)
    ]
    return list(zip(*columns, strict=True))


def text_of(type_: pa.DataType, value: Any) -> Any:
    """One value as the source would print it."""
    if value is None:
        return None
    if pa.types.is_list(type_) or pa.types.is_large_list(type_):
        return tuple(text_of(type_.value_type, one) for one in value)
    if pa.types.is_float32(type_):
        return str(np.float32(value))
    return _scalar(value)


def _scalar(value: Any) -> str:
    match value:
        case bool():
            return "t" if value else "f"
        case float():
            return repr(value)
        case Decimal():
            return format(value, "f")
        case bytes():
            return "\\x" + value.hex()
        case dt.datetime():
            zone = "" if value.tzinfo is None else "+00"
            moment = value if value.tzinfo is None else value.astimezone(dt.UTC)
            return _moment(moment) + zone
        case dt.date():
            return f"{value.year:04}-{value.month:02}-{value.day:02}"
    return str(value)


def _moment(value: dt.datetime) -> str:
    day = f"{value.year:04}-{value.month:02}-{value.day:02}"
    time = f"{value.hour:02}:{value.minute:02}:{value.second:02}"
    fraction = f".{value.microsecond:06}".rstrip("0") if value.microsecond else ""
    return f"{day} {time}{fraction}"


def expected(type_: LogicalType, text: Text) -> Any:
    """The source's text in the same words: floats of a width have one spelling here."""
    if text is None:
        return None
    if isinstance(text, list):
        element = type_.element or type_
        return tuple(expected(element, one) for one in text)
    if type_.kind is Kind.FLOAT:
        return str(np.float32(text))
    if type_.kind is Kind.DOUBLE:
        return repr(float(text))
    return text
