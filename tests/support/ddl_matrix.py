"""Kinds of DDL × moments × policies: many source tables in one pipeline, few runs.

What is done and what is expected is data (``tests/integration/postgres/ddl_matrix.yaml``); here is
how the tables of one moment are taken through it together.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatch
from functools import cached_property
from itertools import product
from pathlib import Path
from typing import Any, Final

import yaml

from tests.support.postgres import SourceDatabase
from tests.support.stack import Stack
from tidegate.control.schema_approval import Answer, approve
from tidegate.errors import TidegateError
from tidegate.jobs.apply import run_apply
from tidegate.jobs.capture import run_capture
from tidegate.lake.gate import TableGate
from tidegate.names import CDC_PREFIX

MOMENTS: Final = ("one_run", "between", "mid_batch", "during_sweep")
BYSTANDER: Final = "bystander"
DEADLINE: Final = 60.0
BEGINNING: Final[Mapping[str, Any]] = {
    "table": "id int PRIMARY KEY, v text, u int",
    "rows": ["INSERT INTO $t VALUES (1, 'a', 10), (2, 'b', 20), (3, 'c', 30)"],
    "before": ["INSERT INTO $t VALUES (4, 'd', 40)", "UPDATE $t SET u = 11 WHERE id = 1"],
    "after": [
        "INSERT INTO $t (id, v, u) VALUES (5, 'e', 50)",
        "UPDATE $t SET v = 'bb' WHERE id = 2",
        "DELETE FROM $t WHERE id = 3",
    ],
    "last": ["INSERT INTO $t (id) VALUES (9)"],
}


@dataclass(frozen=True)
class Case:
    """One table."""

    kind: str
    policy: str
    moment: str
    script: Mapping[str, Any]
    expect: Mapping[str, Any]

    @property
    def table(self) -> str:
        return f"{self.kind}__{self.policy}"

    @property
    def id(self) -> str:
        return f"{self.kind}-{self.policy}-{self.moment}"

    @property
    def options(self) -> dict[str, Any]:
        policies = self.expect.get("set")
        return {
            **self.expect.get("options", {}),
            **({"schema_changes": policies} if policies else {}),
        }

    @property
    def held(self) -> str | None:
        words = self.expect.get("held")
        return None if words is None else str(words).replace("$t", self.table)

    @property
    def answer(self) -> Sequence[str]:
        return self.expect.get("answer", ()) if self.held is not None else ()

    def told(self, part: str, publication: str) -> list[str]:
        """Statements of the script, or of what is expected."""
        own = self.expect.get(part, self.script.get(part, BEGINNING.get(part, ())))
        return [s.replace("$publication", publication).replace("$t", self.table) for s in own]


def cases(path: Path) -> Iterator[Case]:
    """Every kind in every moment under every policy."""
    for script in yaml.safe_load(path.read_text(encoding="utf-8")):
        moments = [moment for moment in MOMENTS if moment in script.get("moments", MOMENTS)]
        for policy, moment in product(script["policies"], moments):
            expect = dict(script["policies"][policy])
            expect |= expect.get(moment, {})
            yield Case(script["kind"], policy, moment, script, expect)


@dataclass
class Seen:
    """What became of a case."""

    reason: str | None = None  # that its gate was closed with
    errors: list[str] = field(default_factory=list)
    columns: list[str] = field(default_factory=list)
    types: dict[str, str] = field(default_factory=dict)
    fields: dict[str, int] = field(default_factory=dict)
    fields_before: dict[str, int] = field(default_factory=dict)
    rows: list[dict[str, Any]] = field(default_factory=list)
    source: list[dict[str, Any]] = field(default_factory=list)


class Matrix:
    """The cases of one moment, from their first sweep to the last row."""

    def __init__(self, stack: Stack, own: Sequence[Case]) -> None:
        self.stack = stack
        self.db: SourceDatabase = stack.db
        self.cases = own
        self.seen = {case.id: Seen() for case in own}
        self.flows = 0

    @cached_property
    def publication(self) -> str:
        return f"tidegate_{self.stack.pipeline.pipeline_id}"

    def run(self) -> dict[str, Seen]:
        self._begin()
        getattr(self, self.cases[0].moment)()
        for case, gate in zip(self.cases, self._gates().values(), strict=True):
            self.seen[case.id].reason = None if gate.state == "open" else gate.reason or "?"
        self._answer()
        for case in self.cases:
            self._execute(case, case.told("last", self.publication) if case.answer else ())
        self._flow()
        for case in self.cases:
            self._read(case, self.seen[case.id])
        return self.seen

    def one_run(self) -> None:
        """Each statement a transaction; all of them captured and applied at once."""
        for part in ("before", "ddl", "after"):
            self._all(part)
        self._flow()

    def mid_batch(self) -> None:
        """Rows before and after the change in one transaction."""
        for case in self.cases:
            parts = [case.told(part, self.publication) for part in ("before", "ddl", "after")]
            statements = [statement for part in parts for statement in part]
            if case.script.get("together", True):
                statements = ["BEGIN; " + "; ".join(statements) + "; COMMIT"]
            self._execute(case, statements)
        self._flow()

    def between(self) -> None:
        """A run has nothing but the change."""
        for part in ("before", "ddl", "after"):
            self._all(part)
            self._flow()

    def during_sweep(self) -> None:
        """The cut is taken; what locks a table waits for its end, and its sweep gives up."""
        self._all("before")
        threads: list[threading.Thread] = []

        def change(step: str, *_: Any, **__: Any) -> None:
            if threads or not step.endswith(BYSTANDER):
                return
            for case in self.cases:
                statements = case.told("ddl", self.publication)
                threads.append(threading.Thread(target=self._execute, args=(case, statements)))
            for thread in threads:
                thread.start()
            self._wait_for_locks(threads)

        alone = self.stack.platform.spark.model_copy(update={"table_parallelism": 1})
        shared = self.stack.platform
        self.stack.platform = shared.model_copy(update={"spark": alone})
        self.stack.sweep(*self._names([BYSTANDER]), *self._names(), progress=change)
        self.stack.platform = shared
        for thread in threads:
            thread.join(DEADLINE)
            assert not thread.is_alive()
        again = [name for name, gate in self._gates().items() if gate.state == "sweeping"]
        self.stack.sweep(*again)
        self._all("after")
        self._flow()

    def _begin(self) -> None:
        self.db.sql(f"CREATE TABLE {BYSTANDER} (id int PRIMARY KEY)")
        for case in self.cases:
            columns = str(case.script.get("table", BEGINNING["table"])).replace("$t", case.table)
            make = f"CREATE TABLE {case.table} ({columns}) {case.script.get('by', '')}"
            parts = [case.told(part, self.publication) for part in ("setup", "made", "rows")]
            self._execute(case, [*parts[0], make, *parts[1], *parts[2]])
        self.db.sql(f"INSERT INTO {BYSTANDER} VALUES (0)")
        self.stack.deploy()
        swept = self.stack.sweep()
        assert not swept.failed, [(t.table, t.error) for t in swept.tables if t.error]
        for case in self.cases:
            schema = self.stack.table(f"public.{case.table}").schema()
            self.seen[case.id].fields_before = {f.name: f.field_id for f in schema.fields}

    def _answer(self) -> None:
        """Approve and sweep, as each case has it."""
        for case in self.cases:
            if "approve" in case.answer:
                answer = Answer(case.expect.get("renames", {}), case.expect.get("casts", {}))
                try:
                    approve(
                        self.stack.pipeline,
                        self.stack.platform,
                        f"public.{case.table}",
                        answer,
                        actor="a person",
                    )
                except TidegateError as error:
                    self.seen[case.id].errors.append(f"{error.code}: {error.message}")
        swept = [case for case in self.cases if "sweep" in case.answer]
        for case in swept:
            self._execute(case, case.told("source", self.publication))
        if swept:
            result = self.stack.sweep(*(f"public.{case.table}" for case in swept))
            for case, table in zip(swept, result.tables, strict=True):
                if table.error is not None:
                    self.seen[case.id].errors.append(f"{table.error.code}: {table.error.message}")

    def _flow(self) -> None:
        """Capture and apply once; the bystander's row makes a commit of every capture."""
        self.flows += 1
        self.db.sql(f"INSERT INTO {BYSTANDER} VALUES ({self.flows})")
        run_capture(self.stack.pipeline, self.stack.platform)
        result = run_apply(
            self.stack.spark, self.stack.pipeline, self.stack.platform, run=f"flow{self.flows}"
        )
        by_table = {table.table: table for table in result.tables}
        for case in self.cases:
            table = by_table[f"public.{case.table}"]
            if table.status.value == "failed" and table.error is not None:
                self.seen[case.id].errors.append(f"{table.error.code}: {table.error.message}")

    def _gates(self) -> dict[str, TableGate]:
        states = self.stack.gate.states(self._names())
        return {name: states[name] for name in self._names()}

    def _read(self, case: Case, seen: Seen) -> None:
        schema = self.stack.table(f"public.{case.table}").schema()
        own = [f for f in schema.fields if not f.name.startswith(CDC_PREFIX)]
        seen.columns = [f.name for f in own]
        seen.types = {f.name: str(f.field_type) for f in own}
        seen.fields = {f.name: f.field_id for f in own}
        rows = self.stack.lake(f"public.{case.table}", *seen.columns)
        seen.rows = [dict(zip(seen.columns, row, strict=True)) for row in rows]
        if "lake" not in case.expect:
            with self.db.connect() as connection:
                found = connection.execute(f"SELECT * FROM {case.table}")
                names = [column.name for column in found.description]
                seen.source = [dict(zip(names, row, strict=True)) for row in found.fetchall()]

    def _names(self, tables: Sequence[str] | None = None) -> list[str]:
        return [f"public.{name}" for name in tables or [case.table for case in self.cases]]

    def _all(self, part: str) -> None:
        for case in self.cases:
            self._execute(case, case.told(part, self.publication))

    def _execute(self, case: Case, statements: Sequence[str]) -> None:
        try:
            self.db.sql(*statements)
        except Exception as error:
            error.add_note(f"{case.id}: {statements}")
            raise

    def _wait_for_locks(self, threads: Sequence[threading.Thread]) -> None:
        """Until each change is done or stands behind the cut's lock."""
        ends = time.monotonic() + DEADLINE
        waiting = (
            "SELECT count(*) FROM pg_stat_activity"
            " WHERE datname = current_database() AND wait_event_type = 'Lock'"
        )
        while sum(thread.is_alive() for thread in threads) > int(self.db.value(waiting)):
            assert time.monotonic() < ends, "a change neither ended nor waits for a lock"
            threads[0].join(0.05)


