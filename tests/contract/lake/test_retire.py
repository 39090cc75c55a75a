"""Removing a table and retiring a pipeline: what goes, what stays."""

from __future__ import annotations

import threading
from pathlib import Path
from urllib.parse import urlsplit

import pyarrow as pa
import pytest
from pyiceberg.catalog import Catalog
from pyiceberg.table import Table

from tidegate.config.pipeline import PipelineConfig
from tidegate.config.platform import PlatformConfig
from tidegate.envelope.position import boundary
from tidegate.errors import HeldError
from tidegate.lake.audit_trail import AuditTrail
from tidegate.lake.catalog import home
from tidegate.lake.change_log import ChangeLog
from tidegate.lake.gate import Gate, GateState
from tidegate.lake.purge import purge
from tidegate.lake.reports import Reports
from tidegate.lake.retire import forget_removed, retire
from tidegate.lake.sql_catalog import NEWEST
from tidegate.lake.tables import PIPELINE_PROPERTY, SOURCE_PROPERTY
from tidegate.names import TableId

ORDERS = TableId("public", "orders")


@pytest.fixture
def deployed(catalog: Catalog, pipeline: PipelineConfig) -> PipelineConfig:
    ChangeLog(catalog, pipeline).create(boundary("e1", 1))
    Reports(catalog, pipeline).add("deploy", "r1", {})
    AuditTrail(catalog, pipeline).note("deploy", pipeline.source.tables)
    catalog.create_namespace(pipeline.namespace)
    for target in pipeline.targets:
        lake_table(catalog, target.identifier, target.source)
    return pipeline


def lake_table(
    catalog: Catalog, identifier: tuple[str, str], source: str, pipeline_id: str | None = "shop"
) -> Table:
    """As a sweep makes it, with two rows."""
    properties = {SOURCE_PROPERTY: source}
    if pipeline_id is not None:
        properties[PIPELINE_PROPERTY] = pipeline_id
    rows = pa.table({"n": [1, 2]})
    table = catalog.create_table(identifier, rows.schema, properties=properties)
    table.append(rows)
    return table


def test_retiring_keeps_the_lake_tables(
    catalog: Catalog, deployed: PipelineConfig, platform: PlatformConfig
) -> None:
    result = retire(catalog, deployed, platform.gate)
    assert result.kept == ("shop.customers", "shop.orders")
    assert "tidegate_shop.change_log" in result.dropped
    assert catalog.list_tables("tidegate_shop") == [("tidegate_shop", "audit_trail")]
    assert catalog.table_exists(("shop", "orders"))
    again = retire(catalog, deployed, platform.gate)
    assert again.dropped == ()


def test_a_dry_run_names_what_would_go_and_drops_nothing(
    catalog: Catalog, deployed: PipelineConfig, platform: PlatformConfig
) -> None:
    planned = retire(catalog, deployed, platform.gate, purge=True, dry_run=True)
    assert set(planned.dropped) > {"shop.orders", "tidegate_shop.change_log"}
    assert all(catalog.table_exists(tuple(name.split("."))) for name in planned.dropped)
    assert retire(catalog, deployed, platform.gate, purge=True) == planned


def test_retiring_with_purge_leaves_nothing(
    catalog: Catalog, deployed: PipelineConfig, platform: PlatformConfig
) -> None:
    retire(catalog, deployed, platform.gate, purge=True)
    assert catalog.list_namespaces() == []


def warehouse(platform: PlatformConfig) -> Path:
    return home(platform) / "warehouse"


def left(platform: PlatformConfig) -> set[str]:
    """Every file and folder below the warehouse."""
    root = warehouse(platform)
    return {str(path.relative_to(root)) for path in root.rglob("*")} if root.exists() else set()


def test_a_purge_takes_tables_that_left_the_file_earlier_and_nobody_elses(
    catalog: Catalog, deployed: PipelineConfig, platform: PlatformConfig
) -> None:
    source = deployed.source.model_copy(update={"tables": ("public.customers",)})
    edited = deployed.model_copy(update={"source": source})
    foreign = lake_table(catalog, ("shop", "invoices"), "public.invoices", "billing")
    catalog.create_table(("shop", "notes"), pa.schema([("n", pa.int64())]))
    planned = retire(catalog, edited, platform.gate, purge=True, dry_run=True)
    assert {"shop.customers", "shop.orders"} < set(planned.dropped)
    assert not {"shop.invoices", "shop.notes"} & set(planned.dropped)
    assert retire(catalog, edited, platform.gate, purge=True) == planned
    assert catalog.list_namespaces() == [("shop",)]
    assert set(catalog.list_tables("shop")) == {("shop", "invoices"), ("shop", "notes")}
    assert catalog.load_table(foreign.name()).scan().to_arrow().num_rows == 2
    assert {path.split("/")[1] for path in left(platform) if "/" in path} == {"invoices", "notes"}


