"""Removing a table and retiring a pipeline: what goes, what stays."""

from __future__ import annotations

import threading

import pyarrow as pa
import pytest
from pyiceberg.catalog import Catalog

from tidegate.config.pipeline import PipelineConfig
from tidegate.config.platform import PlatformConfig
from tidegate.envelope.position import boundary
from tidegate.errors import HeldError
from tidegate.lake.audit_trail import AuditTrail
from tidegate.lake.change_log import ChangeLog
from tidegate.lake.gate import Gate, GateState
from tidegate.lake.ledger import drop
from tidegate.lake.reports import Reports
from tidegate.lake.retire import forget_removed, retire
from tidegate.names import TableId

ORDERS = TableId("public", "orders")


@pytest.fixture
def deployed(catalog: Catalog, pipeline: PipelineConfig) -> PipelineConfig:
    ChangeLog(catalog, pipeline).create(boundary("e1", 1))
    Reports(catalog, pipeline).add("deploy", "r1", {})
    AuditTrail(catalog, pipeline).note("deploy", pipeline.source.tables)
    catalog.create_namespace(pipeline.namespace)
    for target in pipeline.targets:
        catalog.create_table(target.identifier, pa.schema([("n", pa.int64())]))
    return pipeline


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

    def noted(catalog: Catalog, identifier: tuple[str, str]) -> bool:
        names = [thread.name for thread in threading.enumerate()]
        renewing[identifier[1]] = any(name.startswith("lease-") for name in names)
        return drop(catalog, identifier)

    monkeypatch.setattr("tidegate.lake.retire.drop", noted)
    retire(catalog, deployed, platform.gate)
    assert renewing["change_log"]
    assert not renewing["gate_journal"]
