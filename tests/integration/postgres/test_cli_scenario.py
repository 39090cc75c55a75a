"""One pipeline's life through the command line alone."""

from __future__ import annotations

import json
import signal
from pathlib import Path
from typing import Any

import pytest

from tests.support.api import CLIENT
from tests.support.cli import Cli, Shell, configured, probe, with_columns
from tests.support.postgres import SourceDatabase
from tidegate import faults
from tidegate.testing.postgres_server import PASSWORD, SUPERUSER

EXAMPLES = Path(__file__).parents[3] / "examples"
pytestmark = [pytest.mark.postgres, pytest.mark.spark]


def lake_rows(cli: Cli, *more: str) -> list[tuple[Any, ...]]:
    found = cli.result("lakehouse", "query", "--table", "public.orders", "--limit", "5000", *more)
    return sorted((row["id"], row["note"]) for row in found["rows"])


def test_from_nothing_to_a_verified_table_and_back(
    source_db: SourceDatabase, tmp_path: Path, shell: Shell
) -> None:
    """All in one process with one JVM, but for the one that dies."""
    source_db.sql(
        "CREATE TABLE orders (id int PRIMARY KEY, note text)",
        "CREATE TABLE items (id int PRIMARY KEY, order_id int, due date)",
        "INSERT INTO orders SELECT i, 'first' FROM generate_series(1, 1000) i",
        "INSERT INTO items SELECT i, i FROM generate_series(1, 500) i",
    )
    cli = configured(tmp_path, source_db, "public.orders", "public.items", shell=shell)
    with_columns(cli, "public.items", {"due": {"policy": "reject"}})

    ran = cli.result("run", "--once")
    assert sorted(ran["swept"]) == ["public.items", "public.orders"]
    assert lake_rows(cli) == source_db.rows("SELECT id, note FROM orders ORDER BY id")
    (first,) = [
        row["snapshot_id"]
        for row in cli.result("lakehouse", "snapshots", "--table", "orders")["snapshots"]
        if row["current"]
    ]

    source_db.sql(
        "UPDATE orders SET note = 'second' WHERE id <= 10",
        "DELETE FROM orders WHERE id > 990",
        "INSERT INTO orders VALUES (5000, 'new')",
    )
    held = cli.result("gate", "hold", "--table", "public.items", "--reason", "a look")
    assert held["gates"][0]["state"] == "held"
    assert cli.result("capture")["rows"] == 21
    behind = {table["table"]: table for table in cli.result("lag")["tables"]}
    assert behind["public.orders"]["bytes"] > 0
    applied = {table["table"]: table for table in cli.result("apply")["tables"]}
    orders = applied["public.orders"]
    assert (orders["inserted"], orders["updated"], orders["deleted"]) == (1, 10, 10)
    assert applied["public.items"]["status"] == "held"
    assert lake_rows(cli, "--snapshot-id", str(first)) == [(i, "first") for i in range(1, 1001)]
    cli.result("gate", "open", "--table", "public.items")

    back = cli.result("lakehouse", "rollback", "--snapshot-id", str(first), "--yes")
    assert back["table"] == "public.orders", "the snapshot says which table"
    assert lake_rows(cli) == [(i, "first") for i in range(1, 1001)]
    status = {table["table"]: table for table in cli.result("status")["tables"]}
    assert status["public.orders"]["lag_bytes"] > 0, "the position went back with the data (I1)"

    dying = Cli(cli.folder, {"TIDEGATE_FAULT": "sweep.after_chunk"})
    assert dying.run("sweep", "--table", "orders").returncode == faults.EXIT_STATUS
    opened = cli.run("gate", "open", "--table", "orders", "--abandon")
    assert opened.returncode == 0, opened.stderr
    assert "dropping sweep_" in opened.stderr
    again = cli.run("gate", "open", "--table", "orders", "--abandon")
    assert again.returncode == 0 and "dropping" not in again.stderr, "nothing is left"

    verified = cli.result("verify", "--sample", "50%")
    assert {table["status"] for table in verified["tables"]} == {"equal"}
    shown = cli.result("status")["tables"]
    assert {table["verified_through"]["coverage"] for table in shown} == {50.0}
    assert {table["verified_through"]["position"] for table in shown} == {verified["position"]}
    said = cli.run("status").stdout
    assert "public.orders: verified through" in said and "50 % of the keys" in said
    assert lake_rows(cli) == source_db.rows("SELECT id, note FROM orders ORDER BY id")

    told = cli.result("audit")["entries"]
    assert [(entry["action"], entry["outcome"]) for entry in reversed(told)] == [
        ("deploy", "done"),
        ("sweep", "done"),
        ("hold", "done"),
        ("open", "done"),
        ("rollback", "done"),
        ("sweep", "begun"),  # killed: the trail does not say that it was done
        ("abandon", "done"),
        ("abandon", "done"),
    ]
    assert {entry["surface"] for entry in told} == {"cli"}
    assert [
        e["action"] for e in cli.result("audit", "--table", "items", "--limit", "2")["entries"]
    ] == [
        "open",
        "hold",
    ]

    lowest = {t["table"]: t["lowest"] for t in cli.result("offsets")["tables"]}["public.orders"]
    back = ("offsets", "set", "--table", "public.orders", "--position", lowest)
    assert cli.result(*back, "--dry-run")["changes"] == 21
    assert cli.result(*back, code=2)["code"] == "cli.not_confirmed"
    moved = cli.result(*back, "--yes")
    assert (moved["status"], moved["direction"], moved["changes"]) == ("set", "replay", 21)

    source_db.sql(
        "UPDATE items SET due = 'infinity' WHERE id = 7", "DELETE FROM items WHERE id = 8"
    )
    ran = cli.result("run", "--once", "--fail-on", "letters", code=1)
    assert ran["parked"] == 1, "all else was done"
    assert lake_rows(cli) == source_db.rows("SELECT id, note FROM orders ORDER BY id"), "replayed"
    said = cli.run("apply").stdout.splitlines()
    assert said[0].startswith("2 tables unchanged, ") and len(said) == 4
    (letter,) = cli.result("dead-letters", "list")["letters"]
    assert (letter["key"], letter["code"]) == (["7"], "apply.cast_failed")
    shown = cli.result("dead-letters", "show", "--event-id", letter["event_id"])
    assert shown["after"] == {"id": "7", "order_id": "7", "due": "infinity"}
    refused = cli.result("dead-letters", "discard", code=2)
    assert refused["code"] == "cli.not_confirmed"
    with_columns(cli, "public.items", {"due": {"policy": "clamp"}})
    (table,) = [
        table
        for table in cli.result("dead-letters", "redrive")["tables"]
        if table["table"] == "public.items"
    ]
    assert (table["status"], table["applied"], table["still_waiting"]) == ("redriven", 1, 0)
    found = cli.result("lakehouse", "query", "--table", "public.items", "--limit", "600")["rows"]
    assert {row["id"]: row["due"] for row in found if row["id"] in (7, 8)} == {7: "9999-12-31"}

    cli.file.write_text(cli.file.read_text().replace("  - public.orders\n", ""))
    assert cli.result("deploy")["status"] == "deployed"
    planned = cli.result("undeploy", "--purge", "--dry-run")["actions"]
    assert f"table {source_db.name}.orders dropped" in planned, "it left the file earlier"
    assert cli.result("undeploy", "--purge", "--yes")["actions"] == planned
    assert list((cli.folder / "home" / "warehouse").iterdir()) == []