def test_a_table_of_anothers_under_our_name_survives(
    catalog: Catalog, deployed: PipelineConfig, platform: PlatformConfig
) -> None:
    purge(catalog, ("shop", "orders"))
    lake_table(catalog, ("shop", "orders"), "public.orders", "billing")
    retire(catalog, deployed, platform.gate, purge=True)
    assert catalog.list_tables("shop") == [("shop", "orders")]
    purge(catalog, ("shop", "orders"))
    lake_table(catalog, ("shop", "orders"), "public.orders", None)  # an older release's
    retire(catalog, deployed, platform.gate, purge=True)
    assert catalog.list_namespaces() == []


def test_a_purge_leaves_no_file_and_no_folder(
    catalog: Catalog, deployed: PipelineConfig, platform: PlatformConfig
) -> None:
    orders = warehouse(platform) / "shop" / "orders"
    (data,) = (orders / "data").rglob("*.parquet")
    data.with_name(f".{data.name}.crc").write_bytes(b"crc")  # as Hadoop's file system does
    (orders / "metadata" / ".00000.metadata.json.crc").write_bytes(b"crc")
    (orders / "data" / "day=1").mkdir()
    (orders / "data" / "day=1" / "left-by-a-run-that-died.parquet").write_bytes(b"")
    (warehouse(platform) / "notes.txt").write_text("not a table")
    retire(catalog, deployed, platform.gate, purge=True)
    assert left(platform) == {"notes.txt"}


def test_a_table_that_cannot_be_read_keeps_nobody_from_going(
    catalog: Catalog, deployed: PipelineConfig, platform: PlatformConfig
) -> None:
    broken = catalog.create_table(("shop", "broken"), pa.schema([("n", pa.int64())]))
    NEWEST.put(broken.metadata_location + ".other", broken.metadata)  # forget what was read of it
    Path(urlsplit(broken.metadata_location).path).unlink()
    retire(catalog, deployed, platform.gate, purge=True)
    assert catalog.list_tables("shop") == [("shop", "broken")]


def test_retiring_refuses_while_a_sweep_is_open_or_a_writer_runs(
    catalog: Catalog, deployed: PipelineConfig, platform: PlatformConfig
) -> None:
    gate = Gate(catalog, deployed, platform.gate)
    gate.begin_sweep("r1", [ORDERS], "me")
    with pytest.raises(HeldError):
        retire(catalog, deployed, platform.gate)
    gate.end_sweep("r1", [ORDERS], "published")
    quick = platform.gate.model_copy(update={"wait_seconds": 0.1})
    with gate.lease("r2", [ORDERS], "apply"), pytest.raises(HeldError):
        retire(catalog, deployed, quick)


def test_a_table_that_the_file_no_longer_lists_loses_its_gate_and_keeps_its_data(
    catalog: Catalog, deployed: PipelineConfig, platform: PlatformConfig
) -> None:
    gate = Gate(catalog, deployed, platform.gate)
    gate.begin_sweep("r1", [ORDERS], "me")
    gate.hold(["public.customers"], "a look", "me")
    source = deployed.source.model_copy(update={"tables": ("public.customers",)})
    edited = deployed.model_copy(update={"source": source})
    assert forget_removed(catalog, edited, platform.gate, actor="me") == (str(ORDERS),)
    states = gate.states()
    assert states[str(ORDERS)].state is GateState.OPEN
    assert states["public.customers"].state is GateState.HELD
    assert catalog.table_exists(("shop", "orders"))
    assert forget_removed(catalog, edited, platform.gate, actor="me") == ()


def test_nothing_renews_the_lease_while_the_journal_is_dropped(
    catalog: Catalog,
    deployed: PipelineConfig,
    platform: PlatformConfig,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    renewing: dict[str, bool] = {}

    def noted(catalog: Catalog, identifier: tuple[str, str]) -> None:
        names = [thread.name for thread in threading.enumerate()]
        renewing[identifier[1]] = any(name.startswith("lease-") for name in names)
        purge(catalog, identifier)

    monkeypatch.setattr("tidegate.lake.retire.purge_table", noted)
    retire(catalog, deployed, platform.gate)
    assert renewing["change_log"]
    assert not renewing["gate_journal"]
