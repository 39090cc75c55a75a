"""Values as Debezium's PostgreSQL connector prints them in JSON, from the source's own text.

Its defaults: ``decimal.handling.mode=precise``, ``time.precision.mode=adaptive``,
``interval.handling.mode=numeric``, ``binary.handling.mode=bytes``. What has no form of its own
there (enums, uuid, json, inet, ranges …) is text.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any, Final

from tidegate.codecs.pg_array import elements
from tidegate.schema.table import Column
from tidegate.schema.types import Kind, LogicalType

MICROS: Final = 1_000_000
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_TIMESTAMP_INFINITY: Final = {"infinity": 9223372036825200000, "-infinity": -9223372036832400000}
_DATE_INFINITY: Final = {"infinity": 2**31 - 1, "-infinity": -(2**31)}
_CLOCK: Final = re.compile(r"(-?)(\d+):(\d\d):(\d\d)(?:\.(\d{1,6}))?")
_UNITS: Final = re.compile(r"(-?\d+) (year|mon|day)s?")
_PRECISION: Final = re.compile(r"\((\d)\)")
_DAY_MICROS: Final = 86_400 * MICROS
_MONTH_DAYS: Final = 365.25 / 12
_MILLIS: Final = 3
"""Up to this many digits, ``adaptive`` counts milliseconds."""


def value(column: Column, text: str | None) -> Any:
    """One value; None stays None."""
    return None if text is None else _converter(column.source_type, column.type)(text)


def _converter(source_type: str, type_: LogicalType) -> Callable[[str], Any]:
    if source_type.endswith("[]") and type_.kind is Kind.LIST and type_.element is not None:
        element = _converter(source_type.removesuffix("[]"), type_.element)
        return lambda text: [None if e is None else element(e) for e in elements(text)]
    digits = _digits(source_type)
    name = re.sub(r"\(.*?\)", "", source_type).strip()
    if name in ("numeric", "decimal"):
        fixed = re.search(r"\(\d+(?:,(-?\d+))?\)", source_type)
        return _variable if fixed is None else lambda text: _fixed(text, int(fixed[1] or 0))
    if name == "bit" and source_type in ("bit", "bit(1)"):
        return lambda text: text == "1"
    timed: dict[str, Callable[[str], Any]] = {
        "timestamp without time zone": lambda text: _timestamp(text, digits),
        "timestamp with time zone": lambda text: _zoned(text, digits),
        "time without time zone": lambda text: _time(text, digits),
        "interval": _interval,
    }
    return timed.get(name) or _BY_KIND.get(type_.kind, str)


def _digits(source_type: str) -> int:
    match = _PRECISION.search(source_type)
    return 6 if match is None else int(match[1])


def _float(text: str) -> float | str:
    number = float(text)
    # JSON has no NaN or Infinity; Kafka Connect's converter writes them as text.
    return number if number == number and abs(number) != float("inf") else text


def _fixed(text: str, scale: int) -> str | None:
    """The unscaled number, big-endian, in base64; NaN has no such form."""
    number = Decimal(text)
    return _unscaled(number, scale) if number.is_finite() else None


def _variable(text: str) -> dict[str, Any] | None:
    number = Decimal(text)
    if not number.is_finite():
        return None
    scale = max(0, -int(number.as_tuple().exponent))
    return {"scale": scale, "value": _unscaled(number, scale)}


def _unscaled(number: Decimal, scale: int) -> str:
    sign, digits, exponent = number.as_tuple()
    shift = int(exponent) + scale
    whole = int("".join(map(str, digits)))
    whole = whole * 10**shift if shift >= 0 else whole // 10**-shift
    whole = -whole if sign else whole
    length = (whole + (whole < 0)).bit_length() // 8 + 1
    return base64.b64encode(whole.to_bytes(length, "big", signed=True)).decode()


def _date(text: str) -> int:
    return _DATE_INFINITY.get(text) or _days(text)


def _days(text: str) -> int:
    """Days since 1970, for years that Python's calendar does not have too."""
    text, era, _ = text.partition(" BC")
    year, month, day = (int(part) for part in text.split("-"))
    year = 1 - year if era else year
    # The calendar repeats every 400 years, which are 146,097 days.
    cycles, within = divmod(year - 1, 400)
    return date(within + 1, month, day).toordinal() - date(1970, 1, 1).toordinal() + cycles * 146097


def _micros(text: str) -> int:
    era = " BC" if text.endswith(" BC") else ""
    day, _, clock = text.removesuffix(" BC").partition(" ")
    return _days(day + era) * _DAY_MICROS + _clock(clock)


def _clock(text: str) -> int:
    match = _CLOCK.search(text)
    if match is None:
        return 0
    sign, hours, minutes, seconds, fraction = match.groups()
    whole = (int(hours) * 60 + int(minutes)) * 60 + int(seconds)
    micros = whole * MICROS + int((fraction or "").ljust(6, "0"))
    return -micros if sign else micros


def _timestamp(text: str, digits: int) -> int:
    if text in _TIMESTAMP_INFINITY:
        return _TIMESTAMP_INFINITY[text]
    return _micros(text) // 1000 if digits <= _MILLIS else _micros(text)


def _zoned(text: str, digits: int) -> str:
    """An instant in UTC, with as many digits as the column has. The log prints UTC: ``…+00``."""
    if text in _TIMESTAMP_INFINITY or text.endswith(" BC"):
        return text
    micros = _micros(text.removesuffix("+00"))
    try:
        moment = _EPOCH + timedelta(microseconds=micros)
    except OverflowError:
        return text
    shown = f"{moment:%Y-%m-%dT%H:%M:%S}"
    return f"{shown}.{moment.microsecond:06d}"[: len(shown) + 1 + digits].rstrip(".") + "Z"


def _time(text: str, digits: int) -> int:
    return _clock(text) // 1000 if digits <= _MILLIS else _clock(text)


def _interval(text: str) -> int:
    """Microseconds, a month being 365.25 / 12 days."""
    parts = {unit: int(count) for count, unit in _UNITS.findall(text)}
    months = parts.get("year", 0) * 12 + parts.get("mon", 0)
    days = months * _MONTH_DAYS + parts.get("day", 0)
    return int(days * _DAY_MICROS) + _clock(text)


def _bytes(text: str) -> str:
    return base64.b64encode(bytes.fromhex(text.removeprefix("\\x"))).decode()


_BY_KIND: Final[dict[Kind, Callable[[str], Any]]] = {
    Kind.BOOLEAN: lambda text: text == "t",
    Kind.INT: int,
    Kind.LONG: int,
    Kind.FLOAT: _float,
    Kind.DOUBLE: _float,
    Kind.DATE: _date,
    Kind.BINARY: _bytes,
}