def test_the_specifications_demo_runs_by_its_own_commands(
    source_db: SourceDatabase, tmp_path: Path, shell: Shell
) -> None:
    source_db.sql(
        "CREATE TABLE customers (id int PRIMARY KEY, name text)",
        "CREATE TABLE orders (id int PRIMARY KEY, customer_id int)",
        "INSERT INTO customers VALUES (1, 'ann')",
        "INSERT INTO orders VALUES (1, 1)",
    )
    variables = {
        "CDC_SOURCE_HOST": "127.0.0.1",
        "CDC_SOURCE_PORT": str(source_db.server.port),
        "CDC_SOURCE_DATABASE": source_db.name,
        "CDC_SOURCE_USERNAME": SUPERUSER,
        "CDC_SOURCE_PASSWORD": PASSWORD,
        "TIDEGATE_HOME": str(tmp_path / "home"),
    }
    demo, platform = str(EXAMPLES / "demo-config.yaml"), str(EXAMPLES / "platform.yaml")

    def cdc(*words: str) -> Any:
        words = (*words, "--platform-config", platform, "--json")
        done = shell.run(list(words), tmp_path, variables)
        assert done.returncode == 0, f"{words}\n{done.stdout}\n{done.stderr}"
        return json.loads(done.stdout)["result"]

    assert cdc("validate", demo)["transport_mode"] == "embedded"
    assert cdc("deploy", demo)["status"] == "deployed"
    assert sorted(cdc("run", demo, "--once")["swept"]) == ["public.customers", "public.orders"]
    source_db.sql("INSERT INTO orders VALUES (2, 1)")
    cdc("run", demo, "--once")
    assert [change["op"] for change in cdc("consume", demo)["changes"]] == ["c"]
    assert cdc("health")["status"] == "ok"
    found = cdc("lakehouse", "snapshots", demo)["snapshots"]
    own = [row for row in found if row["table"] == "public.orders" and row["position"]]
    first = str(min(own, key=lambda row: row["committed_at"])["snapshot_id"])
    rows = cdc("lakehouse", "query", demo, "--snapshot-id", first)["rows"]
    assert [row["id"] for row in rows] == [1]
    assert cdc("lakehouse", "rollback", demo, "--snapshot-id", first, "--yes")["table"] == (
        "public.orders"
    )
    cdc("undeploy", demo, "--yes")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_a_running_pipeline_cleanly(
    source_db: SourceDatabase, tmp_path: Path, number: signal.Signals
) -> None:
    source_db.sql(
        "CREATE TABLE orders (id int PRIMARY KEY, note text)",
        "INSERT INTO orders SELECT i, 'first' FROM generate_series(1, 100) i",
    )
    cli = configured(tmp_path, source_db, "public.orders")
    cli.variables["TIDEGATE_LOG_FORMAT"] = "json"
    events: list[dict[str, Any]] = []
    with cli.start("run", "--interval", "0.2", "--json") as process:
        assert process.stderr is not None and process.stdout is not None
        url = ""
        for line in process.stderr:
            if line.startswith("{"):
                events.append(json.loads(line))
            if line.startswith("health "):
                url = line.split()[1]
                assert CLIENT.get(url).json()["pipeline_id"] == source_db.name, "before Spark is up"
            if line.startswith("maintain"):  # the first round is through
                ready = probe(url, lambda answer: answer.status_code == 200).json()
                assert ready["components"]["rounds"] == ready["components"]["writers"] == "ok"
                process.send_signal(number)
                break
        rest = process.stderr.read()
        document = json.loads(process.stdout.read())
        assert process.wait() == 0, rest
    events += [json.loads(line) for line in rest.splitlines() if line.startswith("{")]
    lags = [event for event in events if event["message"] == "consumer.lag"]
    assert lags and {"total_lag", "partitions"} <= lags[0].keys(), "somebody collects the lines"
    result = document["result"]
    assert result["stopped"] and not result["abandoned"]
    assert result["swept"] == ["public.orders"]
    assert len(lake_rows(cli)) == 100
