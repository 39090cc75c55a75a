"""The fault tests' database on MariaDB: two tables, a writer that never rests, triggers' notes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import pymysql
from pyiceberg.catalog import Catalog

from tests.faults import comparison, source
from tests.faults.scenario import Scenario
from tests.support.mysql import MysqlDatabase
from tidegate.config.pipeline import PipelineConfig
from tidegate.lake.change_log import ChangeLog
from tidegate.lake.gate import GateState

KEYS: Final = {"accounts": ("id",), "lines": ("region", "number")}
_DDL: Final = (
    "CREATE TABLE accounts (id bigint PRIMARY KEY, name varchar(60) NOT NULL, note mediumtext,"
    " balance decimal(14,4), seen datetime(6))",
    "CREATE TABLE `lines` (region varchar(20), number int, amount decimal(10,2), done bit(1),"
    " PRIMARY KEY (region, number))",
    "INSERT INTO accounts SELECT seq, concat('account ', seq),"
    " IF(seq % 25, NULL, repeat('n', 900)),"
    " seq * 1.0001, '2024-01-01 00:00:00.000001' + INTERVAL seq HOUR FROM seq_1_to_2500",
    "INSERT INTO `lines` SELECT ELT(seq % 3 + 1, 'north', 'south', 'east'), seq, seq / 7, seq % 2"
    " FROM seq_1_to_400",
    "CREATE TABLE noted (seq bigint AUTO_INCREMENT PRIMARY KEY, tbl varchar(20), op char(1),"
    " subject text)",
)


def create(db: MysqlDatabase) -> None:
    """The tables with their first rows, and triggers that note every change from here on."""
    db.sql(*_DDL)
    for table, key in KEYS.items():
        for op, verb, row in (
            ("c", "INSERT", "NEW"),
            ("u", "UPDATE", "OLD"),
            ("d", "DELETE", "OLD"),
        ):
            named = ", ".join(f"{row}.{column}" for column in key)
            db.sql(
                f"CREATE TRIGGER {table}_{op} AFTER {verb} ON `{table}` FOR EACH ROW"
                f" INSERT INTO noted (tbl, op, subject) VALUES ('{table}', '{op}',"
                f" concat_ws('|', {named}))"
            )


class Writer(source.Writer):
    """Random transactions of one session, so that the notes are in the order of their commits."""

    def __init__(self, db: MysqlDatabase, seed: int) -> None:
        super().__init__(db, seed)  # type: ignore[arg-type]
        self.touched = {f"{db.name}.{table}": 0 for table in KEYS}
        self._mysql = db

    def _connected(self) -> None:
        with self._mysql.server.connect(self._mysql.name) as connection:
            cursor = connection.cursor()
            while not self._stop.is_set():
                with self._turn:
                    self._one(cursor)
                self._stop.wait(self.PACE)

    def _one(self, cursor: pymysql.cursors.Cursor) -> None:
        kept = self._random.random() >= 0.1
        cursor.execute("BEGIN")
        touched = [self._change(cursor) for _ in range(self._random.randint(1, 3))]
        cursor.execute("COMMIT" if kept else "ROLLBACK")
        if kept:
            self.committed += 1
            for table in filter(None, touched):
                self.touched[f"{self._mysql.name}.{table}"] += 1

    def _change(self, cursor: pymysql.cursors.Cursor) -> str | None:
        """The table that was changed; a statement that finds no row leaves no trace in the log."""
        dice, key = self._random.random(), self._some(2500)
        new = self._number()
        statements: tuple[tuple[str, tuple[Any, ...]], ...] = (
            (
                "UPDATE accounts SET balance = balance + 1 WHERE id BETWEEN %s AND %s",
                (key, key + 9),
            ),
            ("UPDATE accounts SET id = %s WHERE id = %s", (new, key)),
            ("DELETE FROM accounts WHERE id = %s", (key,)),
            # A row that stays as it is (NULL + 1) fires its trigger, but is not in the log.
            (
                "INSERT INTO accounts (id, name, balance, seen) VALUES (%s, 'new', 0, now(6))",
                (new,),
            ),
            ("UPDATE `lines` SET amount = -amount WHERE number %% 50 = %s", (key % 50,)),
            (
                "UPDATE `lines` SET region = 'moved' WHERE number = %s AND region <> 'moved'",
                (key % 400,),
            ),
            ("INSERT INTO `lines` VALUES ('west', %s, 1.25, 1)", (new,)),
            ("DELETE FROM `lines` WHERE number = %s", (key % 400,)),
        )
        statement, values = statements[int(dice * len(statements))]
        changed = cursor.execute(statement, values)
        return next(table for table in KEYS if table in statement) if changed else None


@dataclass
class MysqlScenario(Scenario):
    """Compared by plain SELECT and PyIceberg, and the change log by the triggers' notes."""

    def compare(self) -> None:
        catalog = self.catalog
        for table, key in KEYS.items():
            wanted, seen = self._rows(table), self._lake(catalog, table, key)
            missing, extra = wanted.keys() - seen.keys(), seen.keys() - wanted.keys()
            changed = [k for k in wanted.keys() & seen.keys() if wanted[k] != seen[k]]
            assert not (missing or extra or changed), (table, len(missing), len(extra), changed[:3])
            assert self.state(f"{self.db.name}.{table}").state is GateState.OPEN
        check_log(self.db, catalog, self.pipeline)  # type: ignore[arg-type]
        comparison.check_positions(catalog, self.pipeline)
        catalog.close()

    def _rows(self, table: str) -> dict[comparison.Key, comparison.Row]:
        names = [row[0] for row in self.db.rows(f"SHOW COLUMNS FROM `{table}`")]
        rows = [
            {
                name: v == b"\x01" if isinstance(v, bytes) else v
                for name, v in zip(names, row, strict=True)
            }
            for row in self.db.rows(f"SELECT * FROM `{table}`")
        ]
        return comparison.by_key(rows, KEYS[table])

    def _lake(
        self, catalog: Catalog, table: str, key: tuple[str, ...]
    ) -> dict[comparison.Key, comparison.Row]:
        return comparison.by_key(
            comparison.lake_rows(catalog, self.pipeline, f"{self.db.name}.{table}"), key
        )


def check_log(db: MysqlDatabase, catalog: Catalog, pipeline: PipelineConfig) -> None:
    """Every change that was noted is in the change log exactly once, in the order of commits."""
    log = ChangeLog(catalog, pipeline).table().scan().to_arrow()
    ids = log["event_id"].to_pylist()
    assert len(ids) == len(set(ids)), "an event is in the change log twice"
    rows = sorted(log.to_pylist(), key=lambda row: str(row["position"]))
    for table in KEYS:
        logged = [(r["op"], "|".join(r["key"])) for r in rows if r["table"] == f"{db.name}.{table}"]
        noted = db.rows(f"SELECT op, subject FROM noted WHERE tbl = '{table}' ORDER BY seq")
        assert logged == noted, f"{table}: {len(logged)} events of {len(noted)}, or in disorder"
        assert noted
