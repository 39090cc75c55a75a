"""What a text is worth, decided by Python's own exact parsers: the oracle of the cast tests."""

from __future__ import annotations

import re
import struct
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal, localcontext
from typing import Any

from tidegate.schema.table import Column
from tidegate.schema.types import Kind, LogicalType, Policy, TextRule

FAILED = ("failed", None)
EPOCH = datetime(1970, 1, 1)
FIRST, LAST = datetime(1, 1, 1), datetime(9999, 12, 31, 23, 59, 59, 999999)

_RULES = {
    Kind.BOOLEAN: TextRule.PG_BOOL,
    Kind.BINARY: TextRule.PG_BYTEA,
    Kind.DATE: TextRule.PG_DATETIME,
    Kind.TIMESTAMP: TextRule.PG_DATETIME,
    Kind.TIMESTAMPTZ: TextRule.PG_DATETIME,
    Kind.LIST: TextRule.PG_ARRAY,
    Kind.STRING: TextRule.PLAIN,
}


def column(type_: LogicalType, policy: Policy = Policy.CLAMP, name: str = "x") -> Column:
    rule = _RULES.get(type_.kind, TextRule.PG_NUMBER)
    return Column(name, str(type_), type_, rule, policy)


def expected(type_: LogicalType, policy: Policy, text: str | None) -> tuple[str, Any]:
    """``("ok" | "adjusted" | "failed", value)``; instants as microseconds, floats as bits."""
    if text is None:
        return ("ok", None)
    match type_.kind:
        case Kind.STRING:
            return ("ok", text)
        case Kind.BOOLEAN:
            return ("ok", text == "t") if text in ("t", "f") else FAILED
        case Kind.INT | Kind.LONG:
            return _integer(text, 32 if type_.kind is Kind.INT else 64)
        case Kind.FLOAT | Kind.DOUBLE:
            return _float(text, type_.kind)
        case Kind.DECIMAL:
            return _decimal(text, type_, policy)
        case Kind.DATE | Kind.TIMESTAMP | Kind.TIMESTAMPTZ:
            return _instant(text, type_.kind, policy)
        case Kind.BINARY:
            return _bytes(text)
    raise AssertionError(type_)


def _integer(text: str, bits: int) -> tuple[str, Any]:
    if not re.fullmatch(r"-?[0-9]{1,19}", text):
        return FAILED
    value = int(text)
    return ("ok", value) if -(2 ** (bits - 1)) <= value < 2 ** (bits - 1) else FAILED


def float_bits(value: float | None, kind: Kind) -> bytes | None:
    if value is None:
        return None
    return struct.pack(">f" if kind is Kind.FLOAT else ">d", value)


def _float(text: str, kind: Kind) -> tuple[str, Any]:
    if text in ("NaN", "Infinity", "-Infinity"):
        return ("ok", float_bits(float(text), kind))
    if not re.fullmatch(r"-?[0-9]+(\.[0-9]+)?(e[+-]?[0-9]+)?", text):
        return FAILED
    try:
        bits = float_bits(float(text), kind)
    except OverflowError:
        return FAILED
    value = struct.unpack(">f" if kind is Kind.FLOAT else ">d", bits)[0]
    if value in (float("inf"), float("-inf")) or (value == 0 and Decimal(text) != 0):
        return FAILED
    return ("ok", bits)


def _decimal(text: str, type_: LogicalType, policy: Policy) -> tuple[str, Any]:
    if text in ("NaN", "Infinity", "-Infinity"):
        return FAILED if policy is Policy.REJECT else ("adjusted", None)
    if not re.fullmatch(r"-?[0-9]+(\.[0-9]*)?", text):
        return FAILED
    with localcontext(prec=100):
        value = Decimal(text)
        scaled = value.scaleb(type_.scale)
        exact = scaled == scaled.to_integral_value() and abs(scaled) < 10**type_.precision
    return ("ok", value) if exact else FAILED


def _instant(text: str, kind: Kind, policy: Policy) -> tuple[str, Any]:
    outside = _outside(text, kind)
    if outside is None:
        return FAILED
    if isinstance(outside, datetime):
        return ("ok", micros(outside, kind))
    if policy is Policy.REJECT:
        return FAILED
    if policy is Policy.NULL:
        return ("adjusted", None)
    return ("adjusted", micros(FIRST if outside == "early" else LAST, kind))


def micros(value: datetime, kind: Kind) -> int | date:
    if kind is Kind.DATE:
        return value.date()
    return (value - EPOCH) // timedelta(microseconds=1)


def _outside(text: str, kind: Kind) -> datetime | str | None:
    """The value, ``early``, ``late``, or None if the text is no value."""
    if text in ("infinity", "-infinity"):
        return "late" if text == "infinity" else "early"
    tail = r"-(?P<m>[0-9]{2})-(?P<d>[0-9]{2})"
    if kind is not Kind.DATE:
        tail += r" (?P<H>[0-9]{2}):(?P<M>[0-9]{2}):(?P<S>[0-9]{2})(\.(?P<f>[0-9]{1,6}))?"
    if kind is Kind.TIMESTAMPTZ:
        tail += r"(?P<sign>[+-])(?P<oh>[0-9]{2})(:(?P<om>[0-9]{2})(:(?P<os>[0-9]{2}))?)?"
    match = re.fullmatch(rf"(?P<y>[0-9]{{4,}}){tail}(?P<bc> BC)?", text)
    if match is None:
        return None
    part = match.groupdict()
    if part["bc"]:
        return "early"
    if len(part["y"]) > 4:
        return None if part["y"].startswith("0") else "late"
    return _finite(part, kind)


def _finite(part: dict[str, Any], kind: Kind) -> datetime | str | None:
    try:
        value = datetime(
            *(int(part.get(key) or 0) for key in ("y", "m", "d", "H", "M", "S")),
            int((part.get("f") or "0").ljust(6, "0")),
        )
    except ValueError:
        return None
    if kind is not Kind.TIMESTAMPTZ:
        return value
    offset = timedelta(
        hours=int(part["oh"]), minutes=int(part["om"] or 0), seconds=int(part["os"] or 0)
    )
    zone = timezone(offset if part["sign"] == "+" else -offset)
    try:
        return value.replace(tzinfo=zone).astimezone(UTC).replace(tzinfo=None)
    except OverflowError:
        return "early" if part["sign"] == "+" else "late"


def _bytes(text: str) -> tuple[str, Any]:
    if not re.fullmatch(r"\\x([0-9a-fA-F]{2})*", text):
        return FAILED
    return ("ok", bytes.fromhex(text[2:]))
