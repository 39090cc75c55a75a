"""What waits for each table, by the change log's files and the applies' reports."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from pyiceberg.catalog import Catalog

from tests.support.lake import log_rows
from tests.unit.control.test_status import lake_table
from tidegate.config.pipeline import PipelineConfig
from tidegate.config.platform import PlatformConfig
from tidegate.control.guard import assess
from tidegate.control.records import SourceSide, TableStatus
from tidegate.control.source import Look
from tidegate.control.status import status
from tidegate.envelope.position import boundary
from tidegate.lake.change_log import ChangeLog
from tidegate.lake.reports import Reports
from tidegate.transports.guard import Guard, Verdict

HOURS_AGO = 30


@pytest.fixture
def behind(
    catalog: Catalog, platform: PlatformConfig, pipeline: PipelineConfig
) -> tuple[TableStatus, ...]:
    """Two tables swept two days ago; orders has had changes since then, customers has not."""
    log = ChangeLog(catalog, pipeline)
    log.create(boundary("e1", 100))
    lake_table(catalog, "orders", boundary("e1", 100))
    lake_table(catalog, "customers", boundary("e1", 100))
    writer = log.writer()
    captured = datetime.now(UTC) - timedelta(hours=HOURS_AGO)
    writer.write(log_rows([200, 210], captured_at=captured))
    writer.commit(boundary("e1", 300))
    swept = datetime.now(UTC) - timedelta(days=2)
    tables = status(pipeline, platform, ask_source=False).tables
    return tuple(replace(table, snapshot_at=swept) for table in tables)


def judged(
    catalog: Catalog,
    pipeline: PipelineConfig,
    platform: PlatformConfig,
    tables: tuple[TableStatus, ...],
) -> Guard:
    side = SourceSide(True, None, "s", "idle", 0, None)
    reports = Reports(catalog, pipeline).recent()
    return assess(catalog, pipeline, platform, Look(side), tables, reports)


def test_a_change_waits_from_its_capture_on(
    catalog: Catalog,
    platform: PlatformConfig,
    pipeline: PipelineConfig,
    behind: tuple[TableStatus, ...],
) -> None:
    found = judged(catalog, pipeline, platform, behind)
    customers, orders = found.figures.tables
    assert customers.waits_seconds is None, "the log's file is not of this table"
    assert orders.waits_seconds == pytest.approx(HOURS_AGO * 3600, abs=60)
    assert orders.applied_seconds == pytest.approx(2 * 86400, abs=60)
    assert found.verdict is Verdict.ACT
    assert found.figures.log is not None and found.figures.log.oldest_seconds is not None
    assert found.figures.log.oldest_seconds == pytest.approx(HOURS_AGO * 3600, abs=60)


def test_an_apply_that_found_nothing_for_a_table_brought_it_up_to_date(
    catalog: Catalog,
    platform: PlatformConfig,
    pipeline: PipelineConfig,
    behind: tuple[TableStatus, ...],
) -> None:
    entry = {"table": "public.orders", "status": "unchanged", "to_position": boundary("e1", 300)}
    Reports(catalog, pipeline).add("apply", "r1", {"tables": [entry]})
    tables = status(pipeline, platform, ask_source=False).tables
    orders = judged(catalog, pipeline, platform, tables).figures.tables[1]
    assert orders.waits_seconds is None
    assert orders.applied_seconds is not None and orders.applied_seconds < 60
    # Held since then: what it had seen before, it still has.
    held = {"table": "public.orders", "status": "held", "to_position": None}
    Reports(catalog, pipeline).add("apply", "r2", {"tables": [held]})
    tables = status(pipeline, platform, ask_source=False).tables
    assert judged(catalog, pipeline, platform, tables).figures.tables[1].waits_seconds is None


def test_a_pipeline_that_is_not_deployed_holds_nothing(
    catalog: Catalog, platform: PlatformConfig, pipeline: PipelineConfig
) -> None:
    tables = status(pipeline, platform, ask_source=False).tables
    found = judged(catalog, pipeline, platform, tables)
    assert (found.verdict, found.findings) == (Verdict.OK, ())
