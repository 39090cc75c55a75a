"""Running cases on paths and write modes, and judging what the lake holds."""

from __future__ import annotations

import time
import uuid
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from pyiceberg.table import Table

from tidegate.config.platform import PlatformConfig
from tidegate.names import CDC_PREFIX
from tidegate.observability.progress import Progress, silent
from tidegate.schema.types import LogicalType, parse_type
from tidegate.testing.conformance.canonical import Row, expected, rows_of
from tidegate.testing.conformance.cases import Case, EventCase, ValueCase
from tidegate.testing.conformance.lab import Lab, Server
from tidegate.testing.conformance.packing import SECOND, Unit, applies, expected_adjusted, pack
from tidegate.testing.conformance.readers import Reader
from tidegate.testing.conformance.source_text import source_rows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

UPSERT: Final = "upsert"
APPEND: Final = "append"
HISTORY: Final = "history"
_SHOWN: Final = 3
_PUTS: Final = ("c", "u", "r")


@dataclass(frozen=True, slots=True)
class Failure:
    """A case that does not hold."""

    case: str
    path: str
    mode: str
    reader: str
    why: str


@dataclass
class Report:
    """What a run of the suite showed on one server."""

    version: int
    cases: list[str] = field(default_factory=list)
    not_run: dict[str, str] = field(default_factory=dict)
    checks: int = 0
    """Comparisons of a case on a path, in a mode, through a reader."""
    failures: list[Failure] = field(default_factory=list)
    seconds: float = 0.0


def run(
    spark: SparkSession,
    platform: PlatformConfig,
    server: Server,
    cases: Sequence[Case],
    readers: Mapping[str, Reader],
    *,
    paths: Sequence[str],
    modes: Sequence[str] = (UPSERT,),
    progress: Progress = silent,
    lab: Callable[..., Lab] = Lab,
) -> Report:
    """Every case that has a meaning, on every path and in every mode."""
    began = time.monotonic()
    report = Report(server.version)
    there = server.extensions()
    known: list[Case] = []
    for case in cases:
        if not case.since <= report.version <= case.until:
            report.not_run[case.name] = f"PostgreSQL {report.version} does not know it"
        elif case.extension and case.extension not in there:
            report.not_run[case.name] = f"the server has no extension {case.extension}"
        else:
            known.append(case)
            report.cases.append(case.name)
    for mode in modes:
        for path in paths:
            own = [case for case in known if applies(case, report.version, path, mode)]
            if own:
                with server.database(_name()) as database:
                    made = lab(spark, platform, server, database, path, mode, pack(own), progress)
                    _run_lab(made, readers, report)
    _run_refused(spark, platform, server, known, report)
    report.seconds = round(time.monotonic() - began, 1)
    return report


def _run_lab(lab: Lab, readers: Mapping[str, Reader], report: Report) -> None:
    lab.prepare()
    try:
        lab.run()
        for unit in lab.units:
            Judge(lab, unit, readers, report).judge()
    finally:
        lab.close()


def _run_refused(
    spark: SparkSession,
    platform: PlatformConfig,
    server: Server,
    cases: Sequence[Case],
    report: Report,
) -> None:
    own = [case for case in cases if isinstance(case, EventCase) and case.refused]
    if not own:
        return
    with server.database(_name()) as database:
        lab = Lab(spark, platform, server, database, "validate", UPSERT, pack(own))
        lab.prepare()
        for unit in lab.units:
            wanted = unit.event.refused if unit.event else None
            codes = lab.problems(unit)
            report.checks += 1
            if wanted not in codes:
                why = f"validate should say {wanted}, it says {', '.join(codes) or 'nothing'}"
                report.failures.append(Failure(unit.name, "validate", UPSERT, "-", why))


def _name() -> str:
    return f"conformance_{uuid.uuid4().hex[:8]}"


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
            code = self.lab.errors.get(str(table))
            wanted = self._wanted_code(letter)
            if code != wanted:
                self._fail(self._all, "-", f"{table}: {code or 'no error'}, expected {wanted}")
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
                self._compare(self._all, name, found, wanted, subset=mode == APPEND)
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
        with self.lab.server.connect(self.lab.database) as connection:
            kind = connection.execute(
                "SELECT relkind::text FROM pg_catalog.pg_class WHERE oid = %s::regclass",
                (table.sql,),
            ).fetchone()
            return source_rows(connection, table, list(types.items()), only=kind[0] == "r")

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
    if mode == HISTORY:
        table = table.filter(table[f"{CDC_PREFIX}current"])
    elif mode == APPEND:
        ops = table[f"{CDC_PREFIX}op"].to_pylist()
        table = table.filter([op in _PUTS for op in ops])
    own = [name for name in table.schema.names if not name.startswith(CDC_PREFIX)]
    return rows_of(table.select(own))


def _difference(one: list[Row], other: list[Row]) -> list[Row]:
    """Rows of ``one`` that ``other`` has not (as often)."""
    return list((Counter(one) - Counter(other)).elements())


def _cut(value: Any, length: int = 160) -> str:
    text = str(value)
    return text if len(text) <= length else text[:length] + "…"
