"""Does the lake hold what the source holds? Types, rows through every reader, counted policies."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg.table import Table

from tidegate.names import CDC_PREFIX
from tidegate.schema.types import LogicalType, parse_type
from tidegate.testing.conformance.canonical import Row, expected, rows_of
from tidegate.testing.conformance.cases import ValueCase
from tidegate.testing.conformance.lab import Lab
from tidegate.testing.conformance.packing import SECOND, Unit, expected_adjusted
from tidegate.testing.conformance.readers import Reader
from tidegate.testing.conformance.results import Failure, Report

_APPEND: Final = "append"
_HISTORY: Final = "history"
_SHOWN: Final = 3
_PUTS: Final = ("c", "u", "r")


@dataclass
class Judge:
    """Compares the lake tables of one unit with the source, as both are now."""

    lab: Lab
    unit: Unit
    readers: Mapping[str, Reader]
    report: Report

    def judge(self) -> None:
        """Every table of the unit; what does not hold goes to the report."""
        for letter, table in self.unit.tables.items():
            error = self.lab.errors.get(str(table))
            wanted = self._wanted_code(letter)
            if (error.code if error else None) != wanted:
                why = f"{table}: {error or 'no error'}, expected {wanted or 'no error'}"
                self._fail(self._all, "-", why)
            elif wanted is None:
                self._judge_table(letter)
            else:
                self.report.checks += 1

    def _judge_table(self, letter: str) -> None:
        target = self.lab.pipeline.target(self.unit.tables[letter])
        table = self.lab.lake_table(self.unit.tables[letter])
        if table is None:
            self._fail(self._all, "-", f"there is no lake table {target.name}")
            return
        types = lake_types(table)
        self._judge_types(letter, types)
        wanted = self._wanted(letter, types)
        mode = str(target.write_mode)
        for name, read in self.readers.items():
            found = _state(read(table), mode)
            if self.unit.event is None:
                self._judge_values(name, types, found, wanted)
            else:
                self.report.checks += 1
                self._compare(self._all, name, found, wanted, subset=mode == _APPEND)
        self._judge_letters(letter)
        if self.unit.event is None:
            self._judge_adjusted(str(self.unit.tables[letter]))

    def _judge_types(self, letter: str, types: dict[str, LogicalType]) -> None:
        if self.unit.event is not None:
            wanted = self.unit.event.lake.get(letter, {})
            whose = dict.fromkeys(wanted, self.unit.name)
        else:
            wanted = {c.name: c.lake for c in self.unit.cases if isinstance(c, ValueCase)}
            whose = {name: name for name in wanted}
        for column, type_ in wanted.items():
            if str(types.get(column)) != type_:
                why = f"{column} is {types.get(column)}, expected {type_}"
                self._fail([whose[column]], "-", why)

    def _wanted(self, letter: str, types: dict[str, LogicalType]) -> list[Row]:
        event = self.unit.event
        if event is not None and letter in event.rows:
            kinds = list(types.values())
            return [
                tuple(expected(kind, value) for kind, value in zip(kinds, row, strict=True))
                for row in event.rows[letter]
            ]
        table = self.unit.tables[letter]
        return self.lab.server.rows(self.lab.database, table, list(types.items()))

    def _judge_values(
        self, reader: str, types: dict[str, LogicalType], found: list[Row], source: list[Row]
    ) -> None:
        """Column by column, so that a failure names its case."""
        place = {name: at for at, name in enumerate(types)}
        lake = {row[place["id"]]: row for row in found}
        wanted = {row[place["id"]]: row for row in source}
        self._compare(self._all, reader, [(id_,) for id_ in lake], [(id_,) for id_ in wanted])
        for case in self.unit.cases:
            if not isinstance(case, ValueCase) or case.name not in place:
                continue
            self.report.checks += 1
            for id_, row in wanted.items():
                want = row[place[case.name]]
                number = int(id_) % SECOND
                if 0 < number <= len(case.values) and case.values[number - 1].given:
                    want = expected(types[case.name], case.values[number - 1].value)
                has = lake[id_][place[case.name]] if id_ in lake else "no row"
                if has != want:
                    sql = case.values[number - 1].sql if number else "NULL"
                    self._fail([case.name], reader, f"{_cut(sql)}: {_cut(has)}, not {_cut(want)}")

    def _judge_adjusted(self, table: str) -> None:
        counted = self.lab.adjusted.get(table, {})
        times = 2 if self.lab.path == "both" else 1
        for case in self.unit.cases:
            if isinstance(case, ValueCase):
                wanted = expected_adjusted(case, times)
                if counted.get(case.name, 0) != wanted:
                    why = f"{counted.get(case.name, 0)} adjusted values counted, not {wanted}"
                    self._fail([case.name], "-", why)

    def _judge_letters(self, letter: str) -> None:
        event = self.unit.event
        wanted = event.letters.get(letter, 0) if event is not None else 0
        found = self.lab.dead_letters(self.unit.tables[letter])
        if found != wanted:
            self._fail(self._all, "-", f"{found} dead letters, expected {wanted}")

    def _compare(
        self,
        cases: Sequence[str],
        reader: str,
        found: list[Row],
        wanted: list[Row],
        *,
        subset: bool = False,
    ) -> None:
        missing, more = _difference(wanted, found), _difference(found, wanted)
        if missing or (more and not subset):
            parts = [
                f"{len(rows)} {what}: {_cut('; '.join(map(str, rows[:_SHOWN])))}"
                for what, rows in (("missing", missing), ("not of the source", more))
                if rows
            ]
            self._fail(cases, reader, ", ".join(parts))

    def _wanted_code(self, letter: str) -> str | None:
        event = self.unit.event
        if event is None or letter != event.tables[0] or not event.fails:
            return None
        return event.fails.get("sweep" if self.lab.path == "sweep" else "log")

    @property
    def _all(self) -> list[str]:
        return [case.name for case in self.unit.cases]

    def _fail(self, cases: Sequence[str], reader: str, why: str) -> None:
        for case in cases:
            failure = Failure(case, self.lab.path, self.lab.mode, reader, why)
            self.report.failures.append(failure)


def lake_types(table: Table) -> dict[str, LogicalType]:
    """The columns that are the source's, in the lake's order."""
    found = {}
    for one in table.schema().fields:
        type_ = parse_type(str(one.field_type))
        if not one.name.startswith(CDC_PREFIX) and type_ is not None:
            found[one.name] = type_
    return found


def _state(table: Any, mode: str) -> list[Row]:
    """The rows as the source has them now; of ``append``, every row that was ever put."""
    if mode == _HISTORY:
        table = table.filter(table[f"{CDC_PREFIX}current"])
    elif mode == _APPEND:
        table = table.filter(pc.is_in(table[f"{CDC_PREFIX}op"], pa.array(_PUTS)))
    own = [name for name in table.schema.names if not name.startswith(CDC_PREFIX)]
    return rows_of(table.select(own))


def _difference(one: list[Row], other: list[Row]) -> list[Row]:
    """Rows of ``one`` that ``other`` has not (as often)."""
    return list((Counter(one) - Counter(other)).elements())


def _cut(value: Any, length: int = 160) -> str:
    text = str(value)
    return text if len(text) <= length else text[:length] + "…"
