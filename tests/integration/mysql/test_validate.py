"""``validate`` on a real MariaDB: every problem at once, each with its fix. No JVM."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.mysql import MysqlDatabase
from tidegate.config.platform import PlatformConfig
from tidegate.connectors.mysql.connector import MysqlConnector
from tidegate.connectors.protocol import Problem, Severity, Source
from tidegate.connectors.registry import open_source
from tidegate.control.validation import validate_pipeline
from tidegate.errors import ConfigError
from tidegate.jobs.capture import run_capture
from tidegate.jobs.deploy import deploy
from tidegate.lake.catalog import open_catalog
from tidegate.lake.gate import Gate
from tidegate.names import TableId

pytestmark = pytest.mark.mysql


def problems(db: MysqlDatabase, *tables: str, **options: object) -> dict[str, Problem]:
    pipeline = db.pipeline(*tables, **options)
    report = MysqlConnector(pipeline, PlatformConfig()).validate()
    return {problem.code.removeprefix("mysql."): problem for problem in report.problems}


def test_a_sound_source_has_no_problem(any_db: MysqlDatabase) -> None:
    any_db.sql("CREATE TABLE items (id int PRIMARY KEY, note text)")
    assert problems(any_db, "items") == {}
    source: Source = open_source(any_db.pipeline("items"), PlatformConfig())
    assert source.open().system.startswith(("MariaDB 10.11", "MySQL 8.0"))
    assert source.facts(TableId(any_db.name, "items"), None).relation is not None
    assert source.facts(TableId(any_db.name, "none"), None).relation is None


@pytest.mark.usefixtures("server_settings")
def test_tables_are_checked_one_by_one(mysql_db: MysqlDatabase) -> None:
    mysql_db.sql(
        "CREATE TABLE keyless (id int)",
        "CREATE TABLE aisle (id int PRIMARY KEY) ENGINE = MyISAM",
        "CREATE TABLE named (id uuid PRIMARY KEY, text varchar(9) CHARACTER SET sjis,"
        " wide varchar(9) CHARACTER SET ucs2)",
        "CREATE TABLE child (id int PRIMARY KEY, p uuid, FOREIGN KEY (p) REFERENCES named (id)"
        " ON DELETE CASCADE)",
        "SET GLOBAL mysql56_temporal_format = OFF",
        "CREATE TABLE old (id int PRIMARY KEY, at datetime)",
        "CREATE VIEW seen AS SELECT 1 AS id",
    )
    found = problems(mysql_db, "keyless", "aisle", "named", "child", "old", "seen", "missing")
    assert found.keys() == {
        "no_key", "engine", "cascade", "old_temporal", "table_kind", "table_missing", "half_pairs"
    }  # fmt: skip
    assert found["half_pairs"].severity is Severity.WARNING
    assert "FORCE" in str(found["old_temporal"].fix_sql)
    assert "ENGINE = InnoDB" in str(found["engine"].fix_sql)
    assert "ADD PRIMARY KEY" in str(found["no_key"].fix_sql)
    lake = [{"sink_id": "l", "sink_type": "iceberg", "iceberg": {"write_mode": "append"}}]
    mysql_db.sql("CREATE TABLE fine (id int PRIMARY KEY)")
    assert problems(mysql_db, "fine", sinks=lake).keys() == {"write_mode"}


def test_tables_that_are_not_ready_are_held_and_the_others_flow(
    mysql_db: MysqlDatabase, platform: PlatformConfig
) -> None:
    mysql_db.sql(
        "CREATE TABLE items (id int PRIMARY KEY)",
        "CREATE TABLE keyless (id int)",
        "CREATE TABLE child (id int PRIMARY KEY, p int,"
        " FOREIGN KEY (p) REFERENCES items (id) ON DELETE CASCADE)",
    )
    pipeline = mysql_db.pipeline("items", "keyless", "child", "missing")
    deployed = deploy(pipeline, platform)
    held = {table.table.rpartition(".")[2]: table.reasons for table in deployed.held}
    assert held.keys() == {"keyless", "child", "missing"}
    assert ["[mysql.cascade]" in reason for reason in held["child"]] == [True]
    gate = Gate(open_catalog(platform, pipeline), pipeline, platform.gate)
    assert [str(gate.states()[table].state) for table in pipeline.source.tables] == [
        "open",
        "held",
        "held",
        "held",
    ]
    mysql_db.sql("INSERT INTO items VALUES (1)", "INSERT INTO keyless VALUES (1)")
    assert run_capture(pipeline, platform).rows >= 1
    assert deploy(pipeline, platform).status == "unchanged"
    mysql_db.sql("ALTER TABLE keyless ADD PRIMARY KEY (id)")
    assert len(deploy(pipeline, platform).held) == 2
    assert str(gate.states()[pipeline.source.tables[1]].state) == "open"


@pytest.fixture
def server_settings(mysql_db: MysqlDatabase) -> Iterator[None]:
    yield
    mysql_db.sql(
        "SET GLOBAL binlog_format = 'ROW'",
        "SET GLOBAL binlog_row_image = 'FULL'",
        "SET GLOBAL binlog_row_metadata = 'FULL'",
        "SET GLOBAL expire_logs_days = 0",
        "SET GLOBAL mysql56_temporal_format = ON",
    )


@pytest.mark.usefixtures("server_settings")
def test_the_servers_log_is_checked(mysql_db: MysqlDatabase) -> None:
    mysql_db.sql(
        "CREATE TABLE items (id int PRIMARY KEY)",
        "SET GLOBAL binlog_format = 'MIXED'",
        "SET GLOBAL binlog_row_image = 'MINIMAL'",
        "SET GLOBAL binlog_row_metadata = 'MINIMAL'",
        "SET GLOBAL binlog_expire_logs_seconds = 600",
    )
    found = problems(mysql_db, "items")
    assert found.keys() == {
        "binlog_format",
        "binlog_row_image",
        "binlog_row_metadata",
        "expiry",
    }
    assert found["binlog_row_image"].severity is Severity.WARNING, "such rows are read"
    assert found["binlog_format"].severity is Severity.ERROR
    assert "SET GLOBAL binlog_row_metadata = 'FULL'" in str(found["binlog_row_metadata"].fix_sql)


def test_names_and_numbers_that_the_lake_cannot_have_are_said(mysql_db: MysqlDatabase) -> None:
    mysql_db.sql("CREATE TABLE items (id int PRIMARY KEY, _cdc_op int, wide decimal(60,2))")
    report = validate_pipeline(mysql_db.pipeline("items"), PlatformConfig())
    found = {finding.code: finding for finding in report.findings}
    assert found["table.reserved_column"].severity == "error"
    assert "(wide)" in found["lake.numeric_as_text"].message


def test_tables_and_columns_that_may_not_be_read_are_named_and_not_left_out(
    any_db: MysqlDatabase,
) -> None:
    """The server's catalog hides them, as if they did not exist."""
    user = f"part_{any_db.name}"
    any_db.sql(
        "CREATE TABLE items (id int PRIMARY KEY, secret int)",
        "CREATE TABLE closed (id int PRIMARY KEY)",
        f"CREATE USER {user} IDENTIFIED BY 'part-secret'",
        f"GRANT SELECT (id) ON {any_db.name}.items TO {user}",
    )
    weak = {"username": user, "password": "part-secret"}
    pipeline = any_db.pipeline("items", "closed", **weak)
    source = MysqlConnector(pipeline, PlatformConfig())
    report = source.validate()
    refused = {p.table: p for p in report.errors if p.code == "mysql.select_privilege"}
    assert refused.keys() == {f"{any_db.name}.items", f"{any_db.name}.closed"}
    for table in pipeline.source.table_ids:
        with pytest.raises(ConfigError, match="SELECT command denied") as denied:
            source.discover(table)
        assert denied.value.code == "source.privilege"
    any_db.sql(*(str(problem.fix_sql) for problem in refused.values()))
    assert not {p.table for p in source.validate().errors} - {None}
    assert len(source.discover(pipeline.source.table_ids[0]).columns) == 2


def test_missing_privileges_are_named(mysql_db: MysqlDatabase) -> None:
    user = f"weak_{mysql_db.name}"
    mysql_db.sql(
        "CREATE TABLE items (id int PRIMARY KEY)",
        f"CREATE USER {user} IDENTIFIED BY 'weak-secret'",
        f"GRANT SELECT ON {mysql_db.name}.items TO {user}",
    )
    weak = {"username": user, "password": "weak-secret"}
    found = problems(mysql_db, "items", **weak)
    assert found.keys() == {"slave", "monitor"}
    assert str(found["slave"].fix_sql).startswith("GRANT REPLICATION SLAVE ON *.* TO")
