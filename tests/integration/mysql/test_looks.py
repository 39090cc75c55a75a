"""The catalog as a second witness: what no statement of the log explains is told. No JVM."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.mysql import MysqlDatabase
from tidegate.config.pipeline import PipelineConfig
from tidegate.config.platform import PlatformConfig
from tidegate.connectors.mysql import sweep
from tidegate.errors import ConfigError
from tidegate.jobs.capture import run_capture
from tidegate.jobs.deploy import deploy
from tidegate.lake.catalog import open_catalog
from tidegate.lake.change_log import ChangeLog
from tidegate.lake.gate import Gate, GateState
from tidegate.lake.lineage import read_lineage
from tidegate.lake.schema_history import SchemaHistory
from tidegate.names import TableId

pytestmark = pytest.mark.mysql

ITEMS = "CREATE TABLE items (id int AUTO_INCREMENT PRIMARY KEY, a int)"
UNLOGGED = "SET SESSION sql_log_bin = 0"


class Captured:
    """A deployed pipeline that is captured round by round."""

    def __init__(self, db: MysqlDatabase, home: Path, *tables: str) -> None:
        self.db = db
        self.platform = PlatformConfig.model_validate({"lake": {"home": str(home)}})
        sinks = [{"sink_id": "lake", "sink_type": "iceberg"}]
        self.pipeline: PipelineConfig = db.pipeline(*tables, sinks=sinks)
        deploy(self.pipeline, self.platform)
        self.catalog = open_catalog(self.platform, self.pipeline)
        self.history = SchemaHistory(self.catalog, self.pipeline)
        self.log = ChangeLog(self.catalog, self.pipeline)

    def round(self, *statements: str) -> str:
        """Statements, a row, a capture; what no row told of the first table since the last."""
        since = self.log.head().captured_through
        self.db.sql(*statements)
        self.db.sql("INSERT INTO items (a) VALUES (1)")
        run_capture(self.pipeline, self.platform)
        target = self.pipeline.targets[0]
        lineage = read_lineage(self.history, target)
        return " ".join(lineage.unsent(since, self.log.head().captured_through))

    def state(self, table: str) -> GateState:
        name = str(TableId(self.db.name, table))
        return Gate(self.catalog, self.pipeline, self.platform.gate).states([name])[name].state


def test_a_change_that_no_statement_explains_is_told(any_db: MysqlDatabase, tmp_path: Path) -> None:
    any_db.sql(ITEMS)
    made = Captured(any_db, tmp_path / "home", "items")
    assert made.round() == ""
    assert made.round("ALTER TABLE items ADD COLUMN b int", "OPTIMIZE TABLE items") == ""
    assert made.round("TRUNCATE items", "FLUSH TABLES", "ANALYZE TABLE items") == ""
    assert made.round() == ""
    told = made.round(UNLOGGED, "ALTER TABLE items ADD COLUMN c int NOT NULL DEFAULT 5")
    assert "no statement" in told
    assert made.round() == ""  # told once, of the range it came in


def test_a_column_under_the_name_of_one_that_was_dropped_is_told_without_a_row(
    any_db: MysqlDatabase, tmp_path: Path
) -> None:
    any_db.sql(ITEMS, "CREATE TABLE quiet (id int PRIMARY KEY, a int, b int)")
    made = Captured(any_db, tmp_path / "home", "quiet", "items")
    assert made.round() == ""
    assert made.round("ALTER TABLE quiet DROP COLUMN a") == ""
    assert made.round("ALTER TABLE quiet ADD COLUMN c int") == ""
    assert "a was dropped" in made.round("ALTER TABLE quiet ADD COLUMN A int")
    assert "b was dropped" in made.round("ALTER TABLE quiet DROP COLUMN b, ADD COLUMN b int")


@pytest.mark.long
def test_a_restart_of_the_server_is_nothing(any_db: MysqlDatabase, tmp_path: Path) -> None:
    any_db.sql(ITEMS)
    made = Captured(any_db, tmp_path / "home", "items")
    assert made.round() == ""
    any_db.server.restart()
    assert made.round() == ""


def test_a_table_whose_rows_change_below_the_log_is_held_alone(
    any_db: MysqlDatabase, tmp_path: Path
) -> None:
    any_db.sql(ITEMS, "CREATE TABLE child (id int PRIMARY KEY, item int)")
    made = Captured(any_db, tmp_path / "home", "items", "child")
    made.round("ALTER TABLE child ADD FOREIGN KEY (item) REFERENCES items (id) ON DELETE CASCADE")
    assert (made.state("items"), made.state("child")) != (GateState.HELD, GateState.HELD)
    assert made.state("child") is GateState.HELD
    child = TableId(any_db.name, "child")
    head = made.log.head().captured_through
    settings = any_db.settings("items", "child")
    with sweep.open_cut(settings, settings.table_ids, head) as cut:
        with pytest.raises(ConfigError) as refused:
            cut.survey(child, cut.schema(child))
        items = TableId(any_db.name, "items")
        cut.survey(items, cut.schema(items))
    assert "foreign key" in refused.value.message
