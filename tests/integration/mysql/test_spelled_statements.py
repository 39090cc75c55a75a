"""DDL, spelled at random on real servers: the lake's rows are the source's, or the table is held;
and nothing is held that need not be. No JVM."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable

import pytest

from tests.support.mysql import MysqlDatabase
from tests.support.mysql_replay import Replay
from tests.support.mysql_spelling import NAMES, Name, Part, Spelling, Text
from tidegate.connectors.mysql import capture

pytestmark = pytest.mark.mysql

TAKEN, OTHERS = 4, 2
"""Of the names; tables of the others are not taken."""


class Scenario:
    """A database whose tables change at random, captured now and then."""

    def __init__(self, db: MysqlDatabase, seed: int) -> None:
        self.db = db
        self.chance = random.Random(seed)
        self.spelling = Spelling(self.chance, db.server.flavour)
        names = self.chance.sample(NAMES, TAKEN + OTHERS)
        self.taken, self.others = names[:TAKEN], names[TAKEN:]
        self.number = itertools.count(1)
        self.columns: dict[str, list[str]] = {}
        self.said: list[str] = []
        for name in names:
            self.make(name)
        self.at = capture.new_epoch(db.settings(*self.taken))
        self.replays = {name: Replay(db, name) for name in self.taken}
        self.to_hold: set[str] = set()

    def make(self, name: str) -> None:
        quoted = self.quoted(name)
        self.db.sql(f"CREATE TABLE {quoted} (id int PRIMARY KEY, c0 int, c1 varchar(20))")
        self.db.sql(f"INSERT INTO {quoted} VALUES (1, 1, 'x'), (2, 2, 'y')")
        self.columns[name] = ["c0", "c1"]

    def quoted(self, name: str) -> str:
        return "`" + name.replace("`", "``") + "`"

    def table(self, name: str) -> Name:
        return Name(name, self.db.name)

    def run(self, *parts: Part, format_: str = "ROW", prefix: bool = True) -> None:
        """One statement in a session of its own."""
        session = self.spelling.session(*parts)
        statement = self.spelling.statement(session, *parts, prefix=prefix)
        self.said.append(f"{session}: {statement!r}")
        options = {"charset": session.charset}
        with self.db.server.connect(self.db.name, **options) as connection:
            cursor = connection.cursor()
            cursor.execute(f"SET SESSION binlog_format = {format_}, sql_mode = '{session.mode}'")
            cursor.execute(statement)

    def rows(self, name: str) -> None:
        """Some that are written, changed and deleted."""
        quoted, new = self.quoted(name), next(self.number) + 100
        column = self.columns[name][0]
        self.db.sql(
            f"INSERT INTO {quoted} (id, {column}) VALUES ({new}, 7)",
            f"UPDATE {quoted} SET {column} = {new} WHERE id = {self.chance.randint(1, new)}",
            f"DELETE FROM {quoted} WHERE id = {self.chance.randint(1, new)}",
        )

    def step(self) -> None:
        name = self.chance.choice((*self.taken, *self.others))
        flows: list[Callable[[str], bool]] = [
            self.harmless, self.harmless, self.harmless, self.add, self.add, self.drop_column,
            self.truncate, self.beside, self.rolled_back, self.brief,
        ]  # fmt: skip
        holds = [self.fill, self.rewrite, self.rename, self.anew, self.statement]
        way = self.chance.choice(flows if self.chance.random() < 0.75 else holds)
        if way(name) and way in holds:
            self.to_hold.add(name)
        for each in (*self.taken, *self.others):
            if self.chance.random() < 0.2:
                self.rows(each)

    def alter(self, name: str, *action: Part) -> bool:
        self.run("ALTER", "TABLE", self.table(name), *action)
        return True

    def harmless(self, name: str) -> bool:
        column = Name(self.chance.choice(self.columns[name]))
        index = Name(f"i{next(self.number)}")
        return self.alter(
            name,
            *self.chance.choice(
                [
                    ("AUTO_INCREMENT", "=", "77"),
                    ("COMMENT", "=", Text()),
                    ("ENGINE", "=", "InnoDB"),
                    ("FORCE",),
                    ("ALTER", "COLUMN", column, "SET", "DEFAULT", "NULL"),
                    ("ADD", "INDEX", index, "(", column, ")"),
                    ("ADD", "UNIQUE", "KEY", index, "(", Name("id"), ",", column, ")"),
                    ("ADD", "CONSTRAINT", index, "CHECK", "(", column, "IS", "NULL", "OR", "1=1)"),
                    ("DEFAULT", "CHARACTER", "SET", "utf8mb4", ",", "COMMENT", Text()),
                ]
            ),
        )

    def add(self, name: str) -> bool:
        column = f"n{next(self.number)}"
        self.columns[name].append(column)
        rest: list[tuple[Part, ...]] = [
            (), ("NULL",), ("DEFAULT", "NULL"), ("COMMENT", Text()), ("NULL", "COMMENT", Text()),
        ]  # fmt: skip
        optional = self.chance.choice(((), ("COLUMN",)))
        return self.alter(name, "ADD", *optional, Name(column), "int", *self.chance.choice(rest))

    def drop_column(self, name: str) -> bool:
        new = [column for column in self.columns[name] if column.startswith("n")]
        if not new:
            return self.add(name)
        column = self.chance.choice(new)
        self.columns[name].remove(column)
        return self.alter(name, "DROP", *self.chance.choice(((), ("COLUMN",))), Name(column))

    def truncate(self, name: str) -> bool:
        self.run("TRUNCATE", *self.chance.choice(((), ("TABLE",))), self.table(name))
        return True

    def beside(self, name: str) -> bool:
        """Others that name the table."""
        other = Name(f"o{next(self.number)}")
        self.run("CREATE", "TABLE", other, "LIKE", self.table(name), prefix=False)
        self.run(
            "CREATE", "VIEW", Name(f"v{other.text}"), "AS", "SELECT", "*", "FROM", self.table(name)
        )
        self.run("DROP", "TABLE", "IF", "EXISTS", other)
        return True

    def rolled_back(self, name: str) -> bool:
        quoted, column = self.quoted(name), self.columns[name][0]
        new, made = next(self.number) + 100, "CREATE TEMPORARY TABLE brief (i int)"
        change = f"UPDATE {quoted} SET {column} = {new}"
        self.db.sql("BEGIN", change, made, f"DELETE FROM {quoted}", "ROLLBACK")
        kept = f"INSERT INTO {quoted} (id) VALUES ({new})"
        self.db.sql("BEGIN", kept, "SAVEPOINT `S`", change, made, "ROLLBACK TO s", "COMMIT")
        return True

    def brief(self, name: str) -> bool:
        """A temporary table of the same name, in a session that logs statements."""
        quoted = self.quoted(name)
        self.db.sql(
            "SET SESSION binlog_format = STATEMENT",
            f"CREATE TEMPORARY TABLE {quoted} (i int)",
            f"ALTER TABLE {quoted} ADD x int NOT NULL DEFAULT 4",
            f"TRUNCATE {quoted}",
            f"DROP {self.chance.choice(('', 'TEMPORARY'))} TABLE {quoted}",
        )
        return True

    def fill(self, name: str) -> bool:
        column = f"n{next(self.number)}"
        self.columns[name].append(column)
        rest: list[tuple[Part, ...]] = [
            ("NOT", "NULL", "DEFAULT", "0"), ("DEFAULT", "5"),
            ("COMMENT", Text(), "DEFAULT", "(1+1)"),
            ("NULL", "DEFAULT", "6", "COMMENT", Text()),
        ]  # fmt: skip
        return self.alter(name, "ADD", Name(column), "int", *self.chance.choice(rest))

    def rewrite(self, name: str) -> bool:
        return self.alter(name, "MODIFY", Name("c1"), f"varchar({20 + next(self.number)})")

    def rename(self, name: str) -> bool:
        """Away and back, which nobody follows."""
        away = Name("elsewhere")
        self.run("RENAME", "TABLE", self.table(name), "TO", away)
        self.run("ALTER", "TABLE", away, "RENAME", "TO", self.table(name))
        return True

    def anew(self, name: str) -> bool:
        self.db.sql("DROP VIEW IF EXISTS " + ", ".join(self._views()) if self._views() else "DO 0")
        self.run("DROP", "TABLE", self.table(name), prefix=False)
        self.make(name)
        return True

    def statement(self, name: str) -> bool:
        """Whose tables cannot be told."""
        self.run("UPDATE", self.table(name), "SET", Name("c0"), "=", "9", format_="STATEMENT")
        self.to_hold |= set(self.taken)
        return True

    def _views(self) -> list[str]:
        found = self.db.rows(
            f"SELECT table_name FROM information_schema.views WHERE table_schema = '{self.db.name}'"
        )
        return [self.quoted(str(name)) for (name,) in found]

    def check(self) -> None:
        """Capture, compare; what is held is swept."""
        batches = self.db.changes(self.at, *self.taken)
        story = "\n".join(self.said)
        for name, replay in self.replays.items():
            replay.take(batches)
            assert bool(replay.held) == (name in self.to_hold), f"{name}: {replay.held}\n{story}"
            assert replay.is_right(), f"{name}\n{story}"
            if replay.held:
                self.replays[name] = Replay(self.db, name)
        for batch in batches:
            self.at = batch.through or self.at
        self.to_hold.clear()
        self.said.clear()


def play(db: MysqlDatabase, seed: int, steps: int) -> None:
    scenario = Scenario(db, seed)
    try:
        for _ in range(steps):
            scenario.step()
            if scenario.chance.random() < 0.3:
                scenario.check()
        scenario.check()
    finally:
        db.sql("FLUSH BINARY LOGS")  # other tests have the server print its newest file


def test_a_few_statements(any_db: MysqlDatabase) -> None:
    play(any_db, seed=1, steps=8)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(2, 8))
def test_many_statements(any_db: MysqlDatabase, seed: int) -> None:
    play(any_db, seed, steps=60)
