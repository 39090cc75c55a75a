"""The commands that need no Spark, on a real PostgreSQL."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from tests.support.cli import PASSWORD_VARIABLE, Shell, configured
from tests.support.postgres import SourceDatabase
from tidegate.testing.postgres_server import PASSWORD

pytestmark = pytest.mark.postgres


def test_validate_names_every_problem_of_the_source_with_its_fix(
    source_db: SourceDatabase, tmp_path: Path, shell: Shell
) -> None:
    source_db.sql("CREATE TABLE good (id int PRIMARY KEY)", "CREATE TABLE keyless (a int)")
    cli = configured(
        tmp_path, source_db, "public.good", "public.keyless", "public.absent", shell=shell
    )
    done = cli.run("validate")
    assert done.returncode == 2, done.stderr
    for name in ("public.keyless", "public.absent", "not ok"):
        assert name in done.stdout
    assert "ALTER TABLE" in done.stdout, "the SQL that helps is printed"
    assert cli.run("validate", "--offline").returncode == 0
    said = cli.run("deploy")
    assert said.returncode == 2, "some are deployed, some are not"
    lines = said.stdout.splitlines()
    assert lines[0].startswith("deployed, 1 of 3 tables; 2 held")
    held = [line for line in lines if line.startswith("held")]
    assert [line.split()[1] for line in held] == ["public.keyless:", "public.absent:"]
    deployed = cli.result("deploy", code=2)
    assert [table["table"] for table in deployed["held"]] == ["public.keyless", "public.absent"]


def test_a_wrong_password_is_said_and_not_shown(
    source_db: SourceDatabase, tmp_path: Path, shell: Shell
) -> None:
    source_db.sql("CREATE TABLE t (id int PRIMARY KEY)")
    cli = configured(tmp_path, source_db, "public.t", shell=shell)
    cli.variables[PASSWORD_VARIABLE] = "hunter2-wrong"
    done = cli.run("validate")
    assert done.returncode == 2, done.stderr
    assert "hunter2-wrong" not in done.stdout + done.stderr
    status = cli.result("status")
    assert status["source"]["reachable"] is False
    assert "hunter2-wrong" not in str(status)


def test_a_source_that_is_away_is_a_problem_of_running_it(
    source_db: SourceDatabase, tmp_path: Path, shell: Shell
) -> None:
    cli = configured(tmp_path, source_db, "public.t", port=1, shell=shell)
    error = cli.result("deploy", code=1)
    assert error["kind"] == "RetriableError"


def test_deploy_capture_status_lag_undeploy(
    source_db: SourceDatabase, tmp_path: Path, shell: Shell
) -> None:
    source_db.sql("CREATE TABLE t (id int PRIMARY KEY, v text)")
    cli = configured(tmp_path, source_db, "public.t", shell=shell)
    planned = cli.result("deploy", "--dry-run")
    assert planned["status"] == "planned"
    assert source_db.value("SELECT count(*) FROM pg_publication") == 0
    assert cli.result("deploy")["status"] == "deployed"
    assert cli.result("deploy")["status"] == "unchanged"
    source_db.sql("INSERT INTO t SELECT i, 'x' FROM generate_series(1, 100) i")
    captured = cli.result("capture")
    assert (captured["rows"], captured["transactions"]) == (100, 1)
    status = cli.result("status")
    assert status["deployed"] and status["source"]["reachable"]
    assert status["captured_through"] == captured["through"]
    assert status["tables"][0]["needs"] == "a first sweep"
    lag = cli.result("lag")
    assert lag["retained_bytes"] is not None
    assert cli.run("undeploy").returncode == 2, "without --yes nothing is removed"
    cli.result("undeploy", "--yes")
    assert source_db.value("SELECT count(*) FROM pg_publication") == 0
    assert (
        source_db.value(
            "SELECT count(*) FROM pg_replication_slots WHERE database = current_database()"
        )
        == 0
    )
    assert cli.result("status")["deployed"] is False


def test_an_airflow_connection_serves_the_command_line_too(
    source_db: SourceDatabase, tmp_path: Path, shell: Shell
) -> None:
    source_db.sql("CREATE TABLE t (id int PRIMARY KEY)")
    cli = configured(
        tmp_path,
        source_db,
        "public.t",
        host="nowhere",
        password="-",
        connection_id="shop_db",
        shell=shell,
    )
    error = cli.result("validate", code=2)
    assert error["code"] == "secrets.connection_missing"
    port = source_db.server.port
    cli.variables["AIRFLOW_CONN_SHOP_DB"] = f"postgres://postgres:{PASSWORD}@127.0.0.1:{port}"
    assert cli.result("validate")["source_checked"] is True


def test_what_is_not_built_yet_validates_and_is_refused_by_deploy(
    source_db: SourceDatabase, tmp_path: Path, shell: Shell
) -> None:
    source_db.sql("CREATE TABLE t (id int PRIMARY KEY)")
    cli = configured(tmp_path, source_db, "public.t", shell=shell)
    pipeline = yaml.safe_load(cli.file.read_text())
    webhook = {"sink_id": "hook", "sink_type": "webhook", "webhook": {"url": "http://localhost/"}}
    cli.file.write_text(yaml.safe_dump(pipeline | {"sinks": [webhook]}))
    found = cli.result("validate")["findings"]
    assert "config.sink_not_built" in [finding["code"] for finding in found]
    assert cli.result("deploy", code=2)["code"] == "deploy.sink_not_built"