def differences(case: Case, seen: Seen) -> list[str]:
    """Where a case is not what its data says."""
    expect = case.expect
    found = [f"error: {error}" for error in seen.errors]
    if (case.held is None) is not (seen.reason is None) or (case.held or "") not in (
        seen.reason or ""
    ):
        found.append(f"held: wanted {case.held!r}, the reason was {seen.reason!r}")
    wanted = expect["columns"]
    if len(wanted) != len(seen.columns) or not all(map(fnmatch, seen.columns, wanted)):
        found.append(f"columns: wanted {wanted}, there are {seen.columns}")
        return found
    for name, type_ in expect.get("types", {}).items():
        if seen.types[name] != type_:
            found.append(f"type of {name}: wanted {type_}, it is {seen.types[name]}")
    for new, old in expect.get("fields", {}).items():
        if seen.fields[new] != seen.fields_before[old]:
            found.append(f"{new} is not the field that {old} was")
    rows = [tuple(row.values()) for row in seen.rows]
    same = _expected(expect, seen)
    if sorted(rows, key=repr) != sorted(same, key=repr):
        found.append(f"rows of {seen.columns}:\n  wanted {same}\n  found  {rows}")
    return found


def _expected(expect: Mapping[str, Any], seen: Seen) -> list[tuple[Any, ...]]:
    if "lake" in expect:
        return [tuple(row) for row in expect["lake"]]
    values = expect.get("values", {})
    own = {
        column: given
        for column in seen.columns
        for name, given in values.items()
        if fnmatch(column, name)
    }
    return [
        tuple(
            own[column].get(next(iter(row.values()))) if column in own else row[column]
            for column in seen.columns
        )
        for row in seen.source
    ]
