"""Validation names every problem at once, before a table is published (I11)."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.postgres import SourceDatabase
from tidegate.config.pipeline import PipelineConfig
from tidegate.config.platform import PlatformConfig
from tidegate.connectors.postgres.connector import PostgresConnector
from tidegate.connectors.protocol import ValidationReport
from tidegate.control.validation import validate_pipeline
from tidegate.errors import ConfigError, RetriableError
from tidegate.testing.postgres_server import PASSWORD, running
from tidegate.testing.server_user import free_port

pytestmark = pytest.mark.postgres

APPEND = [{"sink_id": "lake", "sink_type": "iceberg", "iceberg": {"write_mode": "append"}}]


def validated(pipeline: PipelineConfig) -> ValidationReport:
    return PostgresConnector(pipeline, PlatformConfig()).validate()


def codes(report: ValidationReport) -> set[str]:
    return {problem.code for problem in report.errors}


def test_a_ready_source_has_no_errors(any_source_db: SourceDatabase) -> None:
    any_source_db.sql("CREATE TABLE items (id int PRIMARY KEY)")
    report = validated(any_source_db.pipeline("public.items"))
    assert report.ok
    assert {problem.code for problem in report.warnings} == {"postgres.wal_unbounded"}


@pytest.mark.parametrize(
    ("ddl", "code"),
    [
        ("SELECT 1", "table_missing"),
        ("CREATE VIEW items AS SELECT 1 AS id", "table_kind"),
        ("CREATE UNLOGGED TABLE items (id int PRIMARY KEY)", "table_unlogged"),
        ("CREATE TABLE items (id int)", "no_key"),
        ("CREATE TABLE items (id int PRIMARY KEY DEFERRABLE)", "deferrable_key"),
        (
            "CREATE TABLE items (id int PRIMARY KEY);ALTER TABLE items REPLICA IDENTITY NOTHING",
            "identity_nothing",
        ),
        (
            "CREATE TABLE items (a int, id int GENERATED ALWAYS AS (a * 2) STORED PRIMARY KEY)",
            "generated_key",
        ),
        (
            "CREATE TABLE items (id int PRIMARY KEY) PARTITION BY RANGE (id);"
            "CREATE TABLE leaf PARTITION OF items DEFAULT;"
            "ALTER TABLE items REPLICA IDENTITY FULL",
            "partition_identity",
        ),
    ],
)
def test_what_would_break_the_application_is_an_error(
    any_source_db: SourceDatabase, ddl: str, code: str
) -> None:
    any_source_db.sql(ddl)
    report = validated(any_source_db.pipeline("public.items"))
    assert codes(report) == {f"postgres.{code}"}


def test_deferrable_key_fix_makes_the_table_ready(source_db: SourceDatabase) -> None:
    source_db.sql("CREATE TABLE items (id int PRIMARY KEY DEFERRABLE)")
    pipeline = source_db.pipeline("public.items")
    (problem,) = validated(pipeline).errors
    assert problem.fix_sql is not None
    source_db.sql(problem.fix_sql.partition(", or")[0])
    report = validated(pipeline)
    assert report.ok and "postgres.keyless" in {p.code for p in report.warnings}


@pytest.mark.parametrize("lake", [{"write_mode": "history"}, {"soft_delete": True}])
def test_tables_without_a_key_are_rows_and_no_versions(
    source_db: SourceDatabase, lake: dict[str, Any]
) -> None:
    source_db.sql("CREATE TABLE items (id int)")
    sinks = [{"sink_id": "lake", "sink_type": "iceberg", "iceberg": lake}]
    kept, plain = (source_db.pipeline("public.items", sinks=s) for s in (sinks, ()))
    (problem,) = validated(plain).errors
    assert problem.code == "postgres.no_key" and problem.fix_sql is not None
    assert "FULL" not in str(validated(kept).errors[0].fix_sql), "it would not help there"
    source_db.sql(problem.fix_sql.partition(", or")[0])
    report = validated(plain)
    assert report.ok and "postgres.keyless" in {p.code for p in report.warnings}
    (refused,) = validated(kept).errors
    assert refused.code == "postgres.no_key" and "which of two equal rows" in refused.message


def test_tables_without_a_key_may_be_appended_under_full_identity(
    source_db: SourceDatabase,
) -> None:
    source_db.sql("CREATE TABLE items (id int)")
    pipeline = source_db.pipeline("public.items", sinks=APPEND)
    assert codes(validated(pipeline)) == {"postgres.no_identity"}
    source_db.sql("ALTER TABLE items REPLICA IDENTITY FULL")
    assert validated(pipeline).ok


def test_identity_index_is_the_key(source_db: SourceDatabase) -> None:
    source_db.sql(
        "CREATE TABLE items (id int PRIMARY KEY, a int NOT NULL, b int NOT NULL, c int)",
        "CREATE UNIQUE INDEX other ON items (b, a) INCLUDE (c)",
        "ALTER TABLE items REPLICA IDENTITY USING INDEX other",
    )
    pipeline = source_db.pipeline("public.items")
    report = validated(pipeline)
    assert report.ok
    assert "postgres.identity_index" in {problem.code for problem in report.warnings}
    table = pipeline.source.table_ids[0]
    schema = PostgresConnector(pipeline, PlatformConfig()).discover(table)
    assert [column.name for column in schema.key_columns] == ["b", "a"]


def limited(db: SourceDatabase, attributes: str = "") -> dict[str, Any]:
    role = f"limited_{db.name}"
    db.sql(f"CREATE ROLE {role} LOGIN {attributes} PASSWORD '{PASSWORD}'")
    return {"username": role}


def test_missing_privileges_are_all_in_one_report_and_their_fixes_work(
    any_source_db: SourceDatabase,
) -> None:
    db = any_source_db
    user = limited(db)
    db.sql(
        "CREATE SCHEMA own",
        "CREATE TABLE own.items (id int PRIMARY KEY)",
        "ALTER TABLE own.items ENABLE ROW LEVEL SECURITY",
    )
    pipeline = db.pipeline("own.items", "own.missing", **user)
    report = validated(pipeline)
    assert codes(report) == {
        "postgres.replication_privilege",
        "postgres.schema_privilege",
        "postgres.select_privilege",
        "postgres.row_security",
        "postgres.create_privilege",
        "postgres.ownership",
        "postgres.table_missing",
    }
    for problem in report.errors:
        if problem.fix_sql is not None:
            db.sql(problem.fix_sql)
    assert codes(validated(pipeline)) == {"postgres.table_missing"}


def test_membership_of_a_superuser_is_never_advised_and_ownership_is_said_once(
    source_db: SourceDatabase,
) -> None:
    db = source_db
    user = limited(db, "REPLICATION")
    role = user["username"]
    names = [f"t{n}" for n in range(9)]
    db.sql(*(f"CREATE TABLE {name} (id int PRIMARY KEY)" for name in names))
    db.sql(f"GRANT SELECT ON ALL TABLES IN SCHEMA public TO {role}")
    pipeline = db.pipeline(*(f"public.{name}" for name in names), **user)
    (problem,) = [p for p in validated(pipeline).errors if p.code == "postgres.ownership"]
    assert problem.table is None and "and 4 more" in problem.message
    assert "GRANT cdc_owner" in str(problem.fix_sql)
    assert "postgres" not in str(problem.fix_sql)
    # Nor of a role that somebody logs in as; of one that only owns, yes.
    db.sql(f"CREATE ROLE app_{role} LOGIN", f"CREATE ROLE owner_{role} NOLOGIN")
    for owner, advised in ((f"app_{role}", False), (f"owner_{role}", True)):
        db.sql(*(f"ALTER TABLE {name} OWNER TO {owner}" for name in names))
        (problem,) = [p for p in validated(pipeline).errors if p.code == "postgres.ownership"]
        assert (f'GRANT "{owner}" TO' in str(problem.fix_sql)) == advised
    db.sql(str(problem.fix_sql))
    assert codes(validated(pipeline)) == {"postgres.create_privilege"}


def test_what_looks_otherwise_in_the_lake_is_said_once_for_all_tables(
    source_db: SourceDatabase,
) -> None:
    db = source_db
    names = [f"t{n}" for n in range(8)]
    db.sql(
        *(
            f"CREATE TABLE {name} (id int PRIMARY KEY, amount numeric, exact numeric(9,2),"
            " code char(5), total int GENERATED ALWAYS AS (id * 2) STORED)"
            for name in names
        ),
        'CREATE TABLE odd (id int PRIMARY KEY, "Name" text, name text)',
        "CREATE TABLE taken (id int PRIMARY KEY, _cdc_op text)",
        "CREATE TABLE told (id int PRIMARY KEY, amount numeric, huge numeric(60,2))",
    )
    columns = {"amount": {"type": "decimal(38,9)"}, "huge": {"type": "string"}}
    sinks = [
        {
            "sink_id": "lake",
            "sink_type": "iceberg",
            "iceberg": {"tables": {"public.told": {"columns": columns}}},
        }
    ]
    tables = [f"public.{name}" for name in (*names, "odd", "taken", "told")]
    report = validate_pipeline(db.pipeline(*tables, sinks=sinks), PlatformConfig())
    found = {finding.code: finding for finding in report.findings}
    assert len(report.findings) == len(found) and not report.ok
    assert {code for code, one in found.items() if one.severity == "error"} == {
        "table.column_case",
        "table.reserved_column",
    }
    assert found["table.column_case"].table == "public.odd"
    for code, column in (
        ("postgres.generated_columns", "total"),
        ("lake.numeric_as_text", "amount"),
        ("lake.char_padding", "code"),
    ):
        assert found[code].table is None
        assert f"public.t4 ({column}) and 3 more" in found[code].message
    numeric = found["lake.numeric_as_text"]
    assert "public.told" not in numeric.message and "exact," not in numeric.message
    assert 'public.t0 → columns: {amount: {type: "decimal(38,9)"}}' in str(numeric.fix)


def test_every_partition_is_asked_for_its_own_privileges(source_db: SourceDatabase) -> None:
    db = source_db
    user = limited(db, "REPLICATION BYPASSRLS")
    role = user["username"]
    db.sql(
        f"CREATE ROLE owner_{role} NOLOGIN",
        f"GRANT owner_{role} TO {role}",
        "CREATE SCHEMA old",
        "CREATE TABLE items (id int PRIMARY KEY) PARTITION BY RANGE (id)",
        "CREATE TABLE items_a PARTITION OF items FOR VALUES FROM (0) TO (10)",
        "CREATE TABLE old.items_b PARTITION OF items FOR VALUES FROM (10) TO (20)",
        "CREATE TABLE items_c PARTITION OF items FOR VALUES FROM (20) TO (30)",
        f"ALTER TABLE items OWNER TO owner_{role}",
        f"ALTER TABLE items_c OWNER TO owner_{role}",
        f"GRANT CREATE ON DATABASE {db.name} TO {role}",
    )
    report = validated(db.pipeline("public.items", **user))
    assert codes(report) == {"postgres.partition_privilege"}
    assert {problem.table for problem in report.errors} == {"public.items"}
    fixes = [str(problem.fix_sql) for problem in report.errors]
    assert len(fixes) == 2 and 'GRANT SELECT ON "old"."items_b", "public"."items_a"' in fixes[1]
    db.sql(*fixes)
    assert codes(validated(db.pipeline("public.items", **user))) == set()


def test_foreign_publication_must_send_everything(any_source_db: SourceDatabase) -> None:
    db = any_source_db
    db.sql(
        "CREATE TABLE items (id int PRIMARY KEY)",
        "CREATE TABLE parts (id int PRIMARY KEY) PARTITION BY RANGE (id)",
        "CREATE TABLE more (id int PRIMARY KEY)",
        "CREATE TABLE wide (id int PRIMARY KEY, v text)",
        "CREATE PUBLICATION mine FOR TABLE items WHERE (id > 5), parts, wide (id)"
        " WITH (publish = 'insert')",
    )
    pipeline = db.pipeline(
        "public.items", "public.parts", "public.more", "public.wide", publication_name="mine"
    )
    assert codes(validated(pipeline)) == {
        "postgres.publication_tables",
        "postgres.publication_via_root",
        "postgres.publication_actions",
        "postgres.publication_filter",
        "postgres.publication_columns",
    }


def test_server_settings_are_checked() -> None:
    config = {"wal_level": "replica", "max_replication_slots": "0", "max_wal_senders": "1"}
    with running(16, config=config) as server:
        db = SourceDatabase(server, server.create_database("bare"))
        db.sql("CREATE TABLE items (id int PRIMARY KEY)")
        assert codes(validated(db.pipeline("public.items"))) == {
            "postgres.wal_level",
            "postgres.max_replication_slots_used_up",
            "postgres.max_wal_senders_used_up",
        }


def test_wrong_password_is_a_config_error_that_does_not_show_it(source_db: SourceDatabase) -> None:
    pipeline = source_db.pipeline("public.items", password="hunter2hunter2")
    with pytest.raises(ConfigError) as caught:
        validated(pipeline)
    assert caught.value.code == "source.login"
    assert "hunter2" not in str(caught.value)


def test_unreachable_server_is_retriable(source_db: SourceDatabase) -> None:
    pipeline = source_db.pipeline("public.items", host="127.0.0.1", port=free_port())
    with pytest.raises(RetriableError) as caught:
        validated(pipeline)
    assert caught.value.code == "source.unreachable"
