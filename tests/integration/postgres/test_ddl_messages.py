"""The event trigger that notes columns in the log: exact where it is, never in anyone's way."""

from __future__ import annotations

import psycopg
import pytest

from tests.support.postgres import SourceDatabase
from tidegate.config.pipeline import PipelineConfig
from tidegate.config.platform import PlatformConfig
from tidegate.connectors.postgres.connector import PostgresConnector
from tidegate.jobs.capture import run_capture
from tidegate.jobs.deploy import deploy, undeploy
from tidegate.lake.catalog import open_catalog
from tidegate.lake.lineage import read_lineage
from tidegate.lake.schema_history import SchemaHistory
from tidegate.schema.diff import ChangeKind

pytestmark = pytest.mark.postgres

OBJECTS = """
SELECT evtname::text FROM pg_event_trigger
UNION ALL SELECT nspname::text FROM pg_namespace WHERE nspname LIKE 'tidegate%'
UNION ALL SELECT proname::text FROM pg_proc WHERE proname = 'tell_columns'
"""


@pytest.fixture
def db(any_source_db: SourceDatabase) -> SourceDatabase:
    any_source_db.sql(
        "CREATE TABLE t (id int PRIMARY KEY, x int, y int)", "ALTER TABLE t DROP COLUMN x"
    )
    return any_source_db


def kinds(platform: PlatformConfig, pipeline: PipelineConfig) -> list[list[ChangeKind]]:
    history = SchemaHistory(open_catalog(platform, pipeline), pipeline)
    lineage = read_lineage(history, pipeline.targets[0])
    steps = [lineage.step(index) for index in range(1, len(lineage.versions))]
    return [[change.kind for change in step.changes] for step in steps]


def said(platform: PlatformConfig, pipeline: PipelineConfig) -> str:
    report = PostgresConnector(pipeline, platform).validate()
    (found,) = [p.message for p in report.problems if p.code == "postgres.ddl_messages"]
    assert report.ok
    return found


def test_renames_are_certain_where_the_catalog_has_moved_on(
    db: SourceDatabase, platform: PlatformConfig
) -> None:
    """The same story without the trigger is a candidate that nobody can decide."""
    pipeline = db.pipeline("public.t")
    assert "deploy installs" in said(platform, pipeline)
    assert any("event trigger" in action for action in deploy(pipeline, platform).actions)
    assert deploy(pipeline, platform).status == "unchanged"
    assert "renames are certain" in said(platform, pipeline)
    db.sql("INSERT INTO t VALUES (1, 10)")
    assert run_capture(pipeline, platform).rows == 1
    db.sql(
        "BEGIN; ALTER TABLE t RENAME y TO z; INSERT INTO t VALUES (2, 20);"
        " ALTER TABLE t RENAME z TO q; ALTER TABLE t RENAME q TO w; INSERT INTO t VALUES (3, 30);"
        " COMMIT",
        "ALTER TABLE t DROP COLUMN w, ADD w int; INSERT INTO t VALUES (4, 40)",  # looks the same
        "SELECT pg_logical_emit_message(true, 'other', 'x'), pg_logical_emit_message(false,"
        " 'tidegate:' || current_database(), 'no one reads this')",
        "ALTER TABLE t ADD v text",  # no row follows
    )
    captured = run_capture(pipeline, platform)
    assert captured.rows == 3
    told = [[ChangeKind.RENAME], [ChangeKind.RENAME], [ChangeKind.REPLACE], [ChangeKind.ADD]]
    assert kinds(platform, pipeline) == told
    assert run_capture(pipeline, platform).rows == 0
    db.sql("ALTER TABLE t RENAME v TO u", "INSERT INTO t VALUES (5, 50, 'x')")
    run_capture(pipeline, platform)
    assert kinds(platform, pipeline) == [*told, [ChangeKind.RENAME]]


def test_rows_from_before_a_column_was_replaced_by_its_like_are_of_the_old_one(
    db: SourceDatabase, platform: PlatformConfig
) -> None:
    """When they are captured, the catalog has the new one under the same name and type."""
    pipeline = db.pipeline("public.t")
    deploy(pipeline, platform)
    db.sql("INSERT INTO t VALUES (1, 10)")
    run_capture(pipeline, platform)
    replaced = "ALTER TABLE t DROP COLUMN y, ADD y int"
    db.sql(
        "INSERT INTO t VALUES (2, 20)",
        f"BEGIN; INSERT INTO t VALUES (3, 30); {replaced}; INSERT INTO t VALUES (4, 40); COMMIT",
        "INSERT INTO t VALUES (5, 50)",
    )
    assert run_capture(pipeline, platform).rows == 4
    assert kinds(platform, pipeline) == [[ChangeKind.REPLACE]]
    history = SchemaHistory(open_catalog(platform, pipeline), pipeline)
    old, new = read_lineage(history, pipeline.targets[0]).versions
    assert len(old.seen) == 2  # by both captures
    assert new.since.place > old.seen[1].place
    assert [column.number for column in new.schema.columns] == [1, 4]


