"""The upkeep plan: due by threshold and interval, with a reason for each."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pytest
from pyiceberg.catalog import Catalog
from pyiceberg.table import Table

from tidegate.config.pipeline import PipelineConfig
from tidegate.config.sinks import MaintenanceConfig
from tidegate.lake.reports import Reports
from tidegate.lake.upkeep import count_files, expirable, last_done, plan

ROWS = pa.table({"n": pa.array([1], pa.int64())})
SETTINGS = MaintenanceConfig(
    compaction_file_threshold=3,
    manifest_threshold=4,
    retain_last=2,
    expire_snapshots_older_than_seconds=3600,
)


@pytest.fixture
def table(catalog: Catalog) -> Table:
    catalog.create_namespace("shop")
    return catalog.create_table(("shop", "orders"), ROWS.schema)


def grow(table: Table, files: int) -> None:
    for _ in range(files):
        table.append(ROWS)


def later(hours: float) -> datetime:
    return datetime.now(UTC) + timedelta(hours=hours)


def test_an_empty_table_needs_nothing(table: Table) -> None:
    assert plan(table, SETTINGS, later(0)).due == ()


def test_switched_off_means_nothing_is_due(table: Table) -> None:
    grow(table, 5)
    found = plan(table, MaintenanceConfig(enabled=False), later(999))
    assert found.due == ()
    assert set(found.reasons.values()) == {"maintenance is switched off"}


def test_small_files_make_compaction_due_from_the_threshold_on(table: Table) -> None:
    grow(table, 2)
    assert not plan(table, SETTINGS, later(0)).compact
    grow(table, 1)
    found = plan(table, SETTINGS, later(0))
    assert found.compact
    assert "3 small files" in found.reasons["compact"]


def test_large_files_are_not_small(table: Table) -> None:
    grow(table, 3)
    table.transaction().set_properties({"write.target-file-size-bytes": "10"}).commit_transaction()
    assert count_files(table).small_in_one_partition == 0


def test_compaction_waits_for_its_interval(table: Table) -> None:
    grow(table, 3)
    an_hour_ago = {"compact": later(-1)}
    assert not plan(table, SETTINGS, later(0), an_hour_ago).compact
    assert plan(table, SETTINGS, later(2), an_hour_ago).compact


def test_many_manifests_are_rewritten(table: Table) -> None:
    grow(table, 4)
    found = plan(table, SETTINGS, later(0))
    assert found.rewrite_manifests
    assert found.reasons["rewrite_manifests"] == "4 manifests (due from 4)"


def test_snapshots_expire_by_age_but_the_last_ones_and_heads_stay(table: Table) -> None:
    grow(table, 4)
    first = table.metadata.snapshots[0].snapshot_id
    assert not plan(table, SETTINGS, later(0)).expire
    assert expirable(table, SETTINGS, later(2)) == 2
    table.manage_snapshots().create_tag(first, "audit").commit()
    assert expirable(table, SETTINGS, later(2)) == 1
    assert plan(table, SETTINGS, later(2)).expire
    assert not plan(table, SETTINGS, later(2), {"expire": later(1.9)}).expire


def test_orphans_are_looked_for_once_a_table_is_old_enough(table: Table) -> None:
    grow(table, 1)
    assert not plan(table, SETTINGS, later(1)).remove_orphans
    assert plan(table, SETTINGS, later(25)).remove_orphans
    assert not plan(table, SETTINGS, later(25), {"remove_orphans": later(2)}).remove_orphans


def test_reports_remember_what_was_done_to_which_table(
    catalog: Catalog, pipeline: PipelineConfig
) -> None:
    reports = Reports(catalog, pipeline)
    reports.add("maintain", "r1", {"done": {"public.orders": ["expire", "compact"]}})
    reports.add("maintain", "r2", {"done": {"public.customers": ["expire"]}})
    found = last_done(reports, "public.orders")
    assert set(found) == {"expire", "compact"}
    assert last_done(reports, "public.nothing") == {}
