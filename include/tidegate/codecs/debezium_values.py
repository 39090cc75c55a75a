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
_ZONED: Final = re.compile(
    r"(?P<clock>[\d:.]+)(?P<sign>[+-])(?P<hours>\d\d)(?::(?P<minutes>\d\d))?"
)
_UNITS: Final = re.compile(r"(-?\d+) (year|mon|day)s?")
_PRECISION: Final = re.compile(r"\((\d)\)")
_DAY_MICROS: Final = 86_400 * MICROS
_MONTH_DAYS: Final = 365.25 / 12
_CENTS: Final = 2
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
        declared = re.search(r"\(\d+(?:,(-?\d+))?\)", source_type)
        return _variable if declared is None else lambda text: fixed(text, int(declared[1] or 0))
    if name == "money":
        return lambda text: fixed(re.sub(r"[^\d.-]", "", text), _CENTS)
    if name in ("bit", "bit varying"):
        return _flag if source_type in ("bit", "bit(1)") else _bits
    timed: dict[str, Callable[[str], Any]] = {
        "timestamp without time zone": lambda text: timestamp(text, digits),
        "timestamp with time zone": lambda text: zoned(text, digits),
        "time without time zone": lambda text: _time(text, digits),
        "time with time zone": _zoned_time,
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


def fixed(text: str, scale: int) -> str | None:
    """The unscaled number, big-endian, in base64; NaN has no such form."""
    number = Decimal(text)
    return _unscaled(number, scale) if number.is_finite() else None


def _variable(text: str) -> dict[str, Any] | None:
    """With as many decimals as it needs: trailing zeros are not sent."""
    number = Decimal(text)
    if not number.is_finite():
        return None
    _, digits, exponent = number.as_tuple()
    zeros = len(digits) - len("".join(map(str, digits)).rstrip("0"))
    scale = max(0, -int(exponent) - zeros) if number else 0
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
    return _DATE_INFINITY.get(text) or days(text)


def days(text: str) -> int:
    """Days since 1970, for years that Python's calendar does not have too."""
    text, era, _ = text.partition(" BC")
    year, month, day = (int(part) for part in text.split("-"))
    year = 1 - year if era else year
    # The calendar repeats every 400 years, which are 146,097 days.
    cycles, within = divmod(year - 1, 400)
    return date(within + 1, month, day).toordinal() - date(1970, 1, 1).toordinal() + cycles * 146097


def _micros(text: str) -> int:
    era = " BC" if text.endswith(" BC") else ""
    day, _, rest = text.removesuffix(" BC").partition(" ")
    return days(day + era) * _DAY_MICROS + clock(rest)


def clock(text: str) -> int:
    match = _CLOCK.search(text)
    if match is None:
        return 0
    sign, hours, minutes, seconds, fraction = match.groups()
    whole = (int(hours) * 60 + int(minutes)) * 60 + int(seconds)
    micros = whole * MICROS + int((fraction or "").ljust(6, "0"))
    return -micros if sign else micros


def timestamp(text: str, digits: int) -> int:
    if text in _TIMESTAMP_INFINITY:
        return _TIMESTAMP_INFINITY[text]
    return _micros(text) // 1000 if digits <= _MILLIS else _micros(text)


def zoned(text: str, digits: int) -> str:
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
    return clock(text) // 1000 if digits <= _MILLIS else clock(text)


def _zoned_time(text: str) -> str:
    """The same moment of the day in UTC."""
    match = _ZONED.fullmatch(text)
    if match is None:
        return text
    west, hours, minutes = match["sign"] == "-", int(match["hours"]), int(match["minutes"] or 0)
    away = (hours * 60 + minutes) * 60 * MICROS
    micros = (clock(match["clock"]) + (away if west else -away)) % _DAY_MICROS
    seconds, rest = divmod(micros, MICROS)
    shown = f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}"
    return f"{shown}.{rest:06d}".rstrip("0").rstrip(".") + "Z" if rest else f"{shown}Z"


def _flag(text: str) -> bool:
    return text == "1"


def _bits(text: str) -> str:
    """Little-endian, as many bytes as the bits need."""
    number = int(text or "0", 2).to_bytes((len(text) + 7) // 8, "little")
    return base64.b64encode(number).decode()


def _interval(text: str) -> int:
    """Microseconds, a month being 365.25 / 12 days."""
    parts = {unit: int(count) for count, unit in _UNITS.findall(text)}
    months = parts.get("year", 0) * 12 + parts.get("mon", 0)
    days = months * _MONTH_DAYS + parts.get("day", 0)
    return int(days * _DAY_MICROS) + clock(text)


def octets(text: str) -> str:
    return base64.b64encode(bytes.fromhex(text.removeprefix("\\x"))).decode()


_BY_KIND: Final[dict[Kind, Callable[[str], Any]]] = {
    Kind.BOOLEAN: lambda text: text == "t",
    Kind.INT: int,
    Kind.LONG: int,
    Kind.FLOAT: _float,
    Kind.DOUBLE: _float,
    Kind.DATE: _date,
    Kind.BINARY: octets,
}
