"""A working day with the command line, on a real PostgreSQL and without Spark: every verb that
asks, looks, stops and goes on."""

from __future__ import annotations

import base64
import json
import os
import signal
import socket
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.support.api import CLIENT
from tests.support.cli import INCLUDE, Desk, configured, probe
from tests.support.postgres import SourceDatabase
from tidegate.errors import STOPPED_CODE
from tidegate.testing.postgres_server import PASSWORD, SUPERUSER

pytestmark = pytest.mark.postgres


def lines(done: subprocess.CompletedProcess[str]) -> list[dict[str, Any]]:
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def stopped_job(cli: Desk) -> None:
    """What Airflow's capture task starts: it looks at the source, then ends quietly."""
    result = cli.folder / "result.json"
    files = ["--pipeline", "day.yaml", "--platform", "platform.yaml", "--result", str(result)]
    done = subprocess.run(
        [sys.executable, "-m", "tidegate.jobs.capture", *files, "--run", "r1"],
        cwd=cli.folder,
        env=os.environ | {"PYTHONPATH": str(INCLUDE)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "guard  slot=" in done.stderr, "the guard goes on looking"
    assert json.loads(result.read_text())["error"]["code"] == STOPPED_CODE


def test_from_init_to_delete(source_db: SourceDatabase, desk: Callable[..., Desk]) -> None:
    source_db.sql(
        "CREATE TABLE orders (id int PRIMARY KEY, note text, price numeric(8,2), at timestamptz)",
        "CREATE TABLE audit_lines (line text)",
    )
    cli = desk(CDC_SOURCE_PASSWORD=PASSWORD)
    configured(cli.folder, source_db)
    options = ("--host", "127.0.0.1", "--port", str(source_db.server.port))
    options += ("--database", source_db.name, "--username", SUPERUSER)

    wrong = cli.result("init", "--pipeline-id", "day", *options, "-t", "public.ordres", code=2)
    assert wrong["code"] == "init.unknown_table" and "public.orders" in wrong["hint"]
    made = cli.result("init", "--pipeline-id", "day", *options, "--all-tables")
    assert made["tables"] == ["public.orders"] and made["system"].startswith("PostgreSQL 16")
    text = (cli.folder / "day.yaml").read_text()
    assert "# - public.audit_lines  # no primary key" in text and PASSWORD not in text

    assert cli.result("create", "day.yaml")["status"] == "created"
    assert cli.result("validate", "day")["source_checked"] is True
    doctor = {c["name"]: c["status"] for c in cli.result("doctor", "day")["checks"]}
    assert doctor["source"] == "ok"
    assert cli.result("deploy", "day")["status"] == "deployed"
    source_db.sql(
        "INSERT INTO orders VALUES (1, 'one', 12.50, '2026-11-17 08:30:00+00'),"
        " (2, 'two', 1, NULL)",
        "UPDATE orders SET note = 'uno' WHERE id = 1",
        "UPDATE orders SET id = 20 WHERE id = 2",
        "DELETE FROM orders WHERE id = 1",
        "TRUNCATE orders",
    )

    stopped = cli.result("stop", "day", "--reason", "a look first")
    assert stopped["state"] == "stopped" and stopped["changed"]
    assert cli.result("capture", "day")["status"] == "stopped"
    stopped_job(cli)
    health = {c["name"]: c for c in cli.result("health", "day")["components"]}
    assert health["source"]["status"] == "ok"
    assert health["change_log"]["status"] == "degraded"
    assert "a look first" in health["change_log"]["detail"]
    guard = cli.result("guard", "day")
    assert guard["figures"]["source"]["to_capture_bytes"] > 0, "the guard goes on looking"
    cli.result("start", "day")
    assert cli.result("capture", "day")["rows"] == 6

    found = cli.result("consume", "day")["changes"]
    assert [change["op"] for change in found] == ["c", "c", "u", "u", "d", "t"]
    assert found[0]["after"]["price"] == "12.50"
    moved = cli.result("consume", "day", "--key", "20")["changes"]
    assert [change["key"] for change in moved] == [{"id": "2"}]
    after = found[1]["position"]
    rest = lines(cli.run("consume", "day", "--from", after, "--format", "json", "--op", "u"))
    assert [change["op"] for change in rest] == ["u", "u"]
    printed = cli.run("consume", "day", "--op", "u", "--limit", "1").stdout
    assert "public.orders" in printed and "note=uno" in printed and "\x1b" not in printed
    envelopes = lines(cli.run("consume", "day", "--format", "debezium"))
    assert [event["op"] for event in envelopes] == ["c", "c", "u", "d", "c", "d", "t"]
    first = envelopes[0]
    assert first["after"]["at"] == "2026-11-17T08:30:00.000000Z"
    assert int.from_bytes(base64.b64decode(first["after"]["price"]), "big") == 1250
    assert (first["source"]["db"], first["source"]["table"]) == (source_db.name, "orders")
    days = source_db.value("SELECT '0044-03-15 BC'::date - '1970-01-01'::date")
    assert days == -735160, "what tests/unit/codecs takes for granted"

    last = found[-1]["position"]
    with cli.start("consume", "day", "--follow", "--from", last, "--json") as follower:
        assert follower.stdout is not None
        with cli.start("status", "day", "--watch", "--every", "0.2", "--json") as watcher:
            assert watcher.stdout is not None
            states = [json.loads(watcher.stdout.readline())["result"] for _ in range(2)]
            watcher.terminate()
            assert watcher.wait(60) == 0
        assert {state["deployed"] for state in states} == {True}
        offsets = cli.result("offsets", "day")
        source_db.sql("INSERT INTO orders VALUES (3, 'three', 3, NULL)")
        cli.result("capture", "day")
        assert json.loads(follower.stdout.readline())["after"]["id"] == "3"
        follower.terminate()
        assert follower.wait(60) == 0
    (table,) = offsets["tables"]
    assert table["needs"] == "a first sweep" and offsets["captured_through"]
    never = cli.result("offsets", "set", "day", "--position", "0/1", "--yes", code=2)
    assert never["code"] == "offsets.never_swept"

    assert cli.result("delete", "day", "--yes", code=1)["code"] == "pipelines.deployed"
    assert cli.result("delete", "day", "--undeploy", "--yes")["status"] == "deleted"
    assert source_db.value("SELECT count(*) FROM pg_publication") == 0
    assert cli.result("list")["pipelines"] == []
    actions = [entry["action"] for entry in cli.result("audit", "day.yaml")["entries"]]
    assert actions == ["delete", "undeploy", "start", "stop", "deploy", "create"]


def test_a_capture_that_follows_says_on_its_port_whether_it_is_ready(
    source_db: SourceDatabase, tmp_path: Path
) -> None:
    source_db.sql("CREATE TABLE orders (id int PRIMARY KEY)")
    cli = configured(tmp_path, source_db, "public.orders")
    cli.result("deploy")
    with cli.start("capture", "--follow", "--json") as capture:
        assert capture.stderr is not None and capture.stdout is not None
        said = iter(capture.stderr.readline, "")
        (url,) = [line.split()[1] for line in [next(said)] if line.startswith("health ")]
        assert url.startswith("http://127.0.0.1:")
        assert CLIENT.get(url.replace("readyz", "healthz")).json() == {"status": "ok"}
        ready = probe(url, lambda answer: answer.status_code == 200).json()
        assert ready["pipeline_id"] == source_db.name and ready["status"] in ("ok", "degraded")
        assert ready["source"]["connector"] == {"state": "RUNNING"}
        assert ready["sinks"] == [{"sink_id": "lake", "status": "running"}]
        assert [lag["topic"] for lag in ready["consumer_lag"]] == ["cdc.public.orders"]

        streaming = "SELECT bool_or(active) FROM pg_replication_slots WHERE database = "
        while not source_db.value(f"{streaming}'{source_db.name}'"):
            threading.Event().wait(0.02)  # until then it would end for want of a connection
        with source_db.server.connect() as admin:  # no new connection is let in: a dead source
            admin.execute(f'ALTER DATABASE "{source_db.name}" ALLOW_CONNECTIONS false')
            dead = probe(url, lambda answer: answer.status_code == 503).json()
            admin.execute(f'ALTER DATABASE "{source_db.name}" ALLOW_CONNECTIONS true')
        assert dead["components"]["source"] == "failed" and PASSWORD not in str(dead)
        assert dead["source"]["connector"] == {"state": "FAILED"}
        probe(url, lambda answer: answer.status_code == 200)

        source_db.sql("INSERT INTO orders VALUES (1)")
        assert any(line.startswith("capture") for line in said), "the change is in hand"
        with closing(sqlite3.connect(tmp_path / "home" / "catalog.db")) as catalog:
            catalog.execute("BEGIN EXCLUSIVE")  # what is to be drained cannot be committed yet
            capture.send_signal(signal.SIGTERM)
            stopping = probe(url, lambda answer: answer.json()["status"] == "stopping")
            assert stopping.status_code == 503 and capture.poll() is None
            assert CLIENT.get(url.replace("readyz", "healthz")).status_code == 200
            catalog.rollback()
        rest = capture.stderr.read()
        assert capture.wait(60) == 0, rest
        assert json.loads(capture.stdout.read())["result"]["rows"] == 1


def test_two_captures_cannot_have_one_health_port_and_the_second_works_on(
    source_db: SourceDatabase, tmp_path: Path
) -> None:
    source_db.sql("CREATE TABLE orders (id int PRIMARY KEY)")
    cli = configured(tmp_path, source_db, "public.orders")
    cli.result("deploy")
    platform = tmp_path / "platform.yaml"
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        platform.write_text(platform.read_text().replace("health_port: 0", f"health_port: {port}"))
        with cli.start("capture", "--follow", "--json") as capture:
            assert capture.stderr is not None and capture.stdout is not None
            warned = capture.stderr.readline()
            assert f"port {port}" in warned and "health_enabled: false" in warned
            source_db.sql("INSERT INTO orders VALUES (1)")
            assert any(line.startswith("capture") for line in iter(capture.stderr.readline, ""))
            capture.send_signal(signal.SIGTERM)
            assert capture.wait(60) == 0
            assert json.loads(capture.stdout.read())["result"]["rows"] == 1
