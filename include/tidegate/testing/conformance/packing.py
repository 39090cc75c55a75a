"""From cases to tables: value cases share wide tables, event cases have their own."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from tidegate.config.sinks import TableOptions
from tidegate.names import TableId, quote_sql
from tidegate.testing.conformance.cases import BATCH, Case, EventCase, ValueCase
from tidegate.testing.conformance.server import Dialect

COLUMNS: Final = 60
"""Columns of a shared table: few enough for a row's head to stay below a page."""
SECOND: Final = 1000
"""Added to the ids of rows that come by the log after a sweep."""

_PLACEHOLDER: Final = re.compile(r"\{([a-z])\}")


@dataclass(frozen=True, slots=True)
class Script:
    """What is executed on one path: DDL, then before the sweep, then batches after it."""

    ddl: list[str] = field(default_factory=list)
    before: list[str] = field(default_factory=list)
    batches: list[list[str]] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Unit:
    """Cases that stand or fall together: a shared table, or one event case."""

    name: str
    cases: tuple[Case, ...]
    tables: dict[str, TableId]
    options: dict[str, TableOptions]
    ddl: tuple[str, ...]
    before: tuple[str, ...]
    after: tuple[str, ...]
    rows: int = 0  # of a shared table, on one path

    @property
    def event(self) -> EventCase | None:
        case = self.cases[0]
        return case if isinstance(case, EventCase) else None

    def script(self, path: str) -> Script:
        """The unit on one path; ``batch`` only means something where there is a log."""
        if self.event is None:
            return self._values(path)
        if path == "sweep":
            return Script([*self.ddl], _plain([*self.before, *self.after]))
        if path == "log":
            return Script([*self.ddl], [], _batches([*self.before, *self.after]))
        return Script([*self.ddl], _plain(self.before), _batches(self.after))

    def _values(self, path: str) -> Script:
        first, second = [*self.before], [*self.after]
        match path:
            case "sweep":
                return Script([*self.ddl], first)
            case "log":
                return Script([*self.ddl], [], [first])
        return Script([*self.ddl], first, [second])


def pack(cases: Sequence[Case], dialect: Dialect) -> list[Unit]:
    """Units of ``cases``, those with shared tables first."""
    values = [case for case in cases if isinstance(case, ValueCase)]
    shared = [values[at : at + COLUMNS] for at in range(0, len(values), COLUMNS)]
    units = [_shared(f"values_{number}", own, dialect) for number, own in enumerate(shared, 1)]
    return [*units, *(_own(case, dialect) for case in cases if isinstance(case, EventCase))]


def _shared(name: str, cases: Sequence[ValueCase], dialect: Dialect) -> Unit:
    table, sql = dialect.table(name), dialect.sql(dialect.table(name))
    columns = ", ".join(f"{dialect.quote(case.name)} {case.type}" for case in cases)
    count = 1 + max(len(case.values) for case in cases)
    inserts = {
        start: tuple(_insert(sql, cases, number, start) for number in range(count))
        for start in (0, SECOND)
    }
    options = {case.name: case.options for case in cases if case.options.model_fields_set}
    return Unit(
        name,
        tuple(cases),
        {"t": table},
        {"t": TableOptions(columns=options)},
        (f"CREATE TABLE {sql} (id int PRIMARY KEY, {columns})",),
        inserts[0],
        inserts[SECOND],
        count,
    )


def _insert(table: str, cases: Sequence[ValueCase], number: int, start: int) -> str:
    """Row 0 is all NULL; row n has the n-th value of every case that has as many."""
    values = ", ".join(sql_value(case, number) for case in cases)
    return f"INSERT INTO {table} VALUES ({start + number}, {values})"


def sql_value(case: ValueCase, number: int) -> str:
    if 0 < number <= len(case.values):
        return case.values[number - 1].sql
    return "NULL" if case.nullable else case.values[0].sql


def _own(case: EventCase, dialect: Dialect) -> Unit:
    tables = {letter: _table(case, letter, dialect) for letter in case.tables}

    def named(text: str) -> str:
        return _PLACEHOLDER.sub(lambda match: dialect.sql(_table(case, match[1], dialect)), text)

    return Unit(
        case.name,
        (case,),
        tables,
        case.options,
        tuple(map(named, case.ddl)),
        tuple(map(named, case.before)),
        tuple(map(named, case.after)),
    )


def _table(case: EventCase, letter: str, dialect: Dialect) -> TableId:
    if letter in case.names:
        return dialect.table(TableId.parse(case.names[letter]).name)
    return dialect.table(case.name if letter == "t" else f"{case.name}_{letter}")


def _plain(entries: Sequence[str]) -> list[str]:
    return [entry for entry in entries if entry != BATCH]


def _batches(entries: Sequence[str]) -> list[list[str]]:
    found: list[list[str]] = [[]]
    for entry in entries:
        if entry == BATCH:
            found.append([])
        else:
            found[-1].append(entry)
    return found


def setups(cases: Sequence[Case]) -> Iterator[str]:
    """Extensions and types, each once."""
    seen: dict[str, None] = {}
    for case in cases:
        if case.extension:
            seen.setdefault(f"CREATE EXTENSION IF NOT EXISTS {quote_sql(case.extension)}")
        seen.update(dict.fromkeys(case.setup))
    yield from seen


def applies(case: Case, version: int, path: str, mode: str) -> bool:
    """Whether a case has a meaning on a server of ``version``, on ``path``, in ``mode``."""
    if not case.since <= version <= case.until:
        return False
    if isinstance(case, ValueCase):
        return True
    return case.refused is None and path in case.paths and mode in case.modes


def expected_adjusted(case: ValueCase, rows: Any) -> int:
    """How often a policy acts on ``rows`` rows that hold the case's values."""
    return sum(value.adjusted for value in case.values) * int(rows)