def test_a_rewrite_that_may_have_changed_values_is_noted_where_it_happened(
    db: SourceDatabase, platform: PlatformConfig
) -> None:
    pipeline = db.pipeline("public.t", "public.p")
    db.sql(
        "CREATE TABLE p (id int PRIMARY KEY, v int) PARTITION BY RANGE (id)",
        "CREATE TABLE p1 PARTITION OF p FOR VALUES FROM (0) TO (10)",
        "CREATE TABLE other (v int)",
    )
    deploy(pipeline, platform)

    def rewrites(table: str) -> int:
        ledger = SchemaHistory(open_catalog(platform, pipeline), pipeline).facts
        return len({e.facts.rewrite for e in ledger.all(table)} - {None})

    db.sql("INSERT INTO t VALUES (1, 10)", "INSERT INTO p VALUES (1, 10)")
    run_capture(pipeline, platform)
    harmless = (
        "ALTER TABLE t ALTER y TYPE bigint",
        "BEGIN; ALTER TABLE t ALTER y TYPE int; COMMIT",
        "VACUUM FULL t",
        "ALTER TABLE t ADD x uuid DEFAULT gen_random_uuid()",
        "ALTER TABLE other ALTER v TYPE int USING v + 1",
        "INSERT INTO t VALUES (2, 10)",
    )
    db.sql(*harmless)
    run_capture(pipeline, platform)
    assert (rewrites("public.t"), rewrites("public.p")) == (0, 0)
    db.sql(
        "ALTER TABLE t ALTER y TYPE int USING y + 1",  # leaves no other trace
        "INSERT INTO t VALUES (3, 10)",
        "CREATE FUNCTION migrate() RETURNS void LANGUAGE sql"
        " AS 'ALTER TABLE p ALTER v TYPE bigint USING -v'",
        "SELECT migrate()",
        "INSERT INTO p VALUES (2, 10)",
    )
    run_capture(pipeline, platform)
    assert (rewrites("public.t"), rewrites("public.p")) == (1, 1)


def test_undeploy_removes_exactly_what_was_made(
    db: SourceDatabase, platform: PlatformConfig
) -> None:
    pipeline = db.pipeline("public.t")
    db.sql(f"CREATE SCHEMA tidegate_{db.name}")  # the user's own, by chance
    deploy(pipeline, platform)
    assert len(db.rows(OBJECTS)) == 4
    assert any("event trigger" in a for a in undeploy(pipeline, platform, dry_run=True).actions)
    assert len(db.rows(OBJECTS)) == 4
    undeploy(pipeline, platform)
    assert db.rows(OBJECTS) == [(f"tidegate_{db.name}",)]
    db.sql(f"DROP SCHEMA tidegate_{db.name}")
    deploy(pipeline, platform)
    off = db.pipeline("public.t", ddl_messages="off")
    assert any("dropped" in action for action in deploy(off, platform).actions)
    assert db.rows(OBJECTS) == []
    assert "ddl_messages: off" in said(platform, off)
    deploy(pipeline, platform)
    undeploy(pipeline, platform)
    assert db.rows(OBJECTS) == []


def test_who_may_not_install_it_goes_on_without(
    db: SourceDatabase, platform: PlatformConfig
) -> None:
    db.sql(
        f"CREATE ROLE {db.name}_cdc LOGIN REPLICATION PASSWORD 'x'",
        f"GRANT CREATE ON DATABASE {db.name} TO {db.name}_cdc",
        f"ALTER TABLE t OWNER TO {db.name}_cdc",
    )
    pipeline = db.pipeline("public.t", username=f"{db.name}_cdc", password="x")
    assert not any("trigger" in action for action in deploy(pipeline, platform).actions)
    assert deploy(pipeline, platform).status == "unchanged"
    assert "may not install" in said(platform, pipeline)
    db.sql("ALTER TABLE t RENAME y TO z", "INSERT INTO t VALUES (1, 10)")
    assert run_capture(pipeline, platform).rows == 1
    undeploy(pipeline, platform)
    db.sql(f"DROP TABLE t; DROP OWNED BY {db.name}_cdc; DROP ROLE {db.name}_cdc")


def test_the_applications_ddl_never_fails_because_of_it(
    db: SourceDatabase, platform: PlatformConfig
) -> None:
    pipeline = db.pipeline("public.t")
    deploy(pipeline, platform)
    db.sql(
        f"CREATE ROLE {db.name}_app LOGIN PASSWORD 'x'",
        f"ALTER TABLE t OWNER TO {db.name}_app",
        f"GRANT CREATE ON SCHEMA public TO {db.name}_app",
    )
    with psycopg.connect(
        host="127.0.0.1",
        port=db.server.port,
        dbname=db.name,
        user=f"{db.name}_app",
        password="x",
        autocommit=True,
    ) as application:
        application.execute("ALTER TABLE t RENAME y TO z")  # told, by someone without rights
        application.execute("INSERT INTO t VALUES (1, 10)")
        run_capture(pipeline, platform)
        history = SchemaHistory(open_catalog(platform, pipeline), pipeline)
        assert [column.number for column in history.all()[-1].schema.columns] == [1, 3]
        db.sql("REVOKE EXECUTE ON ALL FUNCTIONS IN SCHEMA pg_catalog FROM PUBLIC")
        application.execute("ALTER TABLE t RENAME z TO w")
    db.sql("GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA pg_catalog TO PUBLIC")
    assert db.rows("SELECT w FROM t") == [(10,)]
    db.sql(
        "CREATE TABLE p (id int PRIMARY KEY) PARTITION BY RANGE (id)",
        "CREATE TABLE p1 PARTITION OF p FOR VALUES FROM (0) TO (10)",
        f"ALTER PUBLICATION tidegate_{db.name} ADD TABLE p",
    )
    with db.connect() as busy:  # its files are told without a lock on them
        busy.execute("BEGIN; LOCK TABLE p1 IN ACCESS EXCLUSIVE MODE")
        db.sql("SET statement_timeout = '20s'", "ALTER TABLE ONLY p ALTER id SET DEFAULT 7")
        busy.execute("ROLLBACK")
    db.sql("DROP PUBLICATION tidegate_" + db.name)
    db.sql("ALTER TABLE t RENAME w TO v")
    db.sql(f"DROP TABLE t; DROP OWNED BY {db.name}_app; DROP ROLE {db.name}_app")
