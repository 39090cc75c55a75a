"""Schemas of a real PostgreSQL in a real registry (Apicurio, by its Confluent-compatible API)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import fastavro
import httpx
import pytest
import yaml
from pyiceberg.schema import Schema
from pyiceberg.types import DecimalType, LongType, NestedField, StringType

from tests.support.by_hand import swept_by_hand
from tests.support.changes import number, schema, text
from tests.support.cli import Cli, configured
from tests.support.postgres import SourceDatabase
from tidegate import faults
from tidegate.config.loader import load_platform
from tidegate.config.pipeline import PipelineConfig
from tidegate.config.platform import PlatformConfig
from tidegate.config.registry import SchemaRegistryConfig
from tidegate.control.registry import registrations
from tidegate.control.status import status
from tidegate.envelope.position import boundary
from tidegate.jobs.capture import run_capture
from tidegate.jobs.check_schema import run_check_schema
from tidegate.jobs.deploy import deploy
from tidegate.jobs.register_schemas import RegisterResult, run_register
from tidegate.lake.catalog import open_catalog
from tidegate.lake.registrations import Registrations
from tidegate.lake.schema_history import SchemaHistory
from tidegate.testing.registry_server import RegistryServer, running

pytestmark = [pytest.mark.registry, pytest.mark.postgres]

TABLE = "public.orders"
LAKE = Schema(
    NestedField(1, "id", LongType(), required=True),
    NestedField(2, "amount", DecimalType(12, 2), required=False),
    NestedField(3, "odd name", StringType(), required=False),
    identifier_field_ids=[1],
)
HEADERS = {"Content-Type": "application/vnd.schemaregistry.v1+json"}


@pytest.fixture(scope="module")
def registry() -> Iterator[RegistryServer]:
    with running() as server:
        yield server


def says(result: RegisterResult) -> dict[str, tuple[str, int | None]]:
    assert result.error is None, result.error
    return {one.subject.rpartition("-")[2]: (one.status, one.version) for one in result.tables}


class Shop:
    """A deployed pipeline of one table whose platform names the registry."""

    def __init__(self, folder: Path, db: SourceDatabase, url: str) -> None:
        self.db = db
        self.cli: Cli = configured(folder, db, TABLE)
        file = folder / "platform.yaml"
        platform = yaml.safe_load(file.read_text())
        platform["schema_registry"] = {
            "enabled": True,
            "url": url,
            "subject": "{pipeline}.{schema}.{table}",
            "timeout_seconds": 60,  # of a machine that does much at once
            "max_seconds": 300,
        }
        file.write_text(yaml.safe_dump(platform))
        self.platform: PlatformConfig = load_platform(file)
        self.pipeline: PipelineConfig = db.pipeline(TABLE)
        self.url, self.subject = url, f"{db.name}.{TABLE}-value"
        self.rows = 0

    def changed(self, ddl: str | None = None) -> None:
        """Perhaps a change of the table; then a row under its schema, captured."""
        self.rows += 1
        self.db.sql(*filter(None, (ddl, f"INSERT INTO orders (id) VALUES ({self.rows})")))
        run_capture(self.pipeline, self.platform)

    def register(self, **options: Any) -> RegisterResult:
        return run_register(self.pipeline, self.platform, **options)

    def rule(self, level: str) -> None:
        answer = httpx.put(
            f"{self.url}/config/{self.subject}", json={"compatibility": level}, headers=HEADERS
        )
        answer.raise_for_status()


@pytest.fixture
def shop(tmp_path: Path, source_db: SourceDatabase, registry: RegistryServer) -> Shop:
    columns = 'id bigint PRIMARY KEY, amount numeric(12,2), "odd name" text'
    source_db.sql(f"CREATE TABLE orders ({columns})")
    made = Shop(tmp_path, source_db, registry.url)
    deploy(made.pipeline, made.platform)
    made.changed()
    return made


def test_every_schema_is_registered_once_and_a_refused_one_stops_nothing(shop: Shop) -> None:
    planned = shop.cli.result("schema", "register", "--dry-run")
    assert [one["status"] for one in planned["tables"]] == ["would_register"] * 2
    assert says(shop.register()) == {"key": ("registered", 1), "value": ("registered", 1)}
    assert shop.register().tables == [], "what is there is not told again"

    latest = httpx.get(f"{shop.url}/subjects/{shop.subject}/versions/latest").json()
    parsed = json.loads(latest["schema"])
    fastavro.parse_schema(parsed)
    assert (parsed["name"], parsed["namespace"]) == ("Value", f"{shop.db.name}.{TABLE}")
    assert [field["name"] for field in parsed["fields"]] == ["id", "amount", "odd_name"]
    assert parsed["fields"][2]["tidegate.name"] == "odd name"

    shop.rule("BACKWARD")
    shop.changed("ALTER TABLE orders ADD note text")
    assert says(shop.register()) == {"key": ("registered", 1), "value": ("registered", 2)}

    shop.changed("ALTER TABLE orders ADD must int NOT NULL DEFAULT 0")
    refused = shop.register()
    assert says(refused) == {"key": ("registered", 1), "value": ("refused", None)}
    assert refused.failed and "must" in refused.tables[1].reason
    assert says(shop.register()) == {"value": ("refused", None)}, "tried again"
    found = status(shop.pipeline, shop.platform, ask_source=False).registry
    assert found is not None and (found.registered, found.pending, found.refused) == (5, 1, 1)

    swept_by_hand(shop.pipeline, shop.platform, TABLE, LAKE)
    (check,) = run_check_schema(shop.pipeline, shop.platform, run="look").tables
    assert check.status != "failed" and check.registry.startswith("incompatible with the newest of")

    shop.changed("ALTER TABLE orders ALTER must DROP NOT NULL")
    assert says(shop.register())["value"] == ("registered", 3)
    assert shop.register().tables == [], "the refused one is of the past"
    shown = shop.cli.result("schemas", "--registry")["registrations"]
    values = [row for row in shown if row["subject"] == shop.subject]
    assert [(row["status"], row["version"]) for row in values] == [
        *(("registered", 1), ("registered", 2)),
        *(("refused", None), ("registered", 3)),
    ]
    # Of the first one Confluent's has no opinion; Apicurio calls it compatible.
    assert [row["compatible"] for row in values][1:] == [True, False, True]
    (check,) = run_check_schema(shop.pipeline, shop.platform, run="look again").tables
    assert check.registry == "compatible"


def test_a_kill_lost_records_and_an_emptied_registry_are_no_harm(
    tmp_path: Path, source_db: SourceDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    source_db.sql("CREATE TABLE orders (id bigint PRIMARY KEY)")
    with running() as server:
        shop = Shop(tmp_path, source_db, server.url)
        deploy(shop.pipeline, shop.platform)
        shop.changed()
        faults._hits.clear()
        monkeypatch.setenv("TIDEGATE_FAULT", "registry.after_told@raise")
        with pytest.raises(faults.Fault):
            shop.register()
        monkeypatch.delenv("TIDEGATE_FAULT")
        assert len(httpx.get(f"{server.url}/subjects/{shop.subject}/versions").json()) == 1
        first = {(one.subject, one.id) for one in shop.register().tables}
        assert len(httpx.get(f"{server.url}/subjects/{shop.subject}/versions").json()) == 1
        catalog = open_catalog(shop.platform, shop.pipeline)
        Registrations(catalog, shop.pipeline).drop()
        assert {(one.subject, one.id) for one in shop.register().tables} == first

        server.stop()
        shop.changed("ALTER TABLE orders ADD note text")  # captured as if nothing were
        left = shop.register()
        assert left.error is not None and left.error.code == "registry.unreachable"
        found = status(shop.pipeline, shop.platform, ask_source=False).registry
        assert found is not None and found.problem is not None and found.pending == 2
        assert found.problem["code"] == "registry.unreachable"

        server.start()  # with nothing of what it had
        shop.register()
        assert len(httpx.get(f"{server.url}/subjects/{shop.subject}/versions").json()) == 1
        shop.register(everything=True)
        assert len(httpx.get(f"{server.url}/subjects/{shop.subject}/versions").json()) == 2
        found = status(shop.pipeline, shop.platform, ask_source=False).registry
        assert found is not None and found.problem is None and found.pending == 0


def test_texts_that_are_alike_share_a_version(
    catalog: Any, pipeline: PipelineConfig, platform: PlatformConfig, registry: RegistryServer
) -> None:
    """A table made anew has another schema id, and the same Avro."""
    config = SchemaRegistryConfig(
        enabled=True, url=registry.url, timeout_seconds=60, max_seconds=300
    )
    asked = platform.model_copy(update={"schema_registry": config})
    history = SchemaHistory(catalog, pipeline)
    known = schema("public.customers", number("id", key=0), text("name"))
    history.record(replace(known, relation=1), boundary("e1", 10))
    history.record(replace(known, relation=2), boundary("e1", 20))
    assert {one.version for one in run_register(pipeline, asked).tables} == {1}
    assert {row.status for row in registrations(pipeline, asked)} == {"registered"}
