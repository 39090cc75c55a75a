"""Another server takes over: its log continues ours by GTID, or the reason why not is said."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace

import pytest

from tests.support.mysql import MysqlDatabase
from tidegate.config.platform import PlatformConfig
from tidegate.connectors.mysql import capture
from tidegate.connectors.mysql.connector import MysqlConnector
from tidegate.connectors.mysql.position import Place
from tidegate.envelope.position import Position
from tidegate.errors import FatalError
from tidegate.names import TableId
from tidegate.testing.mariadb_server import PASSWORD, USER, MariadbServer, running

pytestmark = pytest.mark.mysql

ITEMS = "CREATE TABLE items (id int PRIMARY KEY, name varchar(40))"
PATIENCE = 30.0


@dataclass(frozen=True, slots=True)
class Pair:
    """A primary and its replica, which logs what it replicates under file names of its own."""

    primary: MysqlDatabase
    replica: MysqlDatabase

    @property
    def is_mariadb(self) -> bool:
        return self.primary.server.flavour == "mariadb"

    def replicate(self) -> None:
        port = self.primary.server.port
        login = f"MASTER_HOST='127.0.0.1', MASTER_PORT={port}, MASTER_USER='{USER}'"
        how = "MASTER_USE_GTID=slave_pos" if self.is_mariadb else "GET_MASTER_PUBLIC_KEY=1"
        auto = "" if self.is_mariadb else ", MASTER_AUTO_POSITION=1"
        self.replica.server.execute(
            f"CHANGE MASTER TO {login}, MASTER_PASSWORD='{PASSWORD}', {how}{auto}", "START SLAVE"
        )

    def sync(self) -> None:
        """Until the replica has what the primary has."""
        if self.is_mariadb:
            place = self.primary.rows("SELECT @@gtid_binlog_pos")[0][0]
            asked = f"SELECT MASTER_GTID_WAIT('{place}', {PATIENCE})"
        else:
            place = self.primary.rows("SELECT @@gtid_executed")[0][0].replace("\n", "")
            asked = f"SELECT WAIT_FOR_EXECUTED_GTID_SET('{place}', {PATIENCE})"
        assert self.replica.server.execute(asked)[0][0] == 0

    def promote(self) -> None:
        self.replica.server.execute("STOP SLAVE", "RESET SLAVE ALL")


@pytest.fixture(scope="module", params=["mariadb", pytest.param("mysql", marks=pytest.mark.long)])
def servers(request: pytest.FixtureRequest) -> Iterator[tuple[MariadbServer, MariadbServer]]:
    both = {"log-slave-updates": "ON"}
    own = {**both, "log-bin": "other", "server-id": "12"}
    with ExitStack() as stack:
        primary = stack.enter_context(running(request.param, config=both))
        replica = stack.enter_context(running(request.param, config=own))
        yield primary, replica


@pytest.fixture
def pair(
    servers: tuple[MariadbServer, MariadbServer], request: pytest.FixtureRequest
) -> Iterator[Pair]:
    """Fresh logs on both, and files of the replica that are numbered higher."""
    primary, replica = servers
    for server in servers:
        server.execute("DROP DATABASE IF EXISTS shop", "RESET MASTER")
    if primary.flavour == "mariadb":
        replica.execute("SET GLOBAL gtid_slave_pos = ''")
    replica.execute("FLUSH BINARY LOGS", "FLUSH BINARY LOGS")
    made = Pair(MysqlDatabase(primary, "shop"), MysqlDatabase(replica, "shop"))
    made.replicate()
    primary.execute("CREATE DATABASE shop", "USE shop", ITEMS)
    yield made
    made.promote()


def keys(db: MysqlDatabase, after: Position) -> tuple[list[str], Position]:
    """What was captured, and through where."""
    batches = db.changes(after, "items")
    rows = [row for batch in batches for row in batch.rows.to_pylist()]
    places = [row["position"] for row in rows]
    assert places == sorted(set(places))
    assert all(place > after.place for place in places)
    through = batches[-1].through if batches else after
    assert through is not None
    return [row["key"][0] for row in rows], through


def insert(db: MysqlDatabase, *numbers: int) -> None:
    for number in numbers:
        db.sql(f"INSERT INTO items VALUES ({number}, 'n')")


def refusal(db: MysqlDatabase, after: Position) -> FatalError:
    with pytest.raises(FatalError) as refused:
        db.changes(after, "items")
    assert "recover" in refused.value.hint
    assert "shop.items" in refused.value.hint
    return refused.value


def test_a_replica_that_took_over_is_followed_without_a_sweep(pair: Pair) -> None:
    start = capture.new_epoch(pair.primary.settings("items"))
    insert(pair.primary, 1, 2, 3)
    seen, through = keys(pair.primary, start)
    assert seen == ["1", "2", "3"]
    insert(pair.primary, 4)  # not captured from the primary
    pair.sync()
    pair.promote()
    pair.replica.server.execute("FLUSH BINARY LOGS")
    insert(pair.replica, 5)

    source = MysqlConnector(pair.replica.pipeline("items"), PlatformConfig())
    source.check_history(through)  # what `tidegate recover` asks
    assert source.status(through).current > through
    with source.cut((TableId("shop", "items"),), head=through) as cut:
        assert cut.position.epoch == through.epoch
        assert cut.position > through
        insert(pair.replica, 6)
    seen, later = keys(pair.replica, through)
    assert seen == ["4", "5", "6"]
    assert (Place.of(later).term, later.epoch) == (1, start.epoch)

    insert(pair.replica, 7)
    assert keys(pair.replica, later)[0] == ["7"]  # from its own files again
    assert keys(pair.replica, through)[0] == ["4", "5", "6", "7"]  # killed before it was durable
    assert refusal(pair.primary, later).code == "source.diverged"  # the old one came back


def test_a_server_that_took_over_and_back_is_a_third_term(pair: Pair) -> None:
    start = capture.new_epoch(pair.primary.settings("items"))
    insert(pair.primary, 1)
    pair.sync()
    pair.promote()
    insert(pair.replica, 2)
    seen, through = keys(pair.replica, start)
    assert seen == ["1", "2"]
    back = Pair(pair.replica, pair.primary)
    if back.is_mariadb:
        at = pair.primary.rows("SELECT @@gtid_binlog_pos")[0][0]
        pair.primary.server.execute(f"SET GLOBAL gtid_slave_pos = '{at}'")
    back.replicate()
    insert(pair.replica, 3)
    back.sync()
    back.promote()
    insert(pair.primary, 4)
    seen, later = keys(pair.primary, through)
    assert seen == ["3", "4"]
    assert Place.of(later).term == 2


def test_a_replica_without_all_that_was_captured_is_refused(pair: Pair) -> None:
    start = capture.new_epoch(pair.primary.settings("items"))
    pair.sync()
    pair.promote()
    insert(pair.primary, 1, 2)  # never replicated
    _, through = keys(pair.primary, start)
    assert refusal(pair.replica, through).code == "source.diverged"
    insert(pair.replica, 11, 12, 13)  # the same numbers on MariaDB, by another server
    assert refusal(pair.replica, through).code == "source.diverged"
    assert keys(pair.replica, start)[0] == ["11", "12", "13"]  # nothing of it was lost


def test_a_replica_that_purged_its_log_is_refused(pair: Pair) -> None:
    start = capture.new_epoch(pair.primary.settings("items"))
    insert(pair.primary, 1)
    pair.sync()
    pair.promote()
    pair.replica.server.execute("FLUSH BINARY LOGS")
    name = pair.replica.server.execute("SHOW MASTER STATUS")[0][0]
    _wait_purged(pair.replica.server, str(name))
    assert refusal(pair.replica, start).code == "capture.log_purged"


def _wait_purged(server: MariadbServer, name: str) -> None:
    """MariaDB keeps what a dump that is ending still has open."""
    deadline = time.monotonic() + PATIENCE
    while True:
        server.execute(f"PURGE BINARY LOGS TO '{name}'")
        if server.execute("SHOW BINARY LOGS")[0][0] == name:
            return
        assert time.monotonic() < deadline
        time.sleep(0.05)  # polling a server, not synchronising


def test_without_gtids_another_server_is_refused(pair: Pair) -> None:
    start = capture.new_epoch(pair.primary.settings("items"))
    pair.sync()
    pair.promote()
    blind = replace(start, anchor=None)  # noted before GTIDs were, or where they are off
    assert refusal(pair.replica, blind).code == "source.other_system"
    insert(pair.primary, 1)
    seen, through = keys(pair.primary, blind)  # files are enough on the same server
    assert seen == ["1"]
    assert through.anchor is not None
    insert(pair.replica, 1)
    assert refusal(pair.replica, through).code == "source.diverged"
