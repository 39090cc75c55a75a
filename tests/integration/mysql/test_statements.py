"""What statements do that send no rows, on real servers: found, and nothing else held. No JVM."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.mysql import MysqlDatabase, fresh_database
from tests.support.mysql_replay import Replay
from tidegate.connectors.mysql import capture
from tidegate.testing.mariadb_server import MariadbServer, running

pytestmark = pytest.mark.mysql

ITEMS = "CREATE TABLE items (id int PRIMARY KEY, a int, note varchar(20))"
ROWS = "INSERT INTO items VALUES (1, 10, 'x'), (2, 20, 'y')"
LATER = "INSERT INTO items (id, note) VALUES (3, 'z')"


class Source:
    """Tables that are captured over several rounds, as runs of a pipeline are."""

    def __init__(self, db: MysqlDatabase, *tables: str) -> None:
        self.db, self.tables = db, tables
        self.at = capture.new_epoch(db.settings(*tables))
        self.replays = [Replay(db, table) for table in tables]

    def round(self, *statements: str) -> str:
        """Statements of one session, then a capture; why the first table was held."""
        self.db.sql(*statements)
        batches = self.db.changes(self.at, *self.tables)
        for replay in self.replays:
            replay.held.clear()
            replay.take(batches)
        through = batches[-1].through
        assert through is not None
        self.at = through
        return " ".join(self.replays[0].held)

    @property
    def right(self) -> bool:
        return all(replay.is_right() for replay in self.replays)


@pytest.fixture
def items(any_db: MysqlDatabase) -> Source:
    any_db.sql(ITEMS, ROWS)
    return Source(any_db, "items")


def test_a_column_that_left_and_another_of_its_name_are_two(items: Source) -> None:
    assert "came back" in items.round(
        "ALTER TABLE items DROP COLUMN a, ADD COLUMN a int", "INSERT INTO items VALUES (4, 'u', 7)"
    )
    assert "came back" in items.round(  # no row tells it
        "ALTER TABLE items DROP COLUMN a", "ALTER TABLE items ADD COLUMN a int"
    )
    assert items.round("ALTER TABLE items DROP COLUMN a") == ""
    assert "came back" in items.round("ALTER TABLE items ADD COLUMN a int")


def test_a_truncate_before_any_row_has_the_columns_of_then(items: Source) -> None:
    """Captured late, when the table has a column more, which is no reason to think it came back."""
    held = items.round(
        "TRUNCATE items",
        "INSERT INTO items VALUES (5, 5, 'n')",
        "ALTER TABLE items ADD COLUMN more int",
        "INSERT INTO items VALUES (6, 6, 'n', 6)",
    )
    assert held == ""
    assert items.right


def test_what_is_logged_as_a_statement_holds_all_that_it_may_change(any_db: MysqlDatabase) -> None:
    any_db.sql(
        ITEMS,
        ROWS,
        "CREATE TABLE other (id int PRIMARY KEY)",
        "CREATE TRIGGER tr AFTER INSERT ON other FOR EACH ROW UPDATE items SET a = 1",
        "CREATE VIEW seen AS SELECT id, a FROM items",
        "SET GLOBAL log_bin_trust_function_creators = 1",
        "CREATE FUNCTION f(n int) RETURNS int MODIFIES SQL DATA BEGIN"
        " UPDATE items SET a = n; RETURN n; END",
    )
    source = Source(any_db, "items")
    for change in ("INSERT INTO other VALUES (1)", "SELECT f(5)", "UPDATE seen SET a = 3"):
        assert "statement" in source.round("SET SESSION binlog_format = STATEMENT", change), change
    assert source.round("INSERT INTO other VALUES (2)") == ""  # its rows are sent


def test_names_are_read_as_they_were_written(any_db: MysqlDatabase) -> None:
    names = ("we`ird", 'qu"ote', "größe", "a b", "TRUNCATE")
    quoted = [f"`{name.replace('`', '``')}`" for name in names]
    any_db.sql(*(f"CREATE TABLE {name} (id int PRIMARY KEY)" for name in quoted))
    any_db.sql(*(f"INSERT INTO {name} VALUES (1)" for name in quoted))
    source = Source(any_db, *names)
    with any_db.server.connect(any_db.name, charset="latin1") as session:
        session.cursor().execute("TRUNCATE größe")
    source.round(
        "TRUNCATE TABLE `we``ird`",
        "SET sql_mode = 'ANSI_QUOTES'",
        'TRUNCATE "qu""ote"',
        'ALTER TABLE /* "TRUNCATE" */ "a b" ADD COLUMN n int NOT NULL',
        f'TRUNCATE TABLE {any_db.name} . "TRUNCATE"',
    )
    assert source.right
    assert [bool(replay.held) for replay in source.replays] == [False, False, False, True, False]
    with any_db.server.connect(any_db.name, charset="latin1") as session:
        session.cursor().execute("DROP TABLE größe, `a b`")
    source.round("FLUSH BINARY LOGS")  # other tests have the server print its newest file
    assert [bool(replay.held) for replay in source.replays] == [False, False, True, True, False]


def test_columns_that_fill_old_rows_hold_and_others_flow(items: Source) -> None:
    assert "without sending" in items.round("ALTER TABLE items ADD s SERIAL")
    assert "without sending" in items.round(
        "SET explicit_defaults_for_timestamp = OFF, sql_mode = ''",
        "ALTER TABLE items ADD s1 timestamp",
    )
    assert items.round("ALTER TABLE items ADD s2 timestamp NULL", LATER) == ""
    assert "without sending" in items.round(
        "ALTER TABLE items ADD c1 int COMMENT '/*', ADD c2 int DEFAULT 5 COMMENT '*/'"
    )


def test_what_changes_no_value_holds_nothing(items: Source) -> None:
    held = items.round(
        "ALTER TABLE items AUTO_INCREMENT = 7",
        "ALTER TABLE items COMMENT = 'MODIFY note int'",
        "ALTER TABLE items ALTER a SET DEFAULT 5",
        "ALTER TABLE items ENGINE = InnoDB",
        "ALTER TABLE items PARTITION BY RANGE (id) (PARTITION p0 VALUES LESS THAN (100))",
        "ALTER TABLE items ADD PARTITION (PARTITION p1 VALUES LESS THAN (200))",
        "ALTER TABLE items REBUILD PARTITION p0, p1",
        "OPTIMIZE TABLE items",
        "SET SESSION binlog_format = STATEMENT",
        "CREATE TEMPORARY TABLE items (id int)",
        "ALTER TABLE items ADD q int NOT NULL DEFAULT 5",
        "TRUNCATE items",
        "DROP TEMPORARY TABLE items",
        "SET SESSION binlog_format = ROW",
        LATER,
    )
    assert held == ""
    assert items.right
    assert len(items.replays[0].rows()) == 3


def test_a_procedure_that_uses_temporary_tables_still_truncates(items: Source) -> None:
    """The server marks all of its statements as if they did."""
    held = items.round(
        "CREATE PROCEDURE p() BEGIN CREATE TEMPORARY TABLE x (i int); INSERT INTO x VALUES (1);"
        " TRUNCATE items; INSERT INTO items VALUES (7, 7, 'p'); DROP TEMPORARY TABLE x; END",
        "CALL p()",
    )
    assert held == ""
    assert items.right
    assert "without sending" in items.round(
        "CREATE PROCEDURE q() BEGIN CREATE TEMPORARY TABLE x (i int);"
        " ALTER TABLE items ADD n int DEFAULT 4; END",
        "CALL q()",
    )


def test_a_temporary_table_that_stays_open_is_doubtful(items: Source) -> None:
    """What its session says in the next round could not be told from what it says of the table."""
    with items.db.server.connect(items.db.name) as session:
        session.cursor().execute("SET SESSION binlog_format = STATEMENT")
        session.cursor().execute("CREATE TEMPORARY TABLE items (id int)")
        assert "temporary" in items.round()


def test_mariadbs_own_statements_are_read(mysql_db: MysqlDatabase) -> None:
    mysql_db.sql(ITEMS, ROWS, "CREATE TABLE others LIKE items")
    source = Source(mysql_db, "items", "others")
    assert "without sending" in source.round(
        "SET STATEMENT lock_wait_timeout=5 FOR ALTER TABLE items ADD n int DEFAULT 5"
    )
    assert source.round("SET STATEMENT lock_wait_timeout=5 FOR TRUNCATE items", LATER) == ""
    assert source.right
    assert "statement" in source.round(
        "SET binlog_format = STATEMENT", "ANALYZE UPDATE items SET a = 9"
    )
    assert "dropped" in source.round("CREATE OR REPLACE TABLE items LIKE others")
    assert not source.replays[1].held
    assert "not understood" in source.round("SET STATEMENT sql_mode='' FOR TRUNCATE others")
    assert "dropped" in source.round(f"CREATE OR REPLACE DATABASE {mysql_db.name}")


def test_a_long_alter_is_one_statement(mysql_db: MysqlDatabase) -> None:
    """MariaDB may log it when it begins, and again when it is done."""
    mysql_db.sql(ITEMS, ROWS)
    source = Source(mysql_db, "items")
    twice = "SET SESSION binlog_alter_two_phase = 1"
    assert source.round(twice, "ALTER TABLE items DROP COLUMN a, ALGORITHM=COPY", LATER) == ""
    assert "without sending" in source.round(twice, "ALTER TABLE items MODIFY note text")
    assert source.right


def test_a_foreign_key_that_changes_rows_holds_that_table_only(any_db: MysqlDatabase) -> None:
    any_db.sql(
        ITEMS,
        ROWS,
        "CREATE TABLE child (id int PRIMARY KEY, item int)",
        "INSERT INTO child VALUES (1, 1)",
    )
    source = Source(any_db, "child", "items")
    added = "ALTER TABLE child ADD FOREIGN KEY (item) REFERENCES items (id) ON DELETE"
    assert source.round(f"{added} RESTRICT") == ""
    assert "foreign key" in source.round(f"{added} CASCADE")
    assert "foreign key" in source.round("INSERT INTO items VALUES (5, 5, '')")  # it is still there
    assert not source.replays[1].held


@pytest.fixture(scope="module")
def folding() -> Iterator[MariadbServer]:
    """A server that does not tell names by case."""
    with running(config={"lower-case-table-names": "1"}) as server:
        yield server


def test_names_are_told_as_the_server_tells_them(folding: MariadbServer) -> None:
    with fresh_database(folding) as db:
        db.sql(ITEMS, ROWS)
        source = Source(db, "items")
        capital = Source(db, "Items")
        assert source.round("TRUNCATE TABLE Items", LATER) == ""
        assert capital.round() == ""
        assert source.right
        assert capital.right
        assert "without sending" in source.round("ALTER TABLE ITEMS ADD x int NOT NULL DEFAULT 5")
