"""A pipeline's Dags on a real PostgreSQL, real Spark and a real lake, with a secret to look for."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.dags.conftest import PROJECT, Airflow
from tests.support.postgres import SourceDatabase
from tidegate.config.loader import load_pipeline, load_platform
from tidegate.config.secrets import Secrets, apply_secrets
from tidegate.control.audit import audit
from tidegate.control.offsets import offsets
from tidegate.jobs.deploy import deploy
from tidegate.lake.audit_trail import AuditTrail
from tidegate.lake.catalog import open_catalog
from tidegate.lake.gate import Gate
from tidegate.names import TableId

pytestmark = [
    pytest.mark.spark,
    pytest.mark.postgres,
    pytest.mark.airflow,
    pytest.mark.timeout(1800),  # eight JVMs and seven Airflows, one after the other
]

SECRET = "canary-secret-8e2f"
ROW = "canary-row-8e2f"


@pytest.fixture
def shop(
    airflow: Airflow, pipelines: Path, platform_file: Path, source_db: SourceDatabase
) -> Airflow:
    """A deployed pipeline of two tables; its password is in an Airflow connection only."""
    name = source_db.name
    source_db.sql(
        "CREATE TABLE customers (id int PRIMARY KEY, name text)",
        "CREATE TABLE orders (id int PRIMARY KEY, amount numeric(12,2),"
        " placed timestamptz DEFAULT '2026-03-01 12:00+00')",
        f"INSERT INTO customers SELECT n, '{ROW}' FROM generate_series(1, 50) n",
        "INSERT INTO orders SELECT n, n * 1.5 FROM generate_series(1, 50) n",
        f"CREATE ROLE cdc_{name} LOGIN SUPERUSER REPLICATION PASSWORD '{SECRET}'",
    )
    file = pipelines / f"{name}.yaml"
    file.write_text(
        f"pipeline_id: {name}\n"
        "source:\n"
        f"  database: {name}\n"
        "  connection_id: shop_db\n"
        "  tables: [public.customers, public.orders]\n"
        "sinks:\n"
        "- sink_id: lake\n"
        "  sink_type: iceberg\n"
        "  iceberg: {tables: {public.orders: {reload: {time_column: placed}}}}\n"
    )
    secrets = Secrets.model_validate(
        {
            "host": "127.0.0.1",
            "port": source_db.server.port,
            "username": f"cdc_{name}",
            "password": SECRET,
        }
    )
    deploy(apply_secrets(load_pipeline(file), secrets), load_platform(platform_file))
    airflow.environment |= {
        "AIRFLOW__CORE__DAGS_FOLDER": str(PROJECT / "dags"),
        "TIDEGATE_PIPELINES_DIR": str(pipelines),
        "TIDEGATE_PLATFORM_FILE": str(platform_file),
        "AIRFLOW_CONN_SHOP_DB": json.dumps(
            {
                "conn_type": "postgres",
                "host": "127.0.0.1",
                "port": source_db.server.port,
                "login": f"cdc_{name}",
                "password": SECRET,
            }
        ),
    }
    return airflow


def test_first_load_changes_a_held_table_and_verification(
    shop: Airflow, source_db: SourceDatabase, pipelines: Path, platform_file: Path
) -> None:
    name = source_db.name

    # Nothing in the lake yet: the changes Dag starts the sweep Dag by itself.
    run = shop.run(f"{name}__changes")
    assert run.state == "success", run.output
    assert run.tasks["first_sweep"] == "success", run.output
    assert run.tasks["apply_open"] == "success"
    assert "First sweep of public.customers, public.orders" in run.output

    run = shop.run(f"{name}__sweep", json.dumps({"reason": "first load"}))
    assert run.tasks["sweep"] == "success", run.output
    assert run.state == "success"
    assert "public.customers: swept" in run.output

    # One gate is closed: that table's changes wait, the other's flow.
    pipeline = load_pipeline(pipelines / f"{name}.yaml")
    platform = load_platform(platform_file)
    catalog = open_catalog(platform, pipeline)
    (swept, *_) = AuditTrail(catalog, pipeline).entries()
    assert (swept.action, swept.outcome) == ("sweep", "done")
    assert (swept.actor, swept.surface) == ("dag_test", "airflow"), "whom Airflow names"
    Gate(catalog, pipeline, platform.gate).hold(["public.orders"], "counting stock", "ann")
    catalog.close()
    source_db.sql(
        f"INSERT INTO customers VALUES (51, '{ROW}')",
        "UPDATE orders SET amount = 0 WHERE id = 1",
    )
    platform_file.write_text(
        platform_file.read_text().replace("wait_seconds: 60", "wait_seconds: 1")
    )
    run = shop.run(f"{name}__changes")
    assert run.state == "success", run.output
    assert "public.customers: applied, inserted 1" in run.output
    assert run.tasks["gate[0]"] == "skipped"
    assert run.tasks["apply_held[0]"] == "skipped"
    assert "counting stock" in run.output

    catalog = open_catalog(platform, pipeline)
    Gate(catalog, pipeline, platform.gate).open(["public.orders"], "done", "ann")
    catalog.close()
    run = shop.run(f"{name}__verify")
    assert run.state == "success", run.output
    assert "public.orders: equal" in run.output
    assert "verified through" in run.output and "coverage 100.0" in run.output
    assert "public.customers: equal" in run.output

    # Back to the sweep's cut: the one change since is applied again, and who asked is kept.
    before = offsets(pipeline, platform, ["public.customers"]).tables[0]
    move = {"table": "public.customers", "position": before.lowest, "reason": "look again"}
    run = shop.run(f"{name}__offsets", json.dumps({**move, "expect": before.position}))
    assert (run.state, run.tasks["set_offset"]) == ("success", "success"), run.output
    assert offsets(pipeline, platform, ["public.customers"]).tables[0].position == before.lowest
    (moved, *_) = audit(pipeline, platform).entries
    assert (moved.action, moved.outcome, moved.actor) == ("set offset", "done", "dag_test")
    assert (moved.details["changes"], moved.details["reason"]) == (1, "look again")

    # A change that nobody sent: its day is read again.
    publication = f"ALTER PUBLICATION {pipeline.publication_name} SET (publish = '{{}}')"
    source_db.sql(
        publication.format("insert"),
        "UPDATE orders SET amount = 77 WHERE id = 7",
        publication.format("insert, update, delete, truncate"),
    )
    run = shop.run(f"{name}__reload", "{}", "2026-03-02T06:00:00+00:00")
    assert (run.state, run.tasks["reload"]) == ("success", "success"), run.output
    assert "public.orders: repaired" in run.output and "repaired 1" in run.output

    # The slot is gone, and with it changes: what lost some is swept, and has them again.
    source_db.sql(
        f"SELECT pg_drop_replication_slot('{pipeline.slot_name}')",
        "UPDATE orders SET amount = 88 WHERE id = 8",
    )
    run = shop.run(f"{name}__sweep", json.dumps({"lost_only": True}))
    assert (run.state, run.tasks["sweep"]) == ("success", "success"), run.output
    assert "public.orders: swept" in run.output
    catalog = open_catalog(platform, pipeline)
    target = pipeline.target(TableId.parse("public.orders"))
    rows = catalog.load_table(target.identifier).scan("id in (7, 8)").to_arrow().to_pylist()
    catalog.close()
    assert sorted((row["id"], int(row["amount"])) for row in rows) == [(7, 77), (8, 88)]

    # The source changes: the look ahead says what will come, in red where someone must act.
    source_db.sql(
        "ALTER TABLE orders ALTER amount TYPE text", "ALTER TABLE customers ADD COLUMN note text"
    )
    run = shop.run(f"{name}__schema")
    assert run.tasks["check"] == "success", run.output
    assert run.tasks["report[0]"] == "failed", run.output
    assert run.tasks["approve"] == "skipped", "nothing is held yet, so nobody is asked"
    assert "public.customers: follows, note was added: text as string" in run.output
    assert "public.orders: incompatible, it will be held: amount has another type" in run.output

    stored = shop.everything_stored()
    assert f"x-iceberg://lake/{name}/customers" in stored
    for canary in (SECRET, ROW):
        assert canary not in run.output
        assert canary not in stored
