"""Partition and sort terms as users write them: ``day(created_at)``, ``bucket(16, id)``.

They are read and checked against the table's columns before any engine sees them, so that a wrong
one is a clear configuration error and not a stack trace of Spark's.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from tidegate.errors import ConfigError
from tidegate.names import quote_spark
from tidegate.schema.types import Kind, LogicalType

_TIME: Final = {Kind.TIMESTAMP, Kind.TIMESTAMPTZ}
_COUNTED: Final = {Kind.INT, Kind.LONG, Kind.DECIMAL, Kind.STRING, Kind.BINARY}
_ALLOWED: Final[dict[str, set[Kind]]] = {
    "years": _TIME | {Kind.DATE},
    "months": _TIME | {Kind.DATE},
    "days": _TIME | {Kind.DATE},
    "hours": _TIME,
    "bucket": _COUNTED | _TIME | {Kind.DATE},
    "truncate": _COUNTED,
}
_WITH_NUMBER: Final = {"bucket", "truncate"}
_PLURAL: Final = {"year": "years", "month": "months", "day": "days", "hour": "hours"}

_CALL = re.compile(r"(?P<name>[A-Za-z]+)\s*\((?P<arguments>.*)\)\Z", re.DOTALL)
_NUMBER = re.compile(r"[1-9][0-9]{0,8}\Z")
_DIRECTION = re.compile(
    r"(?P<term>.*?)(?:\s+(?P<direction>asc|desc))?(?:\s+nulls\s+(?P<nulls>first|last))?\Z",
    re.IGNORECASE | re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class Term:
    """A column, or a transform of one."""

    column: str
    transform: str | None = None  # Spark's spelling: years, months, days, hours, bucket, truncate
    number: int | None = None
    suffix: str = ""  # sort terms: " DESC NULLS LAST"

    @property
    def sql(self) -> str:
        quoted = quote_spark(self.column)
        if self.transform is None:
            return quoted + self.suffix
        number = "" if self.number is None else f"{self.number}, "
        return f"{self.transform}({number}{quoted}){self.suffix}"


def partition_terms(
    texts: Sequence[str], types: Mapping[str, LogicalType], table: str
) -> tuple[Term, ...]:
    """Read ``partition_by``; every term must fit a column of ``types``."""
    terms = tuple(_term(text, types, table, "partition_by") for text in texts)
    seen: set[tuple[str, str | None]] = set()
    for text, term in zip(texts, terms, strict=True):
        # Iceberg refuses two time transforms of one column: the finer one implies the other.
        kind = "time" if term.transform in _PLURAL.values() else term.transform
        if (term.column, kind) in seen:
            raise _wrong(table, "partition_by", text, f"{term.column} is partitioned by already")
        seen.add((term.column, kind))
    return terms


def sort_terms(
    texts: Sequence[str], types: Mapping[str, LogicalType], table: str
) -> tuple[Term, ...]:
    """Read ``sort_by``: terms like partitions have, with ``asc|desc``, ``nulls first|last``."""
    terms = []
    for text in texts:
        match = _DIRECTION.match(text.strip())
        if match is None:
            raise _wrong(table, "sort_by", text, "it is empty")
        suffix = ""
        if match["direction"]:
            suffix += f" {match['direction'].upper()}"
        if match["nulls"]:
            suffix += f" NULLS {match['nulls'].upper()}"
        term = _term(match["term"], types, table, "sort_by")
        terms.append(Term(term.column, term.transform, term.number, suffix))
    return tuple(terms)


def _term(text: str, types: Mapping[str, LogicalType], table: str, key: str) -> Term:
    text = text.strip()
    if text in types:
        return _plain(text, types, table, key)
    match = _CALL.match(text)
    if match is None:
        return _plain(_unquote(text), types, table, key)
    name = match["name"].lower()
    name = _PLURAL.get(name, name)
    if name not in _ALLOWED:
        known = ", ".join([*_PLURAL, *sorted(_WITH_NUMBER)])
        raise _wrong(table, key, text, f"{name} is no transform; there are {known}")
    column, number = _arguments(match["arguments"], name, text, table, key)
    kind = _column_type(column, types, text, table, key).kind
    if kind not in _ALLOWED[name]:
        raise _wrong(table, key, text, f"{name} does not work on {column}, which is a {kind}")
    return Term(column, name, number)


def _arguments(
    arguments: str, name: str, text: str, table: str, key: str
) -> tuple[str, int | None]:
    if name not in _WITH_NUMBER:
        return _unquote(arguments.strip()), None
    first, comma, last = (part.strip() for part in arguments.partition(","))
    if _NUMBER.match(first):
        number, column = first, last
    elif comma and _NUMBER.match(last):
        number, column = last, first
    else:
        raise _wrong(table, key, text, f"write {name}(<number>, <column>)")
    return _unquote(column), int(number)


def _plain(column: str, types: Mapping[str, LogicalType], table: str, key: str) -> Term:
    kind = _column_type(column, types, column, table, key).kind
    if kind in (Kind.LIST, Kind.VARIANT):
        raise _wrong(table, key, column, f"it is a {kind}, which has no order and no partition")
    return Term(column)


def _column_type(
    column: str, types: Mapping[str, LogicalType], text: str, table: str, key: str
) -> LogicalType:
    found = types.get(column)
    if found is not None:
        return found
    near = difflib.get_close_matches(column, list(types), n=1)
    guess = f"; did you mean {near[0]}?" if near else ""
    raise _wrong(table, key, text, f"there is no column {column}{guess}")


def _unquote(name: str) -> str:
    for quote in ("`", '"'):
        if len(name) > 1 and name[0] == name[-1] == quote:
            return name[1:-1].replace(quote * 2, quote)
    return name


def _wrong(table: str, key: str, text: str, why: str) -> ConfigError:
    return ConfigError(
        "table.term",
        f"{key} of {table}: {text!r}: {why}",
        hint="terms are a column, year|month|day|hour(column), bucket(n, column) or"
        " truncate(n, column)",
    )
