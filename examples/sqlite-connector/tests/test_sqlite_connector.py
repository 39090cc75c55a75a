"""SQLite passes the suite of ``tidegate.testing.connector``."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from tidegate.config.platform import PlatformConfig
from tidegate.connectors.cut import Cut
from tidegate.connectors.registry import open_source
from tidegate.errors import ConfigError, Decision
from tidegate.names import TableId
from tidegate.testing.connector import ConnectorSuite, Fault, Mistake, Subject, TypeSample


class SqliteSubject(Subject):
    source_type = "sqlite"
    interleaves = False

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._file = folder / "shop.db"
        with closing(sqlite3.connect(self._file)) as connection:
            connection.execute("PRAGMA journal_mode = wal")

    def table(self, name: str) -> TableId:
        return TableId("main", name)

    def source(self) -> dict[str, Any]:
        return {"database": str(self._file), "options": {"poll_seconds": 0.01}}

    def open(self, *tables: str, batch_bytes: int | None = None, **pipeline: Any) -> Any:
        limits = {} if batch_bytes is None else {"capture": {"max_batch_bytes": batch_bytes}}
        # What a stream waits for the file at most; a busy writer leaves it little room.
        sweep = {"lock_timeout_seconds": 8}
        platform = PlatformConfig.model_validate({**limits, "sweep": sweep})
        return open_source(self.pipeline(*tables, **pipeline), platform)

    def connect(self) -> sqlite3.Connection:
        return sqlite3.connect(self._file, timeout=30)

    @contextmanager
    def reader(self, cut: Cut) -> Iterator[sqlite3.Connection]:
        with closing(self.connect()) as connection:
            yield connection

    def objects(self) -> set[str]:
        return {row[0] for row in self.rows("SELECT type || ' ' || name FROM sqlite_master")} - {
            "table sqlite_sequence"  # made with the first AUTOINCREMENT, and never dropped
        }

    def types(self) -> tuple[TypeSample, ...]:
        return (
            TypeSample("INTEGER", ("-9223372036854775808", "9223372036854775807")),
            TypeSample("REAL", ("0.1", "9e999", "-9e999", "-1.5e300", "3")),
            TypeSample("TEXT", ("''", "'é漢🌊 \\ \" '''", "'NULL'", "char(10, 9)")),
            TypeSample("BLOB", ("x''", "x'00ff'")),
            TypeSample("NUMERIC", ("12.50", "'any'", "7")),
        )

    def mistakes(self) -> tuple[Mistake, ...]:
        text = self._folder / "not-a-database.txt"
        text.write_text("a text file that is long enough to have a header of a hundred bytes" * 2)
        return (
            Mistake("no file", {"database": str(self._folder / "gone.db")}, Decision.STOP),
            Mistake("no database", {"database": str(text)}, Decision.STOP),
        )

    def faults(self) -> tuple[Fault, ...]:
        return (Fault("the file is locked", self._locked),)

    @contextmanager
    def _locked(self) -> Iterator[None]:
        with closing(sqlite3.connect(self._file, isolation_level=None)) as connection:
            connection.execute("BEGIN EXCLUSIVE")
            yield


class TestSqlite(ConnectorSuite):
    @pytest.fixture
    def subject(self, tmp_path: Path) -> Subject:
        return SqliteSubject(tmp_path)


def test_options_are_checked_by_the_connector(tmp_path: Path) -> None:
    subject = SqliteSubject(tmp_path)
    with pytest.raises(ConfigError, match="did you mean poll_seconds") as refused:
        subject.open(options={"pol_seconds": 1})
    assert refused.value.code == "source.option"
    with pytest.raises(ConfigError, match="poll_seconds"):
        subject.open(options={"poll_seconds": 0})


def test_a_table_whose_columns_changed_is_held(tmp_path: Path) -> None:
    subject = SqliteSubject(tmp_path)
    subject.sql("CREATE TABLE items (id INTEGER PRIMARY KEY)")
    connector = subject.open("items")
    made = connector.provision("d", ours=True)
    subject.sql("ALTER TABLE items ADD COLUMN note TEXT", "INSERT INTO items VALUES (1, 'lost')")
    with connector.changes(made.start, until="now") as stream:
        (batch,) = stream
    assert [hold.table for hold in batch.holds] == ["main.items"]
    assert connector.plan("d") == ("replace the triggers of main.items",)
    assert connector.provision("d", ours=True).actions == ("triggers on main.items created",)
    assert connector.plan("d") == ()
