"""What the logs of both servers may hold, and what may happen to a connection. No JVM."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.support.mysql import MysqlDatabase
from tidegate.config.platform import PlatformConfig
from tidegate.connectors.changes import ChangeBatch
from tidegate.connectors.mysql import capture
from tidegate.connectors.mysql.connector import MysqlConnector
from tidegate.connectors.mysql.settings import MysqlSettings
from tidegate.envelope.position import Position
from tidegate.jobs.capture import run_capture
from tidegate.jobs.deploy import deploy
from tidegate.lake.catalog import open_catalog
from tidegate.lake.change_log import ChangeLog
from tidegate.testing.mariadb_server import MariadbServer, running

pytestmark = pytest.mark.mysql

ITEMS = "CREATE TABLE items (id int PRIMARY KEY, name varchar(40), wide mediumtext)"
PATIENCE = 60.0


@pytest.fixture
def joined(any_db: MysqlDatabase) -> Position:
    any_db.sql(ITEMS)
    return capture.new_epoch(any_db.settings("items"))


def told(batches: list[ChangeBatch]) -> list[dict[str, object]]:
    rows = [row for batch in batches for row in batch.rows.to_pylist()]
    places = [row["position"] for row in rows]
    assert places == sorted(set(places))
    return rows


def same(rows: list[dict[str, object]]) -> list[dict[str, object]]:
    return [{name: v for name, v in row.items() if name != "captured_at"} for row in rows]


def held(batches: list[ChangeBatch]) -> str:
    return " ".join(hold.reason for batch in batches for hold in batch.holds)


def compressed(db: MysqlDatabase) -> tuple[str, str]:
    """How compression is turned on and off."""
    if db.server.flavour == "mariadb":
        return "SET GLOBAL log_bin_compress = 1", "SET GLOBAL log_bin_compress = 0"
    return "SET SESSION binlog_transaction_compression = 1", "DO 0"


def test_compressed_transactions_are_read_as_others(
    any_db: MysqlDatabase, joined: Position
) -> None:
    on, off = compressed(any_db)
    numbers = ", ".join(f"({n}, 'n{n}', repeat('w', 900))" for n in range(200))
    comment = "x" * 900
    try:
        any_db.sql(
            on,
            f"INSERT INTO items VALUES {numbers}",
            "BEGIN",
            "UPDATE items SET wide = repeat('v', 1000) WHERE id < 100",
            "UPDATE items SET wide = repeat('u', 1000) WHERE id < 100",
            "DELETE FROM items WHERE id >= 150",
            "COMMIT",
            f"ALTER TABLE items ADD COLUMN more int NULL COMMENT '{comment}'",
            f"ALTER TABLE items MODIFY name varchar(50) COMMENT '{comment}'",
        )
    finally:
        any_db.sql(off)
    any_db.sql("INSERT INTO items (id) VALUES (1000)")
    whole = any_db.changes(joined, "items")
    rows = told(whole)
    ops = [row["op"] for row in rows]
    assert (ops.count("c"), ops.count("u"), ops.count("d")) == (201, 200, 50)
    assert [row["after"][2] for row in rows[300:302]] == ["u" * 1000] * 2  # type: ignore[index]
    assert "without sending rows" in held(whole)
    file = any_db.rows("SHOW MASTER STATUS")[0][0]
    kinds = {str(event[2]) for event in any_db.rows(f"SHOW BINLOG EVENTS IN '{file}'")}
    assert any("ayload" in kind or "compressed" in kind for kind in kinds)
    small = any_db.changes(joined, "items", batch_bytes=8 * 4096)
    assert same(told(small)) == same(rows)
    for boundary in {batch.through for batch in small if batch.through is not None}:
        again = told(any_db.changes(boundary, "items"))
        later = [row for row in rows if str(row["position"]) > boundary.place]
        assert same(again) == same(later)


def test_checksums_may_change_between_files(any_db: MysqlDatabase, joined: Position) -> None:
    try:
        for number, kind in enumerate(("NONE", "CRC32", "NONE"), start=1):
            any_db.sql(
                f"SET GLOBAL binlog_checksum = '{kind}'",  # begins a new file
                f"INSERT INTO items VALUES ({number}, 'c', NULL)",
            )
        from_none = any_db.changes(joined, "items")
    finally:
        any_db.sql("SET GLOBAL binlog_checksum = 'CRC32'")
    assert [row["key"] for row in told(from_none)] == [["1"], ["2"], ["3"]]
    assert same(told(any_db.changes(joined, "items"))) == same(told(from_none))


def test_online_schema_change_tools_end_in_a_hold(any_db: MysqlDatabase, joined: Position) -> None:
    ghost = ("_items_gho", "_items_del")
    percona = ("_items_new", "_items_old")
    for new, old in (ghost, percona):
        start = capture.new_epoch(any_db.settings("items"))
        any_db.sql(
            f"CREATE TABLE {new} LIKE items",
            f"ALTER TABLE {new} ADD COLUMN extra_{new} int NOT NULL DEFAULT 3 FIRST",
            "INSERT INTO items (id, name) VALUES (1, 'before') ON DUPLICATE KEY UPDATE name = 'b'",
            f"INSERT INTO {new} (id, name, wide) SELECT id, name, wide FROM items",
        )
        quiet = any_db.changes(start, "items")
        assert held(quiet) == ""
        assert len(told(quiet)) == 1
        any_db.sql(
            f"RENAME TABLE items TO {old}, {new} TO items",
            f"DROP TABLE {old}",
            "UPDATE items SET name = concat(name, 'x')",
        )
        found = any_db.changes(start, "items")
        assert "renamed" in held(found)
        columns = [seen.schema.columns[0].name for b in found for seen in b.schemas]
        assert columns[-1] == f"extra_{new}"
        assert told(found)[-1]["after"][0] == "3"  # type: ignore[index]


def test_columns_that_move_come_and_go_in_one_statement(
    any_db: MysqlDatabase, joined: Position
) -> None:
    any_db.sql(
        "INSERT INTO items VALUES (1, 'a', 'w')",
        "ALTER TABLE items DROP COLUMN wide, ADD COLUMN first_one int NULL FIRST,"
        " ADD COLUMN wide int NULL AFTER id",
        "INSERT INTO items (id, name, wide) VALUES (2, 'b', 7)",
    )
    batches = any_db.changes(joined, "items")
    assert held(batches) == ""
    schemas = {seen.schema.schema_id: seen.schema for b in batches for seen in b.schemas}
    rows = [
        dict(
            zip((c.name for c in schemas[str(row["schema_id"])].columns), row["after"], strict=True)
        )  # type: ignore[call-overload]
        for row in told(batches)
    ]
    assert rows == [
        {"id": "1", "name": "a", "wide": "w"},
        {"first_one": None, "id": "2", "wide": "7", "name": "b"},
    ]


def test_what_is_not_understood_or_sends_no_rows_is_held(
    any_db: MysqlDatabase, joined: Position
) -> None:
    def reasons(*statements: str) -> str:
        start = capture.new_epoch(any_db.settings("items"))
        any_db.sql(*statements)
        return held(any_db.changes(start, "items"))

    assert "ALTER" in reasons("ALTER TABLE items MODIFY wide mediumtext FIRST")
    assert "not understood" in reasons("ALTER TABLE items ORDER BY name, id")
    assert "statement" in reasons(
        "SET SESSION binlog_format = STATEMENT", "INSERT INTO items (id) VALUES (1)"
    )
    assert "XA" in reasons(
        "XA START 'x'", "DELETE FROM items", "XA END 'x'", "XA PREPARE 'x'", "XA COMMIT 'x'"
    )
    assert reasons("CREATE TABLE alike LIKE items", "DROP TABLE alike") == ""
    assert "dropped" in reasons("DROP TABLE items", "CREATE TABLE items (id int PRIMARY KEY)")


@pytest.fixture
def following(
    any_db: MysqlDatabase, tmp_path: Path
) -> Iterator[Callable[[Callable[[], None]], list[str]]]:
    """Captures while something happens, until every row that was written is durable."""
    any_db.sql(ITEMS)
    pipeline = any_db.pipeline("items")
    platform = PlatformConfig.model_validate(
        {
            "lake": {"home": str(tmp_path / "home")},
            "retry": {"initial_wait_seconds": 0.1, "max_attempts": 50},
            "capture": {"commit_seconds": 0.2},
        }
    )
    deploy(pipeline, platform)
    log = ChangeLog(open_catalog(platform, pipeline), pipeline)

    def keys() -> list[str]:
        return [key[0] for key in log.table().scan().to_arrow()["key"].to_pylist()]

    def until(count: int) -> None:
        deadline = time.monotonic() + PATIENCE
        while len(keys()) < count:
            assert time.monotonic() < deadline
            assert thread.is_alive()
            time.sleep(0.1)  # polling the change log, not synchronising

    stop = threading.Event()
    thread = threading.Thread(
        target=run_capture, args=(pipeline, platform), kwargs={"until": None, "stop": stop}
    )

    def run(happen: Callable[[], None]) -> list[str]:
        thread.start()
        any_db.sql("INSERT INTO items (id) VALUES (1), (2)")
        until(2)
        happen()
        any_db.sql("INSERT INTO items (id) VALUES (3), (4)")
        until(4)
        return sorted(keys())

    yield run
    stop.set()
    thread.join(PATIENCE)
    assert not thread.is_alive()


def test_a_connection_that_is_killed_is_made_again(
    any_db: MysqlDatabase, following: Callable[[Callable[[], None]], list[str]]
) -> None:
    def kill() -> None:
        dumps = any_db.rows(
            "SELECT id FROM information_schema.processlist WHERE command LIKE 'Binlog Dump%'"
        )
        assert dumps
        for (number,) in dumps:
            any_db.sql(f"KILL {number}")

    assert following(kill) == ["1", "2", "3", "4"]


@pytest.mark.long
def test_a_server_that_restarts_is_followed_on(
    any_db: MysqlDatabase, following: Callable[[Callable[[], None]], list[str]]
) -> None:
    assert following(any_db.server.restart) == ["1", "2", "3", "4"]


@pytest.fixture
def secured(tmp_path: Path) -> Iterator[MariadbServer]:
    """MySQL 8 with its log encrypted at rest; it makes certificates by itself."""
    config = {
        "early-plugin-load": "keyring_file.so",
        "keyring-file-data": "keyring",  # in the data directory
        "binlog-encryption": "ON",
        "require-secure-transport": "OFF",
    }
    with running("mysql", config=config) as server:
        yield server


@pytest.mark.long
def test_an_encrypted_log_comes_over_tls_with_and_without_a_cached_password(
    secured: MariadbServer,
) -> None:
    secured.execute("CREATE DATABASE shop", "USE shop", ITEMS)
    db = MysqlDatabase(secured, "shop")
    secured.execute(
        "CREATE USER cdc IDENTIFIED WITH caching_sha2_password BY 'cdc-secret' REQUIRE SSL",
        "GRANT ALL ON *.* TO cdc",
    )
    login = {"username": "cdc", "password": "cdc-secret"}
    tls = db.pipeline("items", sslmode="require", **login)
    settings = MysqlSettings.of(tls, PlatformConfig(), None)
    report = MysqlConnector(tls, PlatformConfig()).validate()
    assert report.ok
    start = capture.new_epoch(settings)
    numbers = ", ".join(f"({n}, 'n', repeat('w', 900))" for n in range(3000))
    db.sql(f"INSERT INTO items VALUES {numbers}")
    for _ in range(2):  # the second time the server knows the password's digest
        with capture.open_changes(settings, start, "now") as stream:
            assert len(told(list(stream))) == 3000
        secured.execute("FLUSH PRIVILEGES")  # and forgets it
    refused = MysqlConnector(db.pipeline("items", **login), PlatformConfig()).validate()
    assert [problem.code for problem in refused.errors] == ["mysql.login"]
    ca = str(secured.data_dir / "ca.pem")
    verified = db.pipeline("items", sslmode="verify-ca", sslrootcert=ca, **login)
    assert MysqlConnector(verified, PlatformConfig()).validate().ok
